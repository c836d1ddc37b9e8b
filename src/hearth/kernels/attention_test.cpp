// Every usable table against attention in double precision.
#include "hearth/kernels/attention.h"

#include <functional>

#include <gtest/gtest.h>

#include "hearth/kernels/attention/problem_test_impl.h"
#include "hearth/kernels/table.h"

namespace hearth::kernels {
namespace {

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
      {.name = "capped_wide_head",
       .heads = 2,
       .kv_heads = 1,
       .queries = 70,
       .keys = 301,
       .dim = 256,
       .softcap = 2},
      {.name = "capped_wide_head_in_a_window",
       .queries = 170,
       .keys = 170,
       .dim = 256,
       .window = 50,
       .softcap = 2},
      {.name = "odd_head", .queries = 33, .keys = 33, .dim = 80},
      {.name = "chunked_prefill",
       .heads = 4,
       .kv_heads = 2,
       .queries = 37,
       .keys = 301,
       .dim = 64},
      {.name = "cross", .queries = 90, .keys = 31, .dim = 32, .causal = false},
      {.name = "more_queries_than_keys", .queries = 40, .keys = 20, .dim = 32},
      {.name = "thousands_of_keys", .queries = 70, .keys = 2085, .dim = 32},
      {.name = "a_thousand_queries",
       .queries = 1057,
       .keys = 1057,
       .dim = 24,
       .window = 300},
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

// Bit for bit, the NaN between rows too.
void expect_same(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.bf16, b.bf16);
  ASSERT_EQ(a.fp32.size(), b.fp32.size());
  if (a.fp32.empty()) return;
  EXPECT_EQ(std::memcmp(a.fp32.data(), b.fp32.data(), a.fp32.size() * 4), 0);
}

TEST(Attention, LongOnesDoNotDependOnTheSplit) {
  const Case c{.queries = 1100, .keys = 2100, .dim = 32, .window = 1500};
  on_every_table([&](const AttentionKernels& kernels, AttentionType type) {
    Problem one(c, type, type), many(c, type, type);
    run_forward(kernels, one);
    run_forward(kernels, many, 3);
    EXPECT_EQ(one.lse, many.lse);
    expect_same(one.out, many.out);
  });
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
    EXPECT_EQ(one.lse, many.lse);
    expect_same(one.out, many.out);
    expect_same(one.dq, many.dq);
    expect_same(one.dk, many.dk);
    expect_same(one.dv, many.dv);

    Problem once(c, type, type), often(c, type, type);
    once.c.queries = often.c.queries = 2;
    once.offset = often.offset = 298;
    run_decode(kernels, once), run_decode(kernels, often, 4);
    expect_same(once.out, often.out);
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
