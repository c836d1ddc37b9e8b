#include "hearth/infer/perplexity.h"

#include <cmath>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth::infer {
namespace {

models::LoadedModel load(const std::string& name) {
  return models::load_model(
      HEARTH_SOURCE_DIR "/tests/golden/models/" + name, {.compute = mx::float32}
  );
}

std::vector<std::int32_t> some_ids(std::size_t n, int vocab) {
  std::vector<std::int32_t> ids(n);
  for (std::size_t i = 0; i < n; ++i) {
    ids[i] = static_cast<int>(
        (i * i * 7 + 3 * i + 1) % static_cast<std::size_t>(vocab)
    );
  }
  return ids;
}

// The definition: softmax of all logits of one window by itself.
double plain_nll(
    const models::LoadedModel& model,
    std::vector<std::int32_t> window,
    std::optional<std::int32_t> bos,
    int token
) {
  if (bos) window[0] = *bos;
  const auto n = static_cast<int>(window.size());
  nn::Pass pass;
  pass.dtype = mx::float32;
  pass.positions = models::plain_positions(1, n);
  pass.length = n;
  const auto h = model.decoder->hidden(mx::array(window.data(), {1, n}), pass);
  auto p = mx::log(mx::softmax(model.decoder->logits(h, pass), -1));
  p.eval();
  const auto vocab = static_cast<std::size_t>(p.shape(2));
  return -p.data<float>()
              [static_cast<std::size_t>(token - 1) * vocab +
               static_cast<std::size_t>(
                   window[static_cast<std::size_t>(token)]
               )];
}

TEST(Perplexity, SlidingScoresEachTokenButTheFirstOnce) {
  for (const int stride : {1, 3, 7, 15}) {
    PerplexityOptions o;
    o.window = 16, o.stride = stride;
    std::map<std::size_t, int> times;
    for (const auto& w : scored_windows(61, o)) {
      EXPECT_LE(w.length, 16);
      EXPECT_GE(w.scored, 1);
      for (int i = w.scored; i < w.length; ++i) {
        ++times[w.begin + static_cast<std::size_t>(i)];
        // All the context that the stride promises.
        if (w.begin > 0) {
          EXPECT_GE(i, 16 - stride);
        }
      }
    }
    EXPECT_EQ(times.size(), 60u);
    EXPECT_EQ(times.begin()->first, 1u);
    for (const auto& [token, n] : times) EXPECT_EQ(n, 1) << token;
  }
}

TEST(Perplexity, LlamacppScoresTheSecondHalfOfWholeWindows) {
  PerplexityOptions o;
  o.method = PerplexityMethod::llamacpp, o.window = 16;
  const auto windows = scored_windows(61, o);
  ASSERT_EQ(windows.size(), 3u);
  EXPECT_EQ(windows[1].begin, 16u);
  // first = n_ctx / 2; count += n_ctx - first - 1.
  EXPECT_EQ(windows[1].length - windows[1].scored, 16 - 8 - 1);
  o.max_windows = 2;
  EXPECT_EQ(scored_windows(61, o).size(), 2u);
}

TEST(Perplexity, SizesThatDoNotFitAreRefused) {
  PerplexityOptions o;
  o.window = 16;
  EXPECT_THROW(scored_windows(1, o), UsageError);
  EXPECT_THROW(scored_windows(0, o), UsageError);
  o.stride = 16;
  EXPECT_THROW(scored_windows(100, o), UsageError);
  o.stride = 0, o.window = 1;
  EXPECT_THROW(scored_windows(100, o), UsageError);
  o.window = 16, o.method = PerplexityMethod::llamacpp;
  EXPECT_THROW(scored_windows(31, o), UsageError);
}

class PerplexityOf : public testing::TestWithParam<PerplexityMethod> {};

TEST_P(PerplexityOf, AgreesWithTheSoftmaxOfEachWindow) {
  const auto model = load("llama3-gqa");
  const auto ids = some_ids(50, model.decoder->config().vocab);
  PerplexityOptions o;
  o.method = GetParam(), o.window = 12, o.batch = 3;
  const std::int32_t bos = 1;
  const auto got = perplexity(model, ids, bos, o);
  std::vector<double> values;
  for (const auto& w : scored_windows(ids.size(), o)) {
    const auto from = ids.begin() + static_cast<std::ptrdiff_t>(w.begin);
    for (int i = w.scored; i < w.length; ++i) {
      values.push_back(plain_nll(model, {from, from + w.length}, bos, i));
    }
  }
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double variance = 0;
  for (const double v : values) variance += (v - mean) * (v - mean) / (n - 1);
  EXPECT_EQ(got.tokens, static_cast<std::int64_t>(values.size()));
  EXPECT_NEAR(got.nll, mean, 1e-4);
  EXPECT_NEAR(got.ppl, std::exp(mean), 1e-4 * got.ppl);
  EXPECT_NEAR(
      got.error, std::exp(mean) * std::sqrt(variance / n), 1e-3 * got.error
  );
}

INSTANTIATE_TEST_SUITE_P(
    Methods,
    PerplexityOf,
    testing::Values(PerplexityMethod::sliding, PerplexityMethod::llamacpp)
);

TEST(Perplexity, AWindowLongerThanTheContextIsRefused) {
  const auto model = load("llama3-gqa");
  const auto ids = some_ids(50, model.decoder->config().vocab);
  PerplexityOptions o;
  o.window = model.decoder->config().max_length + 1;
  EXPECT_THROW(perplexity(model, ids, {}, o), UsageError);
}

}  // namespace
}  // namespace hearth::infer
