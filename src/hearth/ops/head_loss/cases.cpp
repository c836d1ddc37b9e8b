// Sizes are {tokens, vocabulary, k, entries of a sparse teacher}.
#include <cmath>

#include "hearth/ops/head_loss/op.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

double flops(const Size& n) {
  return 2.0 * n[0] * n[1] * n[2];
}
double bytes(const Size& n, mx::Dtype t) {
  return (double(n[0]) + n[1]) * n[2] * double(mx::size_of(t));
}

// Some tokens have no target and some no weight; some weigh less than nothing.
// None is dropped in the size that NaN and infinity are tried with: a dropped
// token's gradient is 0, but MLX's multiplies a NaN by 0 where it drops one.
// Nor in the timed size, whose work counts every token.
bool drops(const Size& n) {
  return n[0] != 7 && n[0] < 8192;
}
mx::array targets(const Size& n, std::uint64_t seed) {
  auto t = integer_input({n[0]}, n[1], seed);
  if (!drops(n)) return t;
  const auto drop = mx::equal(
      integer_input({n[0]}, 5, seed + 1), mx::array(0), mx::Device::cpu
  );
  return mx::where(drop, mx::array(-100), t, mx::Device::cpu);
}
mx::array weights(const Size& n, mx::Dtype t, std::uint64_t seed) {
  auto w = uniform_input({n[0]}, t, seed, -0.5f, 1.5f);
  if (!drops(n)) return w;
  const auto drop = mx::equal(
      integer_input({n[0]}, 6, seed + 1), mx::array(0), mx::Device::cpu
  );
  return mx::where(
      drop, mx::zeros_like(w, mx::Device::cpu), w, mx::Device::cpu
  );
}

Arrays basic(const Size& n, mx::Dtype t, std::uint64_t seed) {
  const auto scale = 1.5f / std::sqrt(static_cast<float>(n[2]));
  return {
      normal_input({n[0], n[2]}, t, seed),
      normal_input({n[1], n[2]}, t, seed + 1, scale), targets(n, seed + 2),
      weights(n, at_least_float32(t), seed + 4)
  };
}
Arrays with_logits(const Size& n, mx::Dtype t, std::uint64_t seed) {
  Arrays in = basic(n, t, seed);
  in.push_back(normal_input({n[0], n[1]}, t, seed + 6, 1.5f));
  return in;
}
// Different tokens: the multiples of a step, from a place of each row's own.
Arrays with_entries(const Size& n, mx::Dtype t, std::uint64_t seed) {
  Arrays in = basic(n, t, seed);
  const auto cpu = mx::Device::cpu;
  const auto start = integer_input({n[0], 1}, n[1], seed + 6);
  const auto places = mx::multiply(
      mx::arange(0, n[3], mx::int32, cpu), mx::array(n[1] / n[3]), cpu
  );
  in.push_back(
      mx::remainder(mx::add(start, places, cpu), mx::array(n[1]), cpu)
  );
  // Together 0.4 to 0.95 of the mass.
  const auto raw = normal_input({n[0], n[3]}, mx::float32, seed + 7);
  const auto mass =
      uniform_input({n[0], 1}, mx::float32, seed + 8, 0.4f, 0.95f);
  const auto logs = mx::add(
      mx::subtract(raw, mx::logsumexp(raw, -1, true, cpu), cpu),
      mx::log(mass, cpu), cpu
  );
  in.push_back(mx::astype(logs, at_least_float32(t), cpu));
  return in;
}

// log_probs have no gradient though they depend on h: op_test.cpp.
Arrays outputs(const HeadLoss& l) {
  return {l.loss_sum, l.weight_sum};
}
Teacher teacher_of(const Arrays& v) {
  Teacher t;
  if (v.size() == 5) t.logits = v[4];
  if (v.size() == 6) t.indices = v[4], t.log_probs = v[5];
  return t;
}

OpCase base(const char* name, const LossTerms& terms) {
  OpCase c;
  c.name = name;
  c.primitives = {"FusedHeadLoss", "HeadLossScale"};
  c.sizes = {{4, 9, 5, 3},      {1, 2, 1, 1},       {7, 33, 31, 4},
             {130, 70, 45, 16}, {40, 1200, 64, 50}, {260, 300, 96, 20}};
  c.inputs = basic;
  c.run = [terms](const Arrays& v) {
    HeadLossOptions options;
    options.terms = terms;
    return outputs(head_loss(v[0], v[1], v[2], v[3], options, teacher_of(v)));
  };
  c.reference = [terms](const Arrays& v) {
    return outputs(
        head_loss_reference(v[0], v[1], v[2], v[3], terms, teacher_of(v))
    );
  };
  c.differentiable = {0, 1};
  // A loss sum of up to 260 tokens, each right to a few last places of a sum
  // over the vocabulary. In bf16 every entry of the gradient of the logits, and
  // of h in the weight's, is rounded to 8 bits.
  c.float32 = {{2e-4, 2e-5}, {5e-5, 5e-5}};
  c.bfloat16 = {{2e-4, 2e-5}, {1.5e-2, 1e-2}};
  // A GPU's product rounds the logits themselves to 8 bits, by up to 0.008
  // where they are near 4.
  c.gpu_bfloat16 = {{6e-2, 2e-4}, c.bfloat16.gradient};
  c.forward_work = [](const Size& n, mx::Dtype t) {
    return Work{bytes(n, t), 3 * flops(n)};
  };
  c.gradient_work = [](const Size& n, mx::Dtype t) {
    return Work{2 * bytes(n, t), 0};
  };
  return c;
}

LossTerms divergence(Divergence kind, float cross_entropy, float temperature) {
  LossTerms t;
  t.divergence = kind;
  t.cross_entropy = cross_entropy;
  t.divergence_weight = 0.7f;
  t.temperature = temperature;
  return t;
}

OpCase head_loss_case() {
  LossTerms terms;
  terms.z_loss = 1e-2f;
  OpCase c = base("head_loss", terms);
  c.bench_sizes = {{8192, 24576, 384, 0}};
  return c;
}

OpCase head_loss_smoothed_case() {
  LossTerms terms;
  terms.label_smoothing = 0.1f;
  terms.z_loss = 1e-2f;
  terms.soft_cap = 3;
  return base("head_loss_smoothed", terms);
}

OpCase head_loss_forward_kl_case() {
  OpCase c =
      base("head_loss_forward_kl", divergence(Divergence::forward_kl, 0.3f, 2));
  c.inputs = with_logits;
  return c;
}

OpCase head_loss_reverse_kl_case() {
  LossTerms terms = divergence(Divergence::reverse_kl, 0, 1.5f);
  terms.soft_cap = 4;
  OpCase c = base("head_loss_reverse_kl", terms);
  c.inputs = with_logits;
  return c;
}

OpCase head_loss_jensen_shannon_case() {
  OpCase c = base(
      "head_loss_jensen_shannon", divergence(Divergence::jensen_shannon, 0, 1)
  );
  c.inputs = with_logits;
  return c;
}

OpCase head_loss_sparse_forward_kl_case() {
  OpCase c = base(
      "head_loss_sparse_forward_kl", divergence(Divergence::forward_kl, 0.5f, 2)
  );
  c.inputs = with_entries;
  return c;
}

OpCase head_loss_sparse_reverse_kl_case() {
  OpCase c = base(
      "head_loss_sparse_reverse_kl", divergence(Divergence::reverse_kl, 0, 1)
  );
  c.inputs = with_entries;
  return c;
}

OpCase head_loss_sparse_jensen_shannon_case() {
  OpCase c = base(
      "head_loss_sparse_jensen_shannon",
      divergence(Divergence::jensen_shannon, 0.2f, 1.5f)
  );
  c.inputs = with_entries;
  return c;
}

OpCase head_log_probs_case() {
  OpCase c = base("head_log_probs", {});
  c.primitives = {"FusedHeadLoss", "HeadLogProbs"};
  // Upstream values are up to 3 and h is up to 4, rounded to 8 bits.
  c.bfloat16.gradient.absolute = 3e-2;
  c.gpu_bfloat16 = {{1e-2, 2e-3}, c.bfloat16.gradient};
  c.run = [](const Arrays& v) {
    return Arrays{head_log_probs(v[0], v[1], v[2])};
  };
  c.reference = [](const Arrays& v) {
    return Arrays{head_log_probs_reference(v[0], v[1], v[2])};
  };
  return c;
}

}  // namespace

std::vector<OpCase> head_loss_cases() {
  return {
      head_loss_case(),
      head_loss_smoothed_case(),
      head_loss_forward_kl_case(),
      head_loss_reverse_kl_case(),
      head_loss_jensen_shannon_case(),
      head_loss_sparse_forward_kl_case(),
      head_loss_sparse_reverse_kl_case(),
      head_loss_sparse_jensen_shannon_case(),
      head_log_probs_case()
  };
}

}  // namespace hearth::ops
