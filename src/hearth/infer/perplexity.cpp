#include "hearth/infer/perplexity.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::infer {
namespace {

constexpr int kBatchTokens = 2048;

void refuse(const std::string& what, std::string hint = {}) {
  throw UsageError("[infer.perplexity] " + what, std::move(hint));
}

// Sums as llama-perplexity keeps them.
struct Sums {
  double nll = 0, squares = 0;
  std::int64_t tokens = 0;

  void add(double v) { nll += v, squares += v * v, ++tokens; }
  double mean() const { return nll / static_cast<double>(tokens); }
  // Of the mean.
  double error() const {
    if (tokens < 2) return 0;
    const auto n = static_cast<double>(tokens);
    const double variance = squares / n - mean() * mean();
    return variance > 0 ? std::sqrt(variance / (n - 1)) : 0;
  }
};

// Inputs are all tokens of a window but the last; target i is token i + 1, or
// -1 where it is not scored.
struct Batch {
  std::vector<int> ids, targets;
  int rows = 0, length = 0;
};

Batch make_batch(
    std::span<const std::int32_t> ids,
    std::span<const ScoredWindow> windows,
    std::optional<std::int32_t> bos
) {
  Batch b;
  b.rows = static_cast<int>(windows.size());
  b.length = windows[0].length - 1;
  for (const auto& w : windows) {
    const auto row = ids.subspan(w.begin, static_cast<std::size_t>(w.length));
    for (int i = 0; i < b.length; ++i) {
      const auto at = static_cast<std::size_t>(i);
      b.ids.push_back(i == 0 && bos ? *bos : row[at]);
      b.targets.push_back(i + 1 >= w.scored ? row[at + 1] : -1);
    }
  }
  return b;
}

void score(
    const models::LoadedModel& model,
    const Batch& b,
    bool exact,
    Sums& sums
) {
  const mx::Shape shape{b.rows, b.length};
  nn::Pass pass;
  pass.dtype = model.compute;
  if (exact) pass.quantized = ops::QuantCompute::kExact;
  pass.positions = models::plain_positions(b.rows, b.length);
  pass.length = b.length;
  auto log_probs = model.decoder->log_probs(
      mx::array(b.ids.data(), shape, mx::int32),
      mx::array(b.targets.data(), shape, mx::int32), pass
  );
  log_probs.eval();
  const float* values = log_probs.data<float>();
  for (std::size_t i = 0; i < b.targets.size(); ++i) {
    if (b.targets[i] < 0) continue;
    if (!std::isfinite(values[i])) {
      throw Error(
          fmt::format(
              "[infer.perplexity] a log probability must be a number, got {}",
              values[i]
          ),
          "the weights or a kernel are broken: try --dtype fp32 and "
          "HEARTH_ISA=generic"
      );
    }
    sums.add(-static_cast<double>(values[i]));
  }
}

void check_ids(std::span<const std::int32_t> ids, int vocab) {
  const auto bad = std::ranges::find_if(ids, [&](std::int32_t id) {
    return id < 0 || id >= vocab;
  });
  if (bad == ids.end()) return;
  refuse(
      fmt::format("a token id must be from 0 to {}, got {}", vocab - 1, *bad)
  );
}

}  // namespace

std::vector<ScoredWindow> scored_windows(
    std::size_t tokens,
    const PerplexityOptions& o
) {
  if (o.window < 2) {
    refuse(
        fmt::format("a window must have 2 tokens or more, got {}", o.window)
    );
  }
  const auto window = static_cast<std::size_t>(o.window);
  std::vector<ScoredWindow> out;
  const auto enough = [&] {
    return o.max_windows > 0 &&
           out.size() >= static_cast<std::size_t>(o.max_windows);
  };
  if (o.method == PerplexityMethod::llamacpp) {
    if (tokens < 2 * window) {
      refuse(
          fmt::format(
              "there must be 2 windows of {} tokens for this method, got {} "
              "tokens",
              window, tokens
          ),
          "use a longer text, a smaller --ctx, or --method sliding"
      );
    }
    for (std::size_t b = 0; b + window <= tokens && !enough(); b += window) {
      out.push_back({b, o.window, o.window / 2 + 1});
    }
    return out;
  }
  const int stride = o.stride == 0 ? o.window / 2 : o.stride;
  if (stride < 1 || stride >= o.window) {
    refuse(
        fmt::format(
            "the stride must be from 1 to {}, got {}", o.window - 1, stride
        )
    );
  }
  if (tokens < 2)
    refuse(fmt::format("there is no text to score: {} tokens", tokens));
  std::size_t done = 1;
  for (std::size_t b = 0; done < tokens && !enough();
       b += static_cast<std::size_t>(stride)) {
    const std::size_t end = std::min(tokens, b + window);
    out.push_back({b, static_cast<int>(end - b), static_cast<int>(done - b)});
    done = end;
  }
  return out;
}

Perplexity perplexity(
    const models::LoadedModel& model,
    std::span<const std::int32_t> ids,
    std::optional<std::int32_t> bos,
    const PerplexityOptions& options
) {
  const auto& config = model.decoder->config();
  if (options.window > config.max_length) {
    refuse(
        fmt::format(
            "a window must fit the model's context of {} tokens, got {}",
            config.max_length, options.window
        )
    );
  }
  check_ids(ids, config.vocab);
  const auto windows = scored_windows(ids.size(), options);
  const auto batch = static_cast<std::size_t>(
      options.batch > 0 ? options.batch
                        : std::max(1, kBatchTokens / options.window)
  );
  Sums sums;
  for (std::size_t at = 0; at < windows.size();) {
    std::size_t end = at + 1;
    while (end < windows.size() && end - at < batch &&
           windows[end].length == windows[at].length) {
      ++end;
    }
    const auto part = std::span(windows).subspan(at, end - at);
    score(model, make_batch(ids, part, bos), options.exact, sums);
    at = end;
    if (options.progress) options.progress(at, windows.size(), sums.mean());
  }
  Perplexity out;
  out.nll = sums.mean();
  out.ppl = std::exp(out.nll);
  out.error = sums.error() * out.ppl;
  out.tokens = sums.tokens;
  out.windows = static_cast<std::int64_t>(windows.size());
  return out;
}

}  // namespace hearth::infer
