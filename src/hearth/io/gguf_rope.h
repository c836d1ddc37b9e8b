#pragma once
// Llama 3's rope scaling, which GGUF files hold as one factor per frequency
// (rope_freqs.weight) and Hugging Face's config as the four numbers that make
// them.
#include <optional>
#include <span>

namespace hearth::io {

struct Llama3Rope {
  double factor = 8, low_freq_factor = 1, high_freq_factor = 4;
  double original_context = 8192;
};

// The numbers that give these factors within 0.1 %, or nothing when none do.
std::optional<Llama3Rope> llama3_rope(
    std::span<const float> factors,
    double theta
);

}  // namespace hearth::io
