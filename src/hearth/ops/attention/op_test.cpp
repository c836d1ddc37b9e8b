// What the op cases do not reach: the fused form against the definition,
// queries that see nothing, the KV cache, and refusals.
#include "hearth/ops/attention/op.h"

#include <cmath>
#include <cstring>

#include "hearth/base/error.h"
#include "hearth/ops/attention/cpu_driver.h"
#include "hearth/ops/op_case_check_impl.h"

namespace hearth::ops {
namespace {

using kernels::AttentionArgs;
using kernels::AttentionType;

class AttentionOp : public testing::Test {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }
};

mx::array ids(std::vector<std::int32_t> values) {
  const int n = static_cast<int>(values.size());
  return mx::array(values.data(), {1, n}, mx::int32);
}

struct Inputs {
  mx::array q, k, v;
};
Inputs inputs(int queries, int keys, int heads, int kv_heads, int dim) {
  return {
      normal_input({1, queries, heads, dim}, mx::float32, 1),
      normal_input({1, keys, kv_heads, dim}, mx::float32, 2),
      normal_input({1, keys, kv_heads, dim}, mx::float32, 3)
  };
}

using Form = mx::array (*)(
    const mx::array&,
    const mx::array&,
    const mx::array&,
    const AttentionOptions&,
    mx::StreamOrDevice
);

Evaluated values_and_gradients(
    Form form,
    const Inputs& x,
    const AttentionOptions& o
) {
  OpCase c;
  c.differentiable = {0, 1, 2};
  const auto f = [&](const Arrays& v) {
    return Arrays{form(v[0], v[1], v[2], o, {})};
  };
  return evaluate(
      c, f, {x.q, x.k, x.v}, {normal_input(x.q.shape(), mx::float32, 4)}
  );
}

void expect_agreement(const Evaluated& got, const Evaluated& want) {
  EXPECT_EQ(first_difference(got.values[0], want.values[0], {1e-5, 1e-5}), "");
  for (std::size_t i = 0; i < want.gradients.size(); ++i) {
    const auto difference =
        first_difference(got.gradients[i], want.gradients[i], {2e-5, 2e-5});
    EXPECT_EQ(difference, "") << "gradient " << i;
  }
}

// Self-attention, a chunk of a longer sequence, and queries around the keys.
TEST_F(AttentionOp, EveryFormAgrees) {
  const std::pair<int, int> lengths[] = {{20, 20}, {7, 30}, {30, 12}};
  for (const auto& [queries, keys] : lengths) {
    const auto x = inputs(queries, keys, 4, 2, 16);
    std::vector<std::int32_t> mine, theirs;
    for (int i = 0; i < queries; ++i) mine.push_back(i / 6);
    for (int j = 0; j < keys; ++j) theirs.push_back(1 + j / 5);
    for (const bool causal : {true, false})
      for (const int window : {0, 4})
        for (const float softcap : {0.0f, 1.5f})
          for (const bool segments : {false, true})
            for (const int shift : {0, 3}) {
              AttentionOptions o;
              o.causal = causal, o.window = window, o.softcap = softcap;
              if (shift != 0) o.query_offset = keys - queries + shift;
              if (segments) {
                o.query_segments = ids(mine);
                o.key_segments = ids(theirs);
              }
              SCOPED_TRACE(
                  std::to_string(queries) + "x" + std::to_string(keys) +
                  (causal ? " causal" : "") + " window " +
                  std::to_string(window) + " cap " + std::to_string(softcap) +
                  (segments ? " segments" : "") + " shift " +
                  std::to_string(shift)
              );
              const auto want = values_and_gradients(attention_reference, x, o);
              expect_agreement(values_and_gradients(attention, x, o), want);
              const ScopedFace gpu(Face::gpu);
              expect_agreement(values_and_gradients(attention, x, o), want);
            }
  }
}

TEST_F(AttentionOp, WhoSeesNothingGetsZeros) {
  const auto x = inputs(3, 3, 1, 1, 8);
  AttentionOptions o;
  o.query_segments = ids({0, 1, 2});
  o.key_segments = ids({0, 5, 2});
  for (const Face face : {Face::kernels, Face::gpu, Face::reference}) {
    const ScopedFace forced(face);
    const auto e = values_and_gradients(attention, x, o);
    const auto y = values_of(e.values[0]);
    for (std::size_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(y[i] == 0, i / 8 == 1) << i;
    }
    for (const auto& g : e.gradients) {
      for (const double d : values_of(g)) EXPECT_TRUE(std::isfinite(d));
    }
  }
}

TEST_F(AttentionOp, ScratchDoesNotGrowWithTheSquareOfTheLength) {
  for (const kernels::Table* table : kernels::usable_tables()) {
    AttentionArgs a;
    a.dim = 64, a.query_type = a.kv_type = AttentionType::kBfloat16;
    const auto forward = [&](std::ptrdiff_t n) {
      a.queries = a.keys = n;
      return table->attention->forward_scratch(a);
    };
    const auto backward = [&](std::ptrdiff_t n) {
      a.queries = a.keys = n;
      return table->attention->backward_scratch({a, {}, {}, {}, {}});
    };
    EXPECT_EQ(forward(1 << 20), forward(1 << 10)) << table->isa;
    EXPECT_LE(backward(1 << 14), 16 * backward(1 << 10)) << table->isa;
  }
}

// One sequence of a cache that has room for more tokens than it holds.
struct Sequence {
  mx::array q, k, v;
  std::vector<std::int8_t> k8, v8;
  std::vector<float> ks, vs, out;
  AttentionArgs args;
};

// Rounds x [1, tokens, heads, dim] to int8 and makes it what it rounds to.
void quantize(
    mx::array& x,
    std::vector<std::int8_t>& to,
    std::vector<float>& scales
) {
  const auto dim = static_cast<std::size_t>(x.shape(3));
  auto values = values_of(x);
  for (std::size_t i = 0; i < values.size(); i += dim) {
    double largest = 0;
    for (std::size_t d = 0; d < dim; ++d) {
      largest = std::max(largest, std::abs(values[i + d]));
    }
    scales.push_back(static_cast<float>(largest / 127));
    for (std::size_t d = 0; d < dim; ++d) {
      const double n = std::round(values[i + d] / scales.back());
      to.push_back(static_cast<std::int8_t>(n));
      values[i + d] = n * scales.back();
    }
  }
  x = mx::array(values.data(), x.shape(), mx::float64);
}

Sequence sequence(int queries, int keys, AttentionType cache) {
  constexpr int kHeads = 6, kKv = 2, kDim = 64;
  const auto seed = static_cast<std::uint64_t>(1000 * queries + keys);
  const auto make = [&](int n, int heads, std::uint64_t i) {
    return normal_input({1, n, heads, kDim}, mx::bfloat16, seed + i);
  };
  Sequence s{
      make(queries, kHeads, 1),
      make(keys, kKv, 2),
      make(keys, kKv, 3),
      {},
      {},
      {},
      {},
      {},
      {}
  };
  AttentionArgs& a = s.args;
  a.heads = kHeads, a.kv_heads = kKv, a.queries = queries, a.keys = keys;
  a.dim = kDim, a.scale = 0.125f, a.causal = true;
  a.query_offset = keys - queries;
  a.query_type = AttentionType::kFloat32;
  a.kv_type = cache;
  s.q = mx::astype(s.q, mx::float32);
  s.q.eval();
  a.q = {s.q.data<float>(), 0, kHeads * kDim, kDim};
  if (cache == AttentionType::kBfloat16) {
    a.k = {s.k.data<void>(), 0, kKv * kDim, kDim};
    a.v = {s.v.data<void>(), 0, kKv * kDim, kDim};
  } else {
    quantize(s.k, s.k8, s.ks);
    quantize(s.v, s.v8, s.vs);
    a.k = {s.k8.data(), 0, kKv * kDim, kDim};
    a.v = {s.v8.data(), 0, kKv * kDim, kDim};
    a.k_scale = {s.ks.data(), 0, kKv, 1};
    a.v_scale = {s.vs.data(), 0, kKv, 1};
  }
  s.out.assign(static_cast<std::size_t>(queries * kHeads * kDim), NAN);
  a.out = {s.out.data(), 0, kHeads * kDim, kDim};
  return s;
}

TEST_F(AttentionOp, CacheMatchesTheReference) {
  ThreadPool pool(3);
  for (const kernels::Table* table : kernels::usable_tables()) {
    for (const auto cache : {AttentionType::kBfloat16, AttentionType::kInt8}) {
      SCOPED_TRACE(
          std::string(table->isa) +
          (cache == AttentionType::kInt8 ? " int8" : " bf16")
      );
      std::vector<Sequence> all;
      const std::pair<int, int> lengths[] = {
          {1, 1}, {1, 700}, {4, 1500}, {100, 300}
      };
      for (const auto& [queries, keys] : lengths) {
        all.push_back(sequence(queries, keys, cache));
      }
      std::vector<AttentionArgs> args;
      for (const auto& s : all) args.push_back(s.args);
      CachedAttention attend(MemoryZone::named("test cache"));
      attend(args, {pool, *table});
      for (const auto& s : all) {
        const auto want = attention_reference(
            to_float64(s.q), to_float64(s.k), to_float64(s.v)
        );
        const auto got = mx::array(s.out.data(), s.q.shape(), mx::float32);
        EXPECT_EQ(first_difference(got, want, {1e-5, 1e-5}), "");
      }
    }
  }
}

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const UsageError& e) {
    return e.what();
  }
  return "not refused";
}

TEST_F(AttentionOp, RefusesWhatDoesNotFit) {
  const auto x = inputs(4, 4, 4, 2, 8);
  const auto with = [&](auto change) {
    AttentionOptions o;
    change(o);
    return refusal([&] { attention(x.q, x.k, x.v, o); });
  };
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(with([](auto& o) { o.window = -1; }), "window must not be negative");
  has(with([](auto& o) { o.softcap = -1; }), "softcap must not be negative");
  has(with([](auto& o) { o.scale = -1; }), "scale must be positive");
  has(with([](auto& o) { o.key_segments = ids({0, 0, 0, 0}); }),
      "must come with query segments");
  has(with([](auto& o) { o.query_segments = ids({0, 0}); }),
      "segment ids must be [batch, tokens], got [1, 2]");
  has(refusal([&] { attention(x.q, x.k, x.q); }),
      "k and v must have one shape");
  has(refusal([&] { attention(x.k, x.q, x.q); }),
      "multiple of kv heads, got 2");
  has(refusal([&] { attention_qkv(x.q, 4, 2); }), "heads + 2 kv_heads");
  const auto wide = normal_input({1, 2, 1, 264}, mx::float32, 1);
  has(refusal([&] { attention(wide, wide, wide); }), "1 to 256, got 264");
  const auto whole = mx::astype(x.q, mx::int32);
  has(refusal([&] { attention(whole, whole, whole); }), "one floating dtype");
  AttentionArgs a;
  a.dim = 8, a.kv_type = AttentionType::kInt8;
  CachedAttention attend(MemoryZone::named("test cache"));
  has(refusal([&] { attend({&a, 1}, current_execution()); }),
      "must come with its scales");
}

}  // namespace
}  // namespace hearth::ops
