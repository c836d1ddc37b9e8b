// Every usable table against attention written out in double precision, one
// score at a time. Inputs are what the stored type holds exactly, so that the
// reference sees the same numbers.
#include "hearth/kernels/attention.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hearth/kernels/table.h"

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

// What one query of one head comes to, and what it adds to the gradients.
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

struct Scratch {
  std::vector<char> bytes;
  void* get(std::size_t n) {
    bytes.assign(n + 64, static_cast<char>(0xff));  // NaN in any reading
    const auto at = reinterpret_cast<std::uintptr_t>(bytes.data());
    return bytes.data() + (64 - at % 64) % 64;
  }
};

// Runs units in `parts` ranges, each with scratch of its own.
void split(
    Index units,
    Index parts,
    const std::function<void(Index, Index)>& f
) {
  for (Index i = 0; i < parts; ++i)
    f(units * i / parts, units * (i + 1) / parts);
}
void run_forward(const AttentionKernels& kernels, Problem& x, Index parts = 1) {
  const AttentionArgs a = x.args();
  split(attention_forward_units(a), parts, [&](Index begin, Index end) {
    Scratch s;
    kernels.forward(a, begin, end, s.get(kernels.forward_scratch(a)));
  });
}
void run_backward(
    const AttentionKernels& kernels,
    Problem& x,
    Index parts = 1
) {
  const AttentionGradArgs g = x.grad_args();
  split(
      attention_backward_units(g.forward), parts, [&](Index begin, Index end) {
        Scratch s;
        kernels.backward(g, begin, end, s.get(kernels.backward_scratch(g)));
      }
  );
}
void run_decode(const AttentionKernels& kernels, Problem& x, Index parts = 1) {
  const AttentionArgs a = x.args();
  std::vector<float> partials(
      static_cast<std::size_t>(attention_decode_partial_floats(a)), NAN
  );
  split(attention_decode_units(a), parts, [&](Index begin, Index end) {
    Scratch s;
    kernels.decode(
        a, begin, end, partials.data(), s.get(kernels.forward_scratch(a))
    );
  });
  split(a.batch * a.heads, parts, [&](Index begin, Index end) {
    kernels.decode_combine(a, begin, end, partials.data());
  });
}

// Errors are absolute: outputs and gradients here are of the order of one.
double tolerance(AttentionType type) {
  return type == AttentionType::kFloat32 ? 2e-5 : 2.5e-2;
}

void expect_near(
    const Tensor& got,
    const std::vector<double>& want,
    const Case& c,
    const char* what
) {
  double worst = 0, size = 0;
  for (Index b = 0; b < c.batch; ++b)
    for (Index t = 0; t < got.tokens; ++t)
      for (Index h = 0; h < got.heads; ++h)
        for (Index d = 0; d < c.dim; ++d) {
          const double w = want[static_cast<std::size_t>(got.at(b, t, h, d))];
          const double e = std::fabs(got.get(b, t, h, d) - w);
          worst = e <= worst ? worst : e;
          size = std::max(size, std::fabs(w));
        }
  EXPECT_LE(worst, tolerance(got.type) * std::max(1.0, size)) << what;
}

void expect_forward(const Problem& x, const Reference& ref) {
  expect_near(x.out, ref.out, x.c, "out");
  double worst = 0;
  for (std::size_t i = 0; i < ref.lse.size(); ++i) {
    const double want = ref.lse[i], got = x.lse[i];
    const double e = got == want ? 0 : std::fabs(got - want);
    worst = e <= worst ? worst : e;
  }
  EXPECT_LE(worst, 1e-4) << "lse";
}

std::vector<Case> cases() {
  std::vector<Case> all = {
      {.name = "one", .dim = 32},
      {.name = "tiny",
       .heads = 2,
       .kv_heads = 1,
       .queries = 3,
       .keys = 5,
       .dim = 8},
      {.name = "ragged",
       .batch = 2,
       .heads = 3,
       .kv_heads = 3,
       .queries = 77,
       .keys = 77,
       .dim = 40},
      {.name = "two_blocks",
       .heads = 2,
       .kv_heads = 2,
       .queries = 257,
       .keys = 257,
       .dim = 64},
      {.name = "full",
       .heads = 2,
       .kv_heads = 1,
       .queries = 150,
       .keys = 150,
       .dim = 96,
       .causal = false},
      {.name = "wide_head", .queries = 70, .keys = 70, .dim = 256},
      {.name = "odd_head", .queries = 33, .keys = 33, .dim = 80},
      {.name = "chunked_prefill",
       .heads = 4,
       .kv_heads = 2,
       .queries = 37,
       .keys = 301,
       .dim = 64},
      {.name = "cross", .queries = 90, .keys = 31, .dim = 32, .causal = false},
      {.name = "more_queries_than_keys", .queries = 40, .keys = 20, .dim = 32},
  };
  for (const bool causal : {true, false})
    for (const Index window : {0, 1, 50})
      for (const Index documents : {0, 5, -3})
        for (const float softcap : {0.0f, 2.0f})
          for (const Index kv_heads : {1, 2}) {
            Case c{
                .name = "crossed",
                .batch = 2,
                .heads = 2,
                .kv_heads = kv_heads,
                .queries = 170,
                .keys = 170,
                .dim = 32,
                .causal = causal,
                .window = window,
                .documents = documents,
                .softcap = softcap
            };
            c.name += std::string(causal ? " causal" : " full") + " window " +
                      std::to_string(window) + " documents " +
                      std::to_string(documents) + " cap " +
                      std::to_string(softcap) + " kv " +
                      std::to_string(kv_heads);
            all.push_back(c);
          }
  return all;
}

std::string trace(const Table& table, AttentionType type) {
  return std::string(table.isa) +
         (type == AttentionType::kFloat32 ? " fp32 " : " bf16 ");
}

void on_every_table(
    const std::function<void(const AttentionKernels&, AttentionType)>& f
) {
  for (const Table* table : usable_tables()) {
    for (const auto type :
         {AttentionType::kFloat32, AttentionType::kBfloat16}) {
      SCOPED_TRACE(trace(*table, type));
      f(*table->attention, type);
    }
  }
}

// One reference for all tables: it takes longer than all of them.
TEST(Attention, MatchesDoublePrecision) {
  for (const auto type : {AttentionType::kFloat32, AttentionType::kBfloat16}) {
    for (const Case& c : cases()) {
      const Reference ref = reference_of(Problem(c, type, type), true);
      for (const Table* table : usable_tables()) {
        SCOPED_TRACE(trace(*table, type) + c.name);
        Problem x(c, type, type);
        run_forward(*table->attention, x);
        expect_forward(x, ref);
        run_backward(*table->attention, x);
        expect_near(x.dq, ref.dq, c, "dq");
        expect_near(x.dk, ref.dk, c, "dk");
        expect_near(x.dv, ref.dv, c, "dv");
      }
    }
  }
}

TEST(Attention, DecodeMatchesDoublePrecision) {
  const Case some[] = {
      {.name = "first token", .heads = 4, .kv_heads = 2, .dim = 64},
      {.name = "one chunk",
       .batch = 2,
       .heads = 6,
       .kv_heads = 2,
       .keys = 500,
       .dim = 64},
      {.name = "many chunks",
       .heads = 3,
       .kv_heads = 1,
       .keys = 1700,
       .dim = 128},
      {.name = "a few queries",
       .heads = 4,
       .kv_heads = 2,
       .queries = 5,
       .keys = 600,
       .dim = 40,
       .softcap = 5},
      {.name = "window",
       .heads = 4,
       .kv_heads = 4,
       .queries = 2,
       .keys = 1300,
       .dim = 80,
       .window = 100},
      {.name = "documents",
       .heads = 4,
       .kv_heads = 2,
       .queries = 3,
       .keys = 900,
       .dim = 32,
       .documents = 4},
  };
  for (const auto type : {AttentionType::kFloat32, AttentionType::kBfloat16})
    for (const auto kv : {type, AttentionType::kBfloat16, AttentionType::kInt8})
      for (const Case& c : some) {
        const Reference ref = reference_of(Problem(c, type, kv), false);
        for (const Table* table : usable_tables()) {
          SCOPED_TRACE(
              trace(*table, type) + c.name + " cache " +
              std::to_string(static_cast<int>(kv))
          );
          Problem x(c, type, kv), y(c, type, kv);
          run_decode(*table->attention, x);
          expect_forward(x, ref);
          run_forward(*table->attention, y);
          expect_forward(y, ref);
        }
      }
}

TEST(Attention, DoesNotDependOnTheSplit) {
  const Case c{
      .batch = 2,
      .heads = 4,
      .kv_heads = 2,
      .queries = 300,
      .keys = 300,
      .dim = 48,
      .documents = 3
  };
  on_every_table([&](const AttentionKernels& kernels, AttentionType type) {
    Problem one(c, type, type), many(c, type, type);
    run_forward(kernels, one), run_backward(kernels, one);
    run_forward(kernels, many, 5), run_backward(kernels, many, 3);
    const auto same = [](const Tensor& a, const Tensor& b) {
      EXPECT_EQ(a.bf16, b.bf16);
      ASSERT_EQ(a.fp32.size(), b.fp32.size());
      EXPECT_EQ(
          std::memcmp(a.fp32.data(), b.fp32.data(), a.fp32.size() * 4), 0
      );
    };
    EXPECT_EQ(one.lse, many.lse);
    same(one.out, many.out);
    same(one.dq, many.dq), same(one.dk, many.dk), same(one.dv, many.dv);

    Problem once(c, type, type), often(c, type, type);
    once.c.queries = often.c.queries = 2;
    once.offset = often.offset = 298;
    run_decode(kernels, once), run_decode(kernels, often, 4);
    same(once.out, often.out);
  });
}

TEST(Attention, LeavesMemoryBetweenRowsAlone) {
  const Case c{
      .batch = 2,
      .heads = 2,
      .kv_heads = 1,
      .queries = 21,
      .keys = 21,
      .dim = 24
  };
  on_every_table([&](const AttentionKernels& kernels, AttentionType type) {
    Problem x(c, type, type);
    run_forward(kernels, x), run_backward(kernels, x);
    for (Tensor* t : {&x.out, &x.dq, &x.dk, &x.dv}) {
      for (Index b = 0; b < c.batch; ++b)
        for (Index i = 0; i < t->tokens; ++i)
          for (Index d = 0; d < Tensor::kGap; ++d) {
            EXPECT_TRUE(std::isnan(t->get(b, i, t->heads, d)));
          }
    }
  });
}

TEST(Attention, NanReachesWhoSeesItAndNobodyElse) {
  const Case c{.heads = 1, .kv_heads = 1, .queries = 60, .keys = 60, .dim = 32};
  on_every_table([&](const AttentionKernels& kernels, AttentionType type) {
    for (Tensor Problem::* tensor : {&Problem::q, &Problem::k}) {
      Problem x(c, type, type);
      (x.*tensor).set(0, 40, 0, 3, NAN);
      run_forward(kernels, x);
      for (Index i = 0; i < c.queries; ++i) {
        const bool hit = tensor == &Problem::q ? i == 40 : i >= 40;
        EXPECT_EQ(std::isnan(x.out.get(0, i, 0, 5)), hit) << i;
        EXPECT_EQ(std::isnan(x.lse[static_cast<std::size_t>(i)]), hit) << i;
      }
    }
    Problem x(c, type, type);
    x.v.set(0, 59, 0, 3, NAN);
    run_forward(kernels, x);
    EXPECT_TRUE(std::isnan(x.out.get(0, 59, 0, 3)));
    EXPECT_FALSE(std::isnan(x.out.get(0, 59, 0, 4)));
    Problem y(c, type, type);
    run_forward(kernels, y);
    y.dout.set(0, 50, 0, 3, NAN);
    run_backward(kernels, y);
    EXPECT_TRUE(std::isnan(y.dq.get(0, 50, 0, 1)));
    EXPECT_TRUE(std::isnan(y.dk.get(0, 50, 0, 1)));
    EXPECT_TRUE(std::isnan(y.dv.get(0, 50, 0, 3)));
  });
}

TEST(Attention, StaysFiniteWithScoresOfAnySize) {
  const Case c{.queries = 100, .keys = 100, .dim = 32};
  on_every_table([&](const AttentionKernels& kernels, AttentionType type) {
    for (const float scale : {1e-6f, 30.0f, 3000.0f}) {
      Problem x(c, type, type);
      x.scale = scale;
      run_forward(kernels, x);
      run_backward(kernels, x);
      for (Index i = 0; i < c.queries; ++i) {
        const Row r = reference_row(x, 0, 0, i);
        EXPECT_NEAR(
            x.lse[static_cast<std::size_t>(i)], r.lse,
            1e-6 * std::fabs(r.lse) + 1e-5
        );
        for (Index d = 0; d < c.dim; ++d) {
          EXPECT_TRUE(std::isfinite(x.dq.get(0, i, 0, d)));
          EXPECT_TRUE(std::isfinite(x.dk.get(0, i, 0, d)));
        }
      }
    }
  });
}

TEST(Attention, QuantizedRowsComeBack) {
  Random random{7};
  for (const Index dim : {1, 40, 64, 257}) {
    const Tensor x = make(AttentionType::kBfloat16, 1, 5, 1, dim, &random);
    on_every_table([&](const AttentionKernels& kernels, AttentionType type) {
      Tensor y = make(type, 1, 5, 1, dim, nullptr);
      for (Index t = 0; t < 5; ++t)
        for (Index d = 0; d < dim; ++d) {
          const auto value = static_cast<float>(x.get(0, t, 0, d));
          y.set(0, t, 0, d, t == 3 ? 0.0f : value);
        }
      y.set(0, 4, 0, 0, NAN);
      std::vector<std::int8_t> to(static_cast<std::size_t>(5 * dim), 99);
      std::vector<float> scales(5, -1.0f);
      const AttentionQuantizeArgs args{y.type,    y.data(),
                                       to.data(), scales.data(),
                                       dim,       y.token_stride(),
                                       dim,       1};
      kernels.quantize(args, 0, 2);
      kernels.quantize(args, 2, 5);
      for (Index t = 0; t < 4; ++t) {
        const float scale = scales[static_cast<std::size_t>(t)];
        double largest = 0;
        for (Index d = 0; d < dim; ++d) {
          const double want = y.get(0, t, 0, d);
          const int got = to[static_cast<std::size_t>(t * dim + d)];
          EXPECT_LE(std::fabs(got * scale - want), 0.5001 * scale);
          largest = std::max(largest, std::fabs(want));
        }
        EXPECT_NEAR(scale, largest / 127, 1e-6 * largest);
      }
      EXPECT_TRUE(std::isnan(scales[4]));
    });
  }
}

}  // namespace
}  // namespace hearth::kernels
