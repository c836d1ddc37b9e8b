// Sizes are {batch, queries, keys, heads, kv_heads, dim}.
#include <numeric>

#include "hearth/ops/attention/op.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

OpCase base(const char* name) {
  OpCase c;
  c.name = name;
  c.primitives = {"Attention", "AttentionGrad"};
  c.sizes = {
      {1, 5, 5, 2, 1, 8},      {1, 1, 1, 1, 1, 16},      {2, 67, 67, 4, 2, 40},
      {1, 300, 300, 2, 2, 64}, {1, 130, 130, 2, 1, 256},
  };
  c.bench_sizes = {{8, 1024, 1024, 12, 12, 64}};
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    return Arrays{
        normal_input({n[0], n[1], n[3], n[5]}, t, seed),
        normal_input({n[0], n[2], n[4], n[5]}, t, seed + 1),
        normal_input({n[0], n[2], n[4], n[5]}, t, seed + 2)
    };
  };
  c.differentiable = {0, 1, 2};
  c.float32 = {{1e-5, 1e-5}, {2e-5, 2e-5}};
  c.bfloat16 = {{1e-2, 1e-2}, {2e-2, 2e-2}};
  // MLX's graph of attention, which a CPU runs in place of its fused kernels,
  // rounds scores and probabilities to bfloat16.
  c.gpu_bfloat16 = {{2e-2, 2e-2}, {4e-2, 4e-2}};
  // A value that is not seen is multiplied by zero where blocks meet it and
  // skipped where they do not; the reference meets it everywhere.
  c.check_special_values = false;
  return c;
}

// The share of scores that are seen counts as work.
void set_work(OpCase& c, double seen) {
  const auto flops = [seen](const Size& n) {
    return 4.0 * n[0] * n[1] * n[2] * n[3] * n[5] * seen;
  };
  const auto tensors = [](const Size& n) {
    return double(n[0]) * n[5] * (2.0 * n[1] * n[3] + 2.0 * n[2] * n[4]);
  };
  c.forward_work = [=](const Size& n, mx::Dtype t) {
    return Work{tensors(n) * double(mx::size_of(t)), flops(n)};
  };
  c.gradient_work = [=](const Size& n, mx::Dtype t) {
    return Work{2 * tensors(n) * double(mx::size_of(t)), 2.5 * flops(n)};
  };
}

using Options = std::function<AttentionOptions(const Arrays&)>;

OpCase with_options(const char* name, double seen, const Options& options) {
  OpCase c = base(name);
  set_work(c, seen);
  c.run = [options](const Arrays& v) {
    return Arrays{attention(v[0], v[1], v[2], options(v))};
  };
  c.reference = [options](const Arrays& v) {
    return Arrays{attention_reference(v[0], v[1], v[2], options(v))};
  };
  return c;
}

// Documents of uneven lengths, the same in every row.
mx::array documents(int batch, int tokens) {
  std::vector<std::int32_t> ids;
  for (int b = 0; b < batch; ++b)
    for (int i = 0; i < tokens; ++i)
      ids.push_back((i + 2 * b) * i / (tokens + 3));
  return mx::array(ids.data(), {batch, tokens}, mx::int32);
}

OpCase causal_case() {
  return with_options("attention", 0.5, [](const Arrays&) {
    return AttentionOptions{};
  });
}

OpCase full_case() {
  OpCase c = with_options("attention_full", 1.0, [](const Arrays&) {
    return AttentionOptions{.softcap = 3.0f, .causal = false};
  });
  c.sizes.push_back({2, 40, 90, 2, 1, 32});
  return c;
}

OpCase window_case() {
  OpCase c = with_options("attention_window", 0.25, [](const Arrays& v) {
    return AttentionOptions{.window = v[1].shape(1) / 4 + 1};
  });
  c.sizes.push_back({2, 40, 90, 4, 1, 32});
  return c;
}

OpCase documents_case() {
  return with_options("attention_documents", 0.25, [](const Arrays& v) {
    AttentionOptions o;
    o.query_segments = documents(v[0].shape(0), v[0].shape(1));
    return o;
  });
}

// Sizes are as the others', with as many queries as keys.
OpCase qkv_case() {
  OpCase c = base("attention_qkv");
  set_work(c, 0.5);
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    // heads and kv_heads travel as the shapes of two empty-handed arrays.
    return Arrays{
        normal_input({n[0], n[1], n[3] + 2 * n[4], n[5]}, t, seed),
        mx::zeros({n[3]}, mx::int32), mx::zeros({n[4]}, mx::int32)
    };
  };
  c.run = [](const Arrays& v) {
    return Arrays{attention_qkv(v[0], v[1].shape(0), v[2].shape(0))};
  };
  c.reference = [](const Arrays& v) {
    const int heads = v[1].shape(0), kv_heads = v[2].shape(0);
    const auto p = mx::split(v[0], mx::Shape{heads, heads + kv_heads}, 2);
    return Arrays{attention_reference(p[0], p[1], p[2])};
  };
  c.differentiable = {0};
  return c;
}

}  // namespace

std::vector<OpCase> attention_cases() {
  return {
      causal_case(), documents_case(), full_case(), qkv_case(), window_case()
  };
}

}  // namespace hearth::ops
