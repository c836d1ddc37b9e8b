// A cache that is filled, cut and forked against attention over all of its
// rows, in float64.
#include "hearth/ops/kv_cache/op.h"

#include <gtest/gtest.h>

#include "hearth/ops/attention/op.h"
#include "hearth/ops/op_case.h"
#include "hearth/ops/op_case_check_impl.h"

namespace hearth::ops {
namespace {

constexpr int kHeads = 4, kKv = 2, kDim = 16;

struct Rows {
  mx::array q, k, v;

  Rows part(int begin, int end) const {
    const auto cut = [&](const mx::array& x) {
      return mx::contiguous(
          mx::slice(x, {0, begin, 0, 0}, {1, end, x.shape(2), x.shape(3)})
      );
    };
    return {cut(q), cut(k), cut(v)};
  }
  Rows then(const Rows& more) const {
    const auto both = [](const mx::array& a, const mx::array& b) {
      return mx::concatenate({a, b}, 1);
    };
    return {both(q, more.q), both(k, more.k), both(v, more.v)};
  }
};

Rows rows(int n, std::uint64_t seed) {
  const auto make = [&](int heads, std::uint64_t i) {
    return normal_input({1, n, heads, kDim}, mx::float32, seed * 10 + i);
  };
  return {make(kHeads, 1), make(kKv, 2), make(kKv, 3)};
}

// What the last rows of a text see of all of it.
mx::array want(const Rows& all, int last, const AttentionOptions& options) {
  const auto wide = [](const mx::array& x) {
    return mx::astype(x, mx::float64, mx::Device::cpu);
  };
  const auto y =
      attention_reference(wide(all.q), wide(all.k), wide(all.v), options);
  const int n = y.shape(1);
  return mx::slice(y, {0, n - last, 0, 0}, {1, n, kHeads, kDim});
}

class KvCacheRows : public testing::TestWithParam<std::tuple<int, Face>> {
 protected:
  void SetUp() override {
    mx::set_default_device(mx::Device::cpu);
    options.causal = true;
    options.window = std::get<0>(GetParam());
  }
  void expect_step(
      const std::shared_ptr<KvCache>& cache,
      const Rows& before,
      const Rows& step
  ) const {
    auto got = cached_attention(step.q, step.k, step.v, cache, options);
    const int n = step.q.shape(1);
    EXPECT_EQ(
        first_difference(
            got, want(before.then(step), n, options), {1e-4, 1e-4}
        ),
        ""
    );
  }
  static std::shared_ptr<KvCache> empty() {
    return std::make_shared<KvCache>(kKv, kDim, mx::float32);
  }
  void fill(const std::shared_ptr<KvCache>& cache, const Rows& r) const {
    cached_attention(r.q, r.k, r.v, cache, options).eval();
  }
  AttentionOptions options;
  const ScopedFace face{std::get<1>(GetParam())};
};

TEST_P(KvCacheRows, StepsSeeWhatCameBefore) {
  const Rows text = rows(30, 1);
  const auto cache = empty();
  fill(cache, text.part(0, 12));
  for (int at = 12; at < 15; ++at) {
    expect_step(cache, text.part(0, at), text.part(at, at + 1));
  }
  expect_step(cache, text.part(0, 15), text.part(15, 30));
}

TEST_P(KvCacheRows, AForkBeginsTheSameAndGoesItsOwnWay) {
  const Rows text = rows(20, 2), other = rows(6, 3);
  const auto cache = empty();
  fill(cache, text);
  const auto forked = cache->fork(13);
  EXPECT_EQ(forked->length(), 13);
  expect_step(forked, text.part(0, 13), other);
  // What it came from has not heard of it.
  expect_step(cache, text, rows(2, 4));
}

TEST_P(KvCacheRows, WhatIsCutOffIsForgotten) {
  const Rows text = rows(20, 5), other = rows(3, 6);
  const auto cache = empty();
  fill(cache, text);
  cache->truncate(9);
  expect_step(cache, text.part(0, 9), other);
}

INSTANTIATE_TEST_SUITE_P(
    Windows,
    KvCacheRows,
    testing::Combine(
        testing::Values(0, 5),
        testing::Values(Face::kernels, Face::gpu)
    )
);

// A GPU's steps write into the room that is there. `page` is in tokens.
TEST(KvCacheOnAGpu, GrowsByPagesAndNotByTokens) {
  mx::set_default_device(mx::Device::cpu);
  const ScopedFace gpu(Face::gpu);
  for (const int page : {0, 16}) {
    const auto cache = std::make_shared<KvCache>(kKv, kDim, mx::float32, page);
    const auto room = [&](int tokens) {
      return std::size_t(2) * tokens * kKv * kDim * sizeof(float);
    };
    const int step = page > 0 ? page : 256;
    for (const int n : {1, step - 2, 1, 1}) {
      const Rows r = rows(n, 9);
      cached_attention(r.q, r.k, r.v, cache).eval();
      EXPECT_EQ(
          cache->nbytes(), room(cache->length() <= step ? step : 2 * step)
      ) << cache->length();
    }
  }
}

// Codes and scales, not the rows themselves.
TEST(KvCacheOnAGpu, KeepsInt8AsInt8) {
  mx::set_default_device(mx::Device::cpu);
  const ScopedFace gpu(Face::gpu);
  const auto cache = std::make_shared<KvCache>(kKv, kDim, mx::int8);
  Rows text = rows(20, 7);
  text.v = mx::multiply(text.v, mx::array(100.0f));
  text.k = mx::where(
      mx::reshape(mx::less(mx::arange(20), mx::array(3)), {1, 20, 1, 1}),
      mx::array(0.0f), text.k
  );
  const auto got = cached_attention(text.q, text.k, text.v, cache);
  EXPECT_EQ(cache->nbytes(), std::size_t(2) * 256 * kKv * (kDim + 4));
  EXPECT_EQ(first_difference(got, want(text, 20, {}), {3, 2e-2}), "");
}

}  // namespace
}  // namespace hearth::ops
