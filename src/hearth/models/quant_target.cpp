#include "hearth/models/quant_target.h"

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::models {

using kernels::QuantFormat;
using kernels::QuantKind;

std::optional<QuantFormat> parse_quant_target(std::string_view word) {
  if (word == "none") return {};
  // Symmetric, so that products need no sums of the activations.
  if (word == "4") return QuantFormat::gguf(QuantKind::kQ4_0);
  if (word == "8") return QuantFormat::gguf(QuantKind::kQ8_0);
  try {
    return QuantFormat::parse(word);
  } catch (const UsageError&) {
    throw UsageError(
        fmt::format(
            "--quant must be none, 4, 8 or a format such as q4_0, q8_0, q4_k, "
            "affine4-g64-bf16, int8-g32-f32, got '{}'",
            word
        )
    );
  }
}

std::string quant_target_name(const std::optional<QuantFormat>& f) {
  return f ? f->name() : "none";
}

}  // namespace hearth::models
