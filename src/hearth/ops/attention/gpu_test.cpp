// The ways a GPU's attention takes: which is taken, and that each computes the
// same.
#include <cmath>

#include <gtest/gtest.h>

#include "hearth/ops/attention/gpu_document_codes_impl.h"
#include "hearth/ops/attention/gpu_ways_impl.h"
#include "hearth/ops/op_case_check_impl.h"

namespace hearth::ops {
namespace {

class GpuAttention : public testing::Test {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }
  const ScopedFace gpu{Face::gpu};
};

AttentionTensors tensors(int batch, int tokens, int dim = 16) {
  const auto make = [&](int heads, std::uint64_t seed) {
    return normal_input({batch, heads, tokens, dim}, mx::float32, seed);
  };
  return {make(4, 1), make(2, 2), make(2, 3)};
}

ResolvedOptions resolved(const AttentionTensors& t, const AttentionOptions& o) {
  return resolve(
      "test", heads_first(t.q, {}), heads_first(t.k, {}), heads_first(t.v, {}),
      o, {}
  );
}

// Documents of so many tokens each.
mx::array documents(int batch, int tokens, int each) {
  std::vector<std::int32_t> ids;
  for (int b = 0; b < batch; ++b)
    for (int i = 0; i < tokens; ++i) ids.push_back((i + 3 * b % each) / each);
  return mx::array(ids.data(), {batch, tokens}, mx::int32);
}

Evaluated by(
    AttentionWay way,
    const AttentionTensors& t,
    const ResolvedOptions& o
) {
  OpCase c;
  c.differentiable = {0, 1, 2};
  const auto f = [&](const Arrays& v) {
    return Arrays{attention_by(way, {v[0], v[1], v[2]}, o, {})};
  };
  return evaluate(
      c, f, {t.q, t.k, t.v}, {normal_input(t.q.shape(), mx::float32, 4)}
  );
}

void expect_same(const Evaluated& got, const Evaluated& want) {
  EXPECT_EQ(first_difference(got.values[0], want.values[0], {4e-5, 4e-5}), "");
  for (std::size_t i = 0; i < want.gradients.size(); ++i) {
    const auto difference =
        first_difference(got.gradients[i], want.gradients[i], {8e-5, 8e-5});
    EXPECT_EQ(difference, "") << "gradient " << i;
  }
}

TEST_F(GpuAttention, TakesTheWayThatNeedsLeast) {
  const auto t = tensors(1, 400);
  const auto way = [&](const AttentionOptions& o) {
    return attention_way(t, resolved(t, o), {});
  };
  AttentionOptions packed, wide, narrow, shifted;
  packed.query_segments = documents(1, 400, 30);
  wide.window = 250, narrow.window = 20, shifted.query_offset = 1;
  EXPECT_EQ(way({}), AttentionWay::fused);
  EXPECT_EQ(way({.causal = false}), AttentionWay::fused);
  EXPECT_EQ(way({.softcap = 30}), AttentionWay::capped);
  EXPECT_EQ(way(narrow), AttentionWay::banded);
  EXPECT_EQ(way(wide), AttentionWay::masked);
  EXPECT_EQ(way(shifted), AttentionWay::masked);
  // A CPU's scores are not the fused kernel's: codes are not for it.
  EXPECT_EQ(way(packed), AttentionWay::masked);
}

TEST_F(GpuAttention, CodesKeepDocumentsApart) {
  const auto t = tensors(2, 150);
  for (const int each : {1, 7, 40, 150}) {
    AttentionOptions o;
    o.query_segments = documents(2, 150, each);
    const auto r = resolved(t, o);
    SCOPED_TRACE(each);
    expect_same(by(AttentionWay::coded, t, r), by(AttentionWay::masked, t, r));
  }
}

TEST_F(GpuAttention, BandsSeeWhatAWindowSees) {
  for (const int tokens : {257, 300, 512}) {
    const auto t = tensors(2, tokens);
    for (const int window : {1, 100, 128})
      for (const bool packed : {false, true}) {
        AttentionOptions o;
        o.window = window;
        if (packed) o.query_segments = documents(2, tokens, 60);
        const auto r = resolved(t, o);
        SCOPED_TRACE(std::to_string(tokens) + " " + std::to_string(window));
        expect_same(
            by(AttentionWay::banded, t, r), by(AttentionWay::masked, t, r)
        );
      }
  }
}

// A cap too high to be felt, in more than one part.
TEST_F(GpuAttention, PartsOfCappedScoresAreOneWhole) {
  const auto t = tensors(2, 600);
  for (const int window : {0, 90})
    for (const bool packed : {false, true}) {
      AttentionOptions o;
      o.window = window;
      if (packed) o.query_segments = documents(2, 600, 200);
      auto r = resolved(t, o);
      const auto want = by(AttentionWay::masked, t, r);
      r.softcap = 1e4f;
      SCOPED_TRACE(std::to_string(window) + (packed ? " packed" : ""));
      expect_same(by(AttentionWay::capped, t, r), want);
    }
}

// Every two codes of a row, and of a long row some.
TEST_F(GpuAttention, NoTwoCodesAreNear) {
  constexpr float kScale = 0.125f;
  for (const int tokens : {2047, 2048}) {
    const auto ids = mx::arange(0, tokens, mx::int32);
    auto codes = mx::squeeze(
        document_codes(mx::reshape(ids, {1, tokens}), kScale, mx::bfloat16, {}),
        0
    );
    EXPECT_EQ(codes.shape(1), tokens < 2048 ? 16 : 32);
    codes = mx::astype(codes, mx::float32);
    const auto products = mx::multiply(
        mx::matmul(codes, mx::transpose(codes)), mx::array(kScale)
    );
    const auto own = mx::diag(products);
    EXPECT_EQ(mx::max(own).item<float>(), mx::min(own).item<float>());
    const auto others =
        mx::subtract(products, mx::multiply(mx::eye(tokens), mx::array(1e6f)));
    const float apart =
        mx::min(own).item<float>() - mx::max(others).item<float>();
    EXPECT_GT(apart, 120) << tokens;
  }
  EXPECT_EQ(document_code_width(65535), 32);
  EXPECT_EQ(document_code_width(65536), std::nullopt);
}

}  // namespace
}  // namespace hearth::ops
