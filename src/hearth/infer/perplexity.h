#pragma once
// How well a model predicts a text. Logits are never held: each batch of
// windows gives one log probability a token.
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "hearth/models/load.h"

namespace hearth::infer {
namespace mx = mlx::core;

enum class PerplexityMethod : unsigned char {
  // Windows overlap; each token but the first is scored once, with at least
  // window - stride tokens before it.
  sliding,
  // Windows are disjoint and only their second half is scored, as
  // llama-perplexity does. The last tokens that fill no window are left.
  llamacpp,
};

struct PerplexityOptions {
  PerplexityMethod method = PerplexityMethod::sliding;
  int window = 512;
  int stride = 0;       // sliding: from 1 to window - 1; 0 is half a window
  int max_windows = 0;  // 0: all
  // Quantised weights are multiplied as they are, not by int8 activations.
  bool exact = false;
  int batch = 0;  // windows at once; 0 is as many as make 2048 tokens
  // Windows done, windows in all, mean negative log-likelihood so far.
  std::function<void(std::size_t, std::size_t, double)> progress;
};

struct Perplexity {
  double nll = 0;    // mean over tokens, in nats
  double ppl = 0;    // exp(nll)
  double error = 0;  // standard error of ppl
  std::int64_t tokens = 0;
  std::int64_t windows = 0;
};

// One window: tokens [begin, begin + length) of the text, of which those from
// `scored` (counted in the window) on are scored.
struct ScoredWindow {
  std::size_t begin = 0;
  int length = 0, scored = 0;
};
// Throws UsageError when the text is too short or the sizes do not fit.
std::vector<ScoredWindow> scored_windows(
    std::size_t tokens,
    const PerplexityOptions& options
);

// bos, where given, takes the place of each window's first token.
Perplexity perplexity(
    const models::LoadedModel& model,
    std::span<const std::int32_t> ids,
    std::optional<std::int32_t> bos,
    const PerplexityOptions& options
);

}  // namespace hearth::infer
