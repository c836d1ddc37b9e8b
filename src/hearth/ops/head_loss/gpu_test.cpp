// What the case table does not ask of the head and loss as a GPU runs them:
// chunks, dropped tokens, float16, memory, an outer compile, refusals. On a CPU
// stream, whose graph is the same.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/ops/head_loss/faces_impl.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

double apart(const mx::array& a, const mx::array& b) {
  const auto wide = [](const mx::array& x) {
    return mx::astype(x, mx::float32);
  };
  return mx::max(mx::abs(mx::subtract(wide(a), wide(b)))).item<float>();
}

struct Problem {
  mx::array h, w, targets, weights;
  HeadLossOptions options;
  Teacher teacher;
  Problem(int tokens, int vocabulary, int k, mx::Dtype t)
      : h(normal_input({tokens, k}, t, 1)),
        w(normal_input({vocabulary, k}, t, 2, 0.2f)),
        targets(integer_input({tokens}, vocabulary, 3)),
        weights(uniform_input({tokens}, mx::float32, 4)) {}

  // Loss, log probabilities, dh, dw, with the loss multiplied by `by`.
  Arrays run(int chunk, float by = 1) const {
    mx::array log_probs = weights;
    auto [loss, g] = mx::vjp(
        [&](const Arrays& v) {
          const auto l = head_loss_gpu(
              v[0], v[1], targets, weights, options, teacher, {}, chunk
          );
          log_probs = l.log_probs;
          return Arrays{l.loss_sum};
        },
        {h, w}, {mx::array(by)}
    );
    Arrays all{loss[0], log_probs, g[0], g[1]};
    mx::eval(all);
    return all;
  }
};

class HeadLossGpu : public testing::Test {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }
};

void expect_same(const Arrays& a, const Arrays& b, double limit) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].shape(), b[i].shape()) << i;
    EXPECT_EQ(a[i].dtype(), b[i].dtype()) << i;
    const double size = apart(b[i], mx::zeros_like(b[i]));
    EXPECT_LE(apart(a[i], b[i]), limit * std::max(1.0, size)) << i;
  }
}

// Chunks that do not divide the tokens against one: nothing but the order of
// the weight's gradient's sum.
TEST_F(HeadLossGpu, ChunksDoNotMatter) {
  Problem p(150, 90, 24, mx::float32);
  expect_same(p.run(37), p.run(1000), 2e-5);
  p.options.terms.label_smoothing = 0.1f;
  p.options.terms.soft_cap = 5;
  p.options.terms.divergence = Divergence::forward_kl;
  p.options.terms.divergence_weight = 0.5f;
  p.options.terms.temperature = 2;
  p.teacher.logits = normal_input({150, 90}, mx::bfloat16, 7);
  expect_same(p.run(64), p.run(1000), 2e-5);
  p.teacher.logits.reset();
  p.teacher.indices = mx::broadcast_to(mx::array({3, 8, 70}), {150, 3});
  p.teacher.log_probs = mx::full({150, 3}, -1.5f);
  expect_same(p.run(64), p.run(1000), 2e-5);
}

TEST_F(HeadLossGpu, LogProbabilitiesAndTheirGradientsInChunks) {
  const Problem p(150, 90, 24, mx::float32);
  const auto run = [&](int chunk) {
    auto [y, g] = mx::vjp(
        [&](const Arrays& v) {
          return Arrays{
              head_log_probs_gpu(v[0], v[1], p.targets, 3, {}, chunk)
          };
        },
        {p.h, p.w}, {p.weights}
    );
    return Arrays{y[0], g[0], g[1]};
  };
  const auto want = head_log_probs_reference(p.h, p.w, p.targets, 3);
  EXPECT_LT(apart(run(64)[0], want), 2e-5);
  expect_same(run(64), run(1000), 2e-5);
}

TEST_F(HeadLossGpu, DroppedTokensAreNeverLookedAt) {
  for (const bool smooth : {false, true}) {
    Problem p(9, 20, 8, mx::bfloat16);
    p.options.terms.label_smoothing = smooth ? 0.1f : 0;
    const auto row = mx::equal(mx::arange(9), mx::array(4));
    p.targets = mx::where(row, mx::array(-100), p.targets);
    const auto clean = p.run(4);
    p.h = mx::where(
        mx::expand_dims(row, -1), mx::full(p.h.shape(), NAN, mx::bfloat16), p.h
    );
    expect_same(p.run(4), clean, 1e-12);
    EXPECT_EQ(apart(mx::take(clean[2], 4, 0), mx::zeros({8})), 0.0);
  }
}

TEST_F(HeadLossGpu, TargetsBeyondTheVocabularyMakeTheLossNan) {
  Problem p(5, 20, 8, mx::float32);
  p.targets = mx::array({1, 2, 20, 3, 4});
  EXPECT_TRUE(std::isnan(p.run(0)[0].item<float>()));
}

TEST_F(HeadLossGpu, NoTokensAndNothingCounts) {
  Problem p(5, 20, 8, mx::bfloat16);
  p.weights = mx::zeros({5});
  for (const auto& a : p.run(2)) {
    EXPECT_EQ(apart(a, mx::zeros_like(a)), 0.0);
  }
  const Problem none(0, 20, 8, mx::bfloat16);
  const auto out = none.run(2);
  EXPECT_EQ(out[0].item<float>(), 0.0f);
  EXPECT_EQ(out[2].shape(), (mx::Shape{0, 8}));
  EXPECT_EQ(apart(out[3], mx::zeros({20, 8})), 0.0);
}

// Weights of 1e-5 a token, as a mean over many makes them, and a loss scale:
// the gradients come out as if there had been no float16 but in the operands.
TEST_F(HeadLossGpu, Float16HasRoomForSmallGradients) {
  Problem p(12, 3000, 16, mx::float16);
  p.weights = mx::full({12}, 1e-5f);
  const float scale = 16384;
  const auto got = p.run(5, scale);
  EXPECT_EQ(got[2].dtype(), mx::float16);
  p.h = mx::astype(p.h, mx::float32), p.w = mx::astype(p.w, mx::float32);
  const auto want = p.run(0, scale);
  for (const std::size_t i : {2u, 3u}) {
    const float largest = mx::max(mx::abs(want[i])).item<float>();
    EXPECT_LT(apart(got[i], want[i]), 5e-3 * double{largest}) << i;
  }
}

TEST_F(HeadLossGpu, InputGradientAlone) {
  Problem p(40, 90, 24, mx::bfloat16);
  p.options.weight_gradient = false;
  const auto loss = [&](const Arrays& v) {
    return Arrays{
        head_loss_gpu(v[0], p.w, p.targets, p.weights, p.options, {}, {})
            .loss_sum
    };
  };
  const auto g = mx::vjp(loss, {p.h}, {mx::array(1.0f)}).second;
  EXPECT_THROW(p.run(0), Error);
  p.options.weight_gradient = true;
  EXPECT_EQ(apart(g[0], p.run(0)[2]), 0.0);
}

// A chunk begins when the one before has ended: what is alive at once is a
// chunk's logits, not all of them.
TEST_F(HeadLossGpu, LogitsAreNeverWhole) {
  const int tokens = 2048, vocabulary = 4096;
  const Problem p(tokens, vocabulary, 8, mx::float32);
  mx::eval(p.h, p.w, p.targets, p.weights);
  const auto peak = [&](int chunk) {
    mx::clear_cache();
    mx::reset_peak_memory();
    const auto before = mx::get_active_memory();
    p.run(chunk);
    return mx::get_peak_memory() - before;
  };
  const std::size_t whole = std::size_t(tokens) * vocabulary * sizeof(float);
  EXPECT_GT(peak(tokens), whole);
  EXPECT_LT(peak(128), peak(tokens) / 4);
}

TEST_F(HeadLossGpu, ChunksAreAsLargeAsMemoryAllows) {
  LossTerms plain, smoothed;
  smoothed.label_smoothing = 0.1f;
  const int many = 1 << 16;
  EXPECT_EQ(gpu_chunk_tokens(plain, mx::bfloat16, 1000, many), 8192);
  EXPECT_EQ(gpu_chunk_tokens(plain, mx::bfloat16, 50304, many), 5120);
  EXPECT_EQ(gpu_chunk_tokens(smoothed, mx::bfloat16, 50304, many), 1024);
  EXPECT_EQ(gpu_chunk_tokens(smoothed, mx::float32, 1 << 24, many), 256);
  // A small batch has chunks, too, down to a size.
  EXPECT_EQ(gpu_chunk_tokens(plain, mx::bfloat16, 24576, 16384), 4096);
  EXPECT_EQ(gpu_chunk_tokens(plain, mx::bfloat16, 24576, 4096), 1280);
}

// Inside a compiled training step: traced once, nothing evaluated on the way.
TEST_F(HeadLossGpu, RunsInsideOneCompiledFunction) {
  mx::set_compile_mode(mx::CompileMode::no_fuse);
  Problem p(150, 90, 24, mx::bfloat16);
  int traces = 0;
  const auto step =
      mx::compile(std::function<Arrays(const Arrays&)>([&](const Arrays& in) {
        ++traces;
        auto [loss, g] = mx::vjp(
            [&](const Arrays& v) {
              return Arrays{
                  head_loss_gpu(v[0], v[1], in[2], in[3], p.options, {}, {}, 64)
                      .loss_sum
              };
            },
            {in[0], in[1]}, {in[4]}
        );
        return Arrays{loss[0], g[0], g[1]};
      }));
  for (const float by : {1.0f, 0.25f}) {
    auto got = step({p.h, p.w, p.targets, p.weights, mx::array(by)});
    mx::eval(got);
    const auto want = p.run(64, by);
    expect_same(got, {want[0], want[2], want[3]}, 1e-6);
  }
  EXPECT_EQ(traces, 1);
  mx::set_compile_mode(mx::CompileMode::enabled);
}

}  // namespace
}  // namespace hearth::ops
