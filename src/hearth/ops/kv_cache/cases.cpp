// Sizes are {tokens, heads, kv_heads, dim, window}. The tokens go through the
// cache in three steps of different length and must come out as attention over
// the whole does.
#include "hearth/ops/kv_cache/op.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

mx::array tokens_of(const mx::array& a, int begin, int end) {
  return mx::slice(a, {0, begin, 0, 0}, {1, end, a.shape(2), a.shape(3)});
}

mx::array in_steps(const Arrays& v, mx::Dtype kept, int window) {
  auto cache = std::make_shared<KvCache>(v[1].shape(2), v[1].shape(3), kept);
  const int n = v[0].shape(1);
  Arrays parts;
  int from = 0;
  for (const int to : {n / 2, n - 1, n}) {
    if (to <= from) continue;
    parts.push_back(cached_attention(
        tokens_of(v[0], from, to), tokens_of(v[1], from, to),
        tokens_of(v[2], from, to), cache, {.window = window}
    ));
    parts.back().eval();
    from = to;
  }
  return mx::concatenate(parts, 1);
}

OpCase kv_cache_case(const char* name, bool int8, int window) {
  OpCase c;
  c.name = name;
  c.primitives = {"CachedAttentionOp"};
  c.sizes = {{5, 2, 1, 4}, {1, 1, 1, 8}, {70, 6, 2, 64}, {600, 4, 4, 48}};
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    return Arrays{
        normal_input({1, n[0], n[1], n[3]}, t, seed),
        normal_input({1, n[0], n[2], n[3]}, t, seed + 1),
        normal_input({1, n[0], n[2], n[3]}, t, seed + 2)
    };
  };
  c.run = [int8, window](const Arrays& v) {
    return Arrays{in_steps(v, int8 ? mx::int8 : v[0].dtype(), window)};
  };
  c.reference = [window](const Arrays& v) {
    return Arrays{attention_reference(v[0], v[1], v[2], {.window = window})};
  };
  c.float32 = {{1e-5, 1e-5}, {}};
  c.bfloat16 = {{1e-2, 1e-2}, {}};
  // As attention's own cases: MLX's graph rounds scores to bfloat16.
  c.gpu_bfloat16 = {{2e-2, 2e-2}, {}};
  // Keys and values of up to four in 127 steps either way.
  if (int8) {
    c.float32 = c.bfloat16 = {{6e-2, 2e-2}, {}};
    c.gpu_bfloat16 = c.bfloat16;
  }
  c.check_special_values = false;
  c.allocates = false;
  return c;
}

}  // namespace

std::vector<OpCase> kv_cache_cases() {
  return {
      kv_cache_case("kv_cache", false, 0),
      kv_cache_case("kv_cache_window", false, 3),
      kv_cache_case("kv_cache_int8", true, 0),
  };
}

}  // namespace hearth::ops
