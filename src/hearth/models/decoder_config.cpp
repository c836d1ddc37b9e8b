#include "hearth/models/decoder_config.h"

#include <cmath>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::models {

float DecoderConfig::score_scale(std::size_t layer) const {
  const float whole = attention_scale > 0
                          ? attention_scale
                          : 1 / std::sqrt(static_cast<float>(head_dim));
  return scale_by_layer ? whole / static_cast<float>(layer + 1) : whole;
}

std::size_t DecoderConfig::kv_bytes_per_token(
    std::size_t bytes_per_element
) const {
  return 2 * static_cast<std::size_t>(layers) *
         static_cast<std::size_t>(kv_heads) *
         static_cast<std::size_t>(head_dim) * bytes_per_element;
}

void DecoderConfig::check() const {
  const auto require = [&](bool holds, const std::string& what) {
    if (!holds) throw UsageError(fmt::format("[models.{}] {}", family, what));
  };
  require(
      heads % kv_heads == 0,
      fmt::format(
          "attention heads must be a multiple of key-value heads, got {} and "
          "{}",
          heads, kv_heads
      )
  );
  require(
      head_dim <= 256,
      fmt::format("head size must be at most 256, got {}", head_dim)
  );
  require(
      !rope || rope->dims % 2 == 0,
      fmt::format(
          "rotary dimensions must be even, got {}", rope ? rope->dims : 0
      )
  );
  require(
      windows.size() == static_cast<std::size_t>(layers),
      fmt::format(
          "a window must be given for each of {} layers, got {}", layers,
          windows.size()
      )
  );
}

}  // namespace hearth::models
