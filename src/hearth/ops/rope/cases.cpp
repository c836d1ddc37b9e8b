// Sizes are {batch, length, heads, head_dim, rotated dims}.
#include "hearth/ops/op_case.h"
#include "hearth/ops/rope/op.h"

namespace hearth::ops {
namespace {

OpCase rope_case(std::string name, RopePairs pairs) {
  OpCase c;
  c.name = std::move(name);
  c.primitives = {"Rope"};
  c.sizes = {
      {1, 3, 2, 6, 6},
      {1, 1, 1, 2, 2},
      {2, 5, 3, 34, 26},
      {2, 33, 4, 64, 64},
      {3, 50, 6, 80, 40}
  };
  c.bench_sizes = {{64, 1024, 16, 64, 64}};
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    RopeConfig config;
    config.dims = n[4];
    return Arrays{
        normal_input({n[0], n[1], n[2], n[3]}, t, seed),
        integer_input({n[0], n[1]}, 4 * n[1], seed + 1),
        rope_table(rope_frequencies(config), 4 * n[1])
    };
  };
  c.run = [pairs](const Arrays& v) {
    return Arrays{rope(v[0], v[1], v[2], pairs)};
  };
  c.reference = [pairs](const Arrays& v) {
    return Arrays{rope_reference(v[0], v[1], v[2], pairs)};
  };
  c.differentiable = {0};
  c.float32 = {{1e-6, 1e-6}, {1e-6, 1e-6}};
  c.bfloat16 = {{1e-3, 8e-3}, {1e-3, 8e-3}};
  c.forward_work = c.gradient_work = [](const Size& n, mx::Dtype t) {
    const double all = double(n[0]) * n[1] * n[2] * n[3];
    return Work{2 * all * double(mx::size_of(t)), 3 * all};
  };
  return c;
}

// How many of the heads side by side are queries', and keys'.
std::pair<int, int> heads_of(const mx::array& joint) {
  const int kv = joint.shape(2) / 4;
  return {joint.shape(2) - 2 * kv, kv};
}

// Sizes are {batch, length, all heads, head_dim, rotated dims}.
OpCase heads_case() {
  OpCase c = rope_case("rope_heads", RopePairs::halves);
  c.sizes = {
      {1, 3, 4, 6, 6}, {2, 5, 5, 34, 26}, {2, 9, 8, 32, 32}, {1, 4, 6, 64, 64}
  };
  c.bench_sizes = {{32, 1024, 24, 64, 64}};
  c.run = [](const Arrays& v) {
    const auto [heads, kv] = heads_of(v[0]);
    return rope_heads(v[0], heads, kv, v[1], v[2], RopePairs::halves);
  };
  c.reference = [](const Arrays& v) {
    const auto [heads, kv] = heads_of(v[0]);
    const auto parts = mx::split(v[0], mx::Shape{heads, heads + kv}, 2);
    return Arrays{
        rope_reference(parts[0], v[1], v[2], RopePairs::halves),
        rope_reference(parts[1], v[1], v[2], RopePairs::halves), parts[2]
    };
  };
  return c;
}

}  // namespace

std::vector<OpCase> rope_cases() {
  return {
      rope_case("rope_halves", RopePairs::halves),
      rope_case("rope_interleaved", RopePairs::interleaved), heads_case()
  };
}

}  // namespace hearth::ops
