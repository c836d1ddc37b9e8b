#pragma once
// Problems for the attention tests, and attention written out in double
// precision, one score at a time. Inputs are what the stored type holds
// exactly, so that the reference sees the same numbers.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "hearth/kernels/attention.h"

namespace hearth::kernels {
namespace {

using Index = std::ptrdiff_t;

struct Case {
  std::string name = {};
  Index batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, dim = 32;
  bool causal = true;
  Index window = 0, documents = 0;  // documents: segments, interleaved if < 0
  float softcap = 0;
};

float widen(std::uint16_t x) {
  const std::uint32_t u = static_cast<std::uint32_t>(x) << 16;
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}
std::uint16_t narrow(float x) {
  std::uint32_t u;
  std::memcpy(&u, &x, 4);
  if (std::isnan(x)) return 0x7fc0;
  return static_cast<std::uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

// A tensor [batch, token, head, dim] with room between its rows, so that
// strides are not what a dense one would have.
struct Tensor {
  AttentionType type = AttentionType::kFloat32;
  Index tokens = 0, heads = 0, dim = 0;
  std::vector<float> fp32;
  std::vector<std::uint16_t> bf16;
  std::vector<std::int8_t> int8;
  std::vector<float> scales;  // [batch, token, head]

  static constexpr Index kGap = 8;
  Index token_stride() const { return heads * dim + kGap; }
  Index batch_stride() const { return tokens * token_stride(); }
  Index at(Index b, Index t, Index h, Index d) const {
    return b * batch_stride() + t * token_stride() + h * dim + d;
  }
  double get(Index b, Index t, Index h, Index d) const {
    const auto i = static_cast<std::size_t>(at(b, t, h, d));
    if (type == AttentionType::kFloat32) return fp32[i];
    if (type == AttentionType::kBfloat16) return widen(bf16[i]);
    return static_cast<double>(int8[i]) *
           scales[static_cast<std::size_t>((b * tokens + t) * heads + h)];
  }
  void set(Index b, Index t, Index h, Index d, float x) {
    const auto i = static_cast<std::size_t>(at(b, t, h, d));
    if (type == AttentionType::kFloat32) fp32[i] = x;
    if (type == AttentionType::kBfloat16) bf16[i] = narrow(x);
  }
  void* data() {
    if (type == AttentionType::kFloat32) return fp32.data();
    if (type == AttentionType::kBfloat16) return bf16.data();
    return int8.data();
  }
  AttentionInput input() {
    return {data(), batch_stride(), token_stride(), dim};
  }
  AttentionOutput output() {
    return {data(), batch_stride(), token_stride(), dim};
  }
  AttentionScales scale_view() {
    return {scales.data(), tokens * heads, heads, 1};
  }
};

struct Random {
  std::uint64_t state;
  float next() {  // roughly normal
    float sum = 0;
    for (int i = 0; i < 4; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      sum += static_cast<float>(state >> 40) * 0x1p-24f - 0.5f;
    }
    return sum * 1.7f;
  }
};

Tensor make(
    AttentionType type,
    Index batch,
    Index tokens,
    Index heads,
    Index dim,
    Random* random
) {
  Tensor t{type, tokens, heads, dim, {}, {}, {}, {}};
  const auto n = static_cast<std::size_t>(batch * t.batch_stride());
  if (type == AttentionType::kFloat32) t.fp32.assign(n, NAN);
  if (type == AttentionType::kBfloat16) t.bf16.assign(n, 0x7fc0);
  if (type == AttentionType::kInt8) {
    t.int8.resize(n);
    t.scales.resize(static_cast<std::size_t>(batch * tokens * heads));
    for (auto& x : t.int8) x = static_cast<std::int8_t>(random->next() * 60);
    for (auto& x : t.scales) x = 0.02f + 0.01f * std::fabs(random->next());
    return t;
  }
  if (random == nullptr) return t;
  for (Index b = 0; b < batch; ++b)
    for (Index i = 0; i < tokens; ++i)
      for (Index h = 0; h < heads; ++h)
        for (Index d = 0; d < dim; ++d) t.set(b, i, h, d, random->next());
  return t;
}

struct Problem {
  Case c;
  Tensor q, k, v, out, dout, dq, dk, dv;
  std::vector<float> lse;
  std::vector<std::int32_t> query_ids, key_ids;
  Index offset = 0;
  float scale = 0;

  Problem(const Case& wanted, AttentionType type, AttentionType kv_type)
      : c(wanted) {
    Random random{42};
    q = make(type, c.batch, c.queries, c.heads, c.dim, &random);
    k = make(kv_type, c.batch, c.keys, c.kv_heads, c.dim, &random);
    v = make(kv_type, c.batch, c.keys, c.kv_heads, c.dim, &random);
    dout = make(type, c.batch, c.queries, c.heads, c.dim, &random);
    out = make(type, c.batch, c.queries, c.heads, c.dim, nullptr);
    dq = out;
    dk = make(type, c.batch, c.keys, c.kv_heads, c.dim, nullptr);
    dv = dk;
    lse.assign(static_cast<std::size_t>(c.batch * c.heads * c.queries), NAN);
    offset = c.keys - c.queries;
    scale = 1.0f / std::sqrt(static_cast<float>(c.dim));
    for (Index b = 0; c.documents != 0 && b < c.batch; ++b) {
      for (Index j = 0; j < c.keys; ++j) {
        const Index n = std::abs(c.documents);
        const Index id = c.documents > 0 ? (j + 3 * b) * n / (c.keys + 5 * b)
                                         : (j * 7 + b) % n;
        key_ids.push_back(static_cast<std::int32_t>(id));
        if (j >= offset) query_ids.push_back(key_ids.back());
      }
    }
  }

  AttentionArgs args() {
    AttentionArgs a;
    a.batch = c.batch, a.heads = c.heads, a.kv_heads = c.kv_heads;
    a.queries = c.queries, a.keys = c.keys, a.dim = c.dim;
    a.query_type = q.type, a.kv_type = k.type;
    a.q = q.input(), a.k = k.input(), a.v = v.input(), a.out = out.output();
    a.k_scale = k.scale_view(), a.v_scale = v.scale_view();
    a.lse = lse.data();
    a.scale = scale, a.softcap = c.softcap;
    a.causal = c.causal, a.window = c.window, a.query_offset = offset;
    if (c.documents != 0) {
      a.query_segments = {query_ids.data(), c.queries};
      a.key_segments = {key_ids.data(), c.keys};
    }
    return a;
  }
  AttentionGradArgs grad_args() {
    return {args(), dout.input(), dq.output(), dk.output(), dv.output()};
  }

  bool sees(Index b, Index i, Index j) const {
    const Index p = i + offset;
    if (c.causal && j > p) return false;
    if (c.window > 0 && std::abs(p - j) >= c.window) return false;
    if (c.documents == 0) return true;
    return query_ids[static_cast<std::size_t>(b * c.queries + i)] ==
           key_ids[static_cast<std::size_t>(b * c.keys + j)];
  }
};

// The result of one query of one head, and what it adds to the gradients.
struct Row {
  std::vector<double> p, score;  // p is 0 where the key is not seen
  double lse = -INFINITY;
  std::vector<double> out;
};

Row reference_row(const Problem& x, Index b, Index h, Index i) {
  const Case& c = x.c;
  const Index kv = h / (c.heads / c.kv_heads);
  const auto keys = static_cast<std::size_t>(c.keys);
  Row r{
      std::vector<double>(keys), std::vector<double>(keys, -INFINITY),
      -INFINITY, std::vector<double>(static_cast<std::size_t>(c.dim))
  };
  double greatest = -INFINITY, sum = 0;
  for (Index j = 0; j < c.keys; ++j) {
    if (!x.sees(b, i, j)) continue;
    double s = 0;
    for (Index d = 0; d < c.dim; ++d) {
      s += x.q.get(b, i, h, d) * x.k.get(b, j, kv, d);
    }
    s *= x.scale;
    if (c.softcap > 0) s = c.softcap * std::tanh(s / c.softcap);
    r.score[static_cast<std::size_t>(j)] = s;
    greatest = std::max(greatest, s);
  }
  if (greatest == -INFINITY) return r;
  for (const double s : r.score) sum += std::exp(s - greatest);
  r.lse = greatest + std::log(sum);
  for (Index j = 0; j < c.keys; ++j) {
    const auto at = static_cast<std::size_t>(j);
    r.p[at] = std::exp(r.score[at] - r.lse);
    if (r.p[at] == 0) continue;
    for (Index d = 0; d < c.dim; ++d) {
      r.out[static_cast<std::size_t>(d)] += r.p[at] * x.v.get(b, j, kv, d);
    }
  }
  return r;
}

// All of it, laid out as the tensors are; lse as the kernels lay it out.
struct Reference {
  std::vector<double> out, lse, dq, dk, dv;
};

Reference reference_of(const Problem& x, bool gradients) {
  const Case& c = x.c;
  Reference ref;
  const auto size = [&](const Tensor& t) {
    return static_cast<std::size_t>(c.batch * t.batch_stride());
  };
  ref.out.resize(size(x.q)), ref.dq.resize(size(x.q));
  ref.dk.resize(size(x.k)), ref.dv.resize(size(x.k));
  for (Index b = 0; b < c.batch; ++b)
    for (Index h = 0; h < c.heads; ++h)
      for (Index i = 0; i < c.queries; ++i) {
        const Index kv = h / (c.heads / c.kv_heads);
        const Row r = reference_row(x, b, h, i);
        ref.lse.push_back(r.lse);
        double delta = 0;
        for (Index d = 0; d < c.dim; ++d) {
          const double o = r.out[static_cast<std::size_t>(d)];
          ref.out[static_cast<std::size_t>(x.q.at(b, i, h, d))] = o;
          delta += o * x.dout.get(b, i, h, d);
        }
        for (Index j = 0; gradients && j < c.keys; ++j) {
          const double p = r.p[static_cast<std::size_t>(j)];
          if (p == 0) continue;
          double dp = 0;
          for (Index d = 0; d < c.dim; ++d) {
            dp += x.dout.get(b, i, h, d) * x.v.get(b, j, kv, d);
          }
          double ds = p * (dp - delta) * x.scale;
          if (c.softcap > 0) {
            const double t = r.score[static_cast<std::size_t>(j)] / c.softcap;
            ds *= 1 - t * t;
          }
          for (Index d = 0; d < c.dim; ++d) {
            const auto iq = static_cast<std::size_t>(x.q.at(b, i, h, d));
            const auto ik = static_cast<std::size_t>(x.k.at(b, j, kv, d));
            ref.dq[iq] += ds * x.k.get(b, j, kv, d);
            ref.dk[ik] += ds * x.q.get(b, i, h, d);
            ref.dv[ik] += p * x.dout.get(b, i, h, d);
          }
        }
      }
  return ref;
}

}  // namespace
}  // namespace hearth::kernels
