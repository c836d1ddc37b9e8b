// Sizes are {rows, cols}.
#include "hearth/ops/fake_quant/faces_impl.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

OpCase fake_quant_case(const char* name, const kernels::QuantFormat& format) {
  OpCase c;
  c.name = name;
  c.primitives = {"FakeQuant"};
  c.dtypes = {mx::float32};
  c.sizes = {{2, 32}, {1, 64}, {33, 96}, {70, 1024}};
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    return Arrays{normal_input({n[0], n[1]}, t, seed)};
  };
  c.run = [format](const Arrays& v) {
    return Arrays{fake_quant(v[0], format)};
  };
  c.reference = [format](const Arrays& v) {
    return Arrays{fake_quant_reference(v[0], format)};
  };
  // Exactly the definition's rounding. Straight through is no derivative of it,
  // so there is nothing to difference; op_test.cpp looks at the gradient.
  c.float32 = {{0, 0}, {0, 0}};
  c.check_special_values = false;
  c.forward_work = [](const Size& n, mx::Dtype t) {
    return Work{2.0 * n[0] * n[1] * double(mx::size_of(t)), 0};
  };
  return c;
}

}  // namespace

std::vector<OpCase> fake_quant_cases() {
  using kernels::QuantFormat;
  using kernels::ScaleType;
  auto affine = fake_quant_case(
      "fake_quant_4bit", QuantFormat::affine(4, 32, ScaleType::kF32)
  );
  affine.bench_sizes = {{8192, 4096}};
  return {
      affine, fake_quant_case("fake_quant_int8", QuantFormat::symmetric(8, 32)),
      fake_quant_case("fake_quant_int4_channel", QuantFormat::symmetric(4, 0))
  };
}

}  // namespace hearth::ops
