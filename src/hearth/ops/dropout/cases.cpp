// Sizes are {rows, dim}. op_test.cpp has what a case cannot say: the rate,
// and that noise belongs to a row's key.
#include "hearth/ops/dropout/op.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

mx::array keys(int rows) {
  return mx::arange(7, 7 + rows, mx::uint64);
}

OpCase dropout_case() {
  OpCase c;
  c.name = "dropout";
  c.primitives = {"Dropout"};
  c.sizes = {{3, 5}, {1, 1}, {70, 130}};
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    return Arrays{normal_input({n[0], n[1]}, t, seed)};
  };
  c.run = [](const Arrays& v) {
    return Arrays{dropout(v[0], keys(v[0].shape(0)), 3, 0.25f)};
  };
  c.reference = [](const Arrays& v) {
    return Arrays{dropout_reference(v[0], keys(v[0].shape(0)), 3, 0.25f)};
  };
  c.differentiable = {0};
  c.float32 = {{1e-6, 1e-6}, {1e-6, 1e-6}};
  c.bfloat16 = {{1e-3, 1e-2}, {1e-3, 1e-2}};
  c.check_special_values = false;  // what is dropped is 0, infinity too
  return c;
}

OpCase add_noise_case() {
  OpCase c = dropout_case();
  c.name = "add_noise";
  c.primitives = {"AddNoise"};
  c.run = [](const Arrays& v) {
    return Arrays{add_noise(v[0], keys(v[0].shape(0)), 3, 0.25f)};
  };
  c.reference = [](const Arrays& v) {
    return Arrays{add_noise_reference(v[0], keys(v[0].shape(0)), 3, 0.25f)};
  };
  return c;
}

}  // namespace

std::vector<OpCase> dropout_cases() {
  return {dropout_case(), add_noise_case()};
}

}  // namespace hearth::ops
