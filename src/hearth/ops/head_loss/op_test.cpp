// What the case table does not ask of head_loss: log probabilities, chunks,
// dropped tokens, extreme logits, companions, memory, refusals.
#include "hearth/ops/head_loss/op.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/ops/gemm.h"
#include "hearth/ops/head_loss/cpu_chunks.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

class HeadLossOp : public testing::Test {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }
};

bool same(mx::array a, mx::array b) {
  mx::eval(a, b);
  return a.nbytes() == b.nbytes() &&
         std::memcmp(a.data<char>(), b.data<char>(), a.nbytes()) == 0;
}
double distance(const mx::array& a, const mx::array& b) {
  const auto wide = [](const mx::array& x) {
    return mx::astype(x, mx::float32);
  };
  return mx::max(mx::abs(mx::subtract(wide(a), wide(b)))).item<float>();
}

struct Problem {
  mx::array h, w, targets, weights;
  Problem(int tokens, int vocabulary, int k, mx::Dtype t)
      : h(normal_input({tokens, k}, t, 1)),
        w(normal_input({vocabulary, k}, t, 2, 0.2f)),
        targets(integer_input({tokens}, vocabulary, 3)),
        weights(uniform_input({tokens}, mx::float32, 4)) {}
};

// Loss, log probabilities, dh, dw.
Arrays evaluated(
    const Problem& p,
    const HeadLossOptions& options = {},
    const std::shared_ptr<const PackedWeight>& packed = nullptr
) {
  mx::array log_probs = p.weights;
  auto [loss, g] = mx::vjp(
      [&](const Arrays& v) {
        const auto l =
            head_loss(v[0], v[1], p.targets, p.weights, options, {}, packed);
        log_probs = l.log_probs;
        return Arrays{l.loss_sum};
      },
      {p.h, p.w}, {mx::array(1.0f)}
  );
  Arrays all{loss[0], log_probs, g[0], g[1]};
  mx::eval(all);
  return all;
}

TEST_F(HeadLossOp, LogProbsAreThoseOfTheReference) {
  for (const auto t : {mx::float32, mx::bfloat16}) {
    const Problem p(40, 90, 24, t);
    const auto want = head_loss_reference(p.h, p.w, p.targets, p.weights);
    EXPECT_LT(distance(evaluated(p)[1], want.log_probs), 2e-5);
    const auto alone = head_log_probs(p.h, p.w, p.targets);
    EXPECT_LT(distance(alone, want.log_probs), 2e-5);
    EXPECT_EQ(evaluated(p)[3].dtype(), mx::float32);
  }
}

// The two-step form that the fused one is measured against: the same loss and
// gradients, with dropped tokens, smoothing and a cap.
TEST_F(HeadLossOp, UnfusedIsTheSameLoss) {
  Problem p(40, 90, 24, mx::float32);
  p.targets = mx::where(
      mx::less(mx::arange(40), mx::array(3)), mx::array(-1), p.targets
  );
  LossTerms terms;
  terms.label_smoothing = 0.1f, terms.z_loss = 1e-3f, terms.soft_cap = 20;
  const auto all = [&](auto&& loss_of) {
    auto [loss, g] = mx::vjp(
        [&](const Arrays& v) { return Arrays{loss_of(v[0], v[1]).loss_sum}; },
        {p.h, p.w}, {mx::array(1.0f)}
    );
    return Arrays{loss[0], g[0], g[1]};
  };
  auto want = all([&](const mx::array& h, const mx::array& w) {
    return head_loss_reference(h, w, p.targets, p.weights, terms);
  });
  auto got = all([&](const mx::array& h, const mx::array& w) {
    return head_loss_unfused(h, w, p.targets, p.weights, terms);
  });
  EXPECT_NEAR(got[0].item<float>(), want[0].item<float>(), 1e-3);
  EXPECT_LT(distance(got[1], want[1]), 1e-5);
  EXPECT_LT(distance(got[2], want[2]), 1e-5);
}

// The smallest chunks against one: the same losses, and gradients that differ
// by no more than the order of a sum.
TEST_F(HeadLossOp, ChunksDoNotMatter) {
  for (const auto t : {mx::float32, mx::bfloat16}) {
    const Problem p(150, 90, 24, t);
    HeadLossOptions small;
    small.scratch_limit = 1;
    const auto a = evaluated(p), b = evaluated(p, small);
    EXPECT_TRUE(same(a[0], b[0]));
    EXPECT_TRUE(same(a[1], b[1]));
    EXPECT_TRUE(same(a[2], b[2]));
    EXPECT_LT(distance(a[3], b[3]), 1e-5);
  }
}

TEST_F(HeadLossOp, DroppedTokensAreNeverLookedAt) {
  for (const auto t : {mx::float32, mx::bfloat16}) {
    Problem p(9, 20, 8, t);
    const auto row = mx::arange(9);
    const auto column = mx::expand_dims(row, -1);
    const auto dropped = mx::equal(column, mx::array(4));
    p.targets =
        mx::where(mx::equal(row, mx::array(4)), mx::array(-100), p.targets);
    const auto clean = evaluated(p);
    const auto nan = mx::full(p.h.shape(), NAN, t);
    p.h = mx::where(dropped, nan, p.h);
    const auto with_nan = evaluated(p);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_TRUE(same(clean[i], with_nan[i])) << i;
    }
    const auto of_row = mx::take(clean[2], 4, 0);
    EXPECT_EQ(distance(of_row, mx::zeros_like(of_row)), 0.0);
  }
}

TEST_F(HeadLossOp, NothingCounts) {
  Problem p(5, 20, 8, mx::bfloat16);
  p.weights = mx::zeros({5});
  const auto out = evaluated(p);
  EXPECT_EQ(out[0].item<float>(), 0.0f);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(distance(out[i], mx::zeros_like(out[i])), 0.0) << i;
  }
}

// Logits that grow by hundreds from one stretch of the vocabulary to the next
// move the running maximum; those of a negative lse flip the z-loss's sign.
TEST_F(HeadLossOp, ExtremeLogits) {
  const int vocabulary = 5000, k = 4;
  Problem p(6, vocabulary, k, mx::bfloat16);
  const auto ramp = mx::reshape(
      mx::multiply(mx::arange(0, vocabulary, mx::float32), mx::array(0.2f)),
      {vocabulary, 1}
  );
  p.w = mx::astype(
      mx::add(mx::multiply(p.w, mx::array(2.0f)), ramp), mx::bfloat16
  );
  p.h = mx::astype(mx::abs(p.h), mx::bfloat16);
  const auto h = mx::astype(p.h, mx::float32);
  for (const float sign : {1.0f, -1.0f}) {
    p.h = mx::astype(mx::multiply(h, mx::array(sign)), mx::bfloat16);
    HeadLossOptions options;
    options.terms.z_loss = 1e-3f;
    const auto got = evaluated(p, options);
    auto [loss, g] = mx::vjp(
        [&](const Arrays& v) {
          return Arrays{head_loss_reference(
                            v[0], v[1], p.targets, p.weights, options.terms
          )
                            .loss_sum};
        },
        {mx::astype(p.h, mx::float32), mx::astype(p.w, mx::float32)},
        {mx::array(1.0f)}
    );
    const float scale = std::abs(loss[0].item<float>());
    EXPECT_NEAR(got[0].item<float>(), loss[0].item<float>(), 1e-5f * scale);
    for (std::size_t i = 0; i < 2; ++i) {
      const float largest = mx::max(mx::abs(g[i])).item<float>();
      EXPECT_LT(distance(got[2 + i], g[i]), 1e-2 * largest) << sign << i;
    }
  }
}

TEST_F(HeadLossOp, PackedCompanionChangesNothing) {
  for (const auto t : {mx::float32, mx::bfloat16}) {
    const Problem p(40, 90, 24, t);
    mx::eval(p.w);
    const auto operand = t == mx::bfloat16 ? kernels::GemmScalar::bf16
                                           : kernels::GemmScalar::f32;
    for (const auto orders : {PackedOrders::both, PackedOrders::forward}) {
      auto packed = std::make_shared<PackedWeight>(
          90, 24, operand, MemoryZone::named("head loss test"), orders
      );
      packed->refresh(p.w.data<void>(), operand, {0, 90});
      const auto a = evaluated(p), b = evaluated(p, {}, packed);
      for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(same(a[i], b[i])) << i;
    }
  }
}

TEST_F(HeadLossOp, InputGradientAlone) {
  const Problem p(40, 90, 24, mx::bfloat16);
  HeadLossOptions options;
  options.weight_gradient = false;
  const auto loss = [&](const Arrays& v) {
    return Arrays{head_loss(v[0], p.w, p.targets, p.weights, options).loss_sum};
  };
  const auto g = mx::vjp(loss, {p.h}, {mx::array(1.0f)}).second;
  EXPECT_TRUE(same(g[0], evaluated(p)[2]));
  EXPECT_THROW(evaluated(p, options), Error);
}

TEST_F(HeadLossOp, TargetsBeyondTheVocabularyMakeTheLossNan) {
  Problem p(5, 20, 8, mx::float32);
  p.targets = mx::array({1, 2, 20, 3, 4});
  EXPECT_TRUE(std::isnan(evaluated(p)[0].item<float>()));
}

// What DESIGN promises of the op's memory, at the size it promises it for.
TEST_F(HeadLossOp, ScratchStaysWithinTheLimit) {
  for (const kernels::Table* table : kernels::usable_tables()) {
    float unused = 0;
    HeadLossTask t;
    t.tokens = 8192;
    t.vocabulary = 24576;
    t.dim = 384;
    t.type = t.w_type = kernels::GemmScalar::bf16;
    t.scratch_limit = HeadLossOptions{}.scratch_limit;
    t.dh = t.dw = &unused;
    const auto bytes =
        head_loss_scratch_bytes(t, gemm_family(*table, t.type), 2);
    EXPECT_LT(bytes, 64'000'000u) << table->isa;
  }
}

TEST_F(HeadLossOp, RefusesWhatDoesNotFit) {
  const Problem p(5, 20, 8, mx::float32);
  const auto refused = [&](const HeadLossOptions& o, const Teacher& t = {}) {
    EXPECT_THROW(head_loss(p.h, p.w, p.targets, p.weights, o, t), UsageError);
  };
  EXPECT_THROW(head_loss(p.h, p.targets, p.targets), UsageError);
  EXPECT_THROW(head_loss(p.h, mx::zeros({20, 7}), p.targets), UsageError);
  EXPECT_THROW(head_loss(p.h, p.w, mx::array({1, 2})), UsageError);
  EXPECT_THROW(head_loss(p.h, p.w, p.weights), UsageError);
  EXPECT_THROW(head_loss(p.h, p.w, p.targets, mx::ones({4})), UsageError);
  HeadLossOptions o;
  o.terms.temperature = 0;
  refused(o);
  o = {};
  o.terms.label_smoothing = 2;
  refused(o);
  o = {};
  o.terms.soft_cap = -1;
  refused(o);
  o = {};
  refused(o, {.logits = mx::zeros({5, 20}), .indices = {}, .log_probs = {}});
  o.terms.divergence = Divergence::forward_kl;
  refused(o);
  refused(o, {.logits = mx::zeros({5, 19}), .indices = {}, .log_probs = {}});
  const auto indices = mx::zeros({5, 3}, mx::int32);
  refused(o, {.logits = {}, .indices = indices, .log_probs = {}});
  refused(
      o, {.logits = {}, .indices = indices, .log_probs = mx::zeros({5, 2})}
  );
}

}  // namespace
}  // namespace hearth::ops
