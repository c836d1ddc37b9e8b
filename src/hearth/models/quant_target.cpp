#include "hearth/models/quant_target.h"

#include <algorithm>

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

QuantRules parse_quant_rules(std::string_view words) {
  std::vector<QuantRule> rules;
  for (std::size_t at = 0; at <= words.size();) {
    const std::size_t end = std::min(words.find(',', at), words.size());
    const std::string_view one = words.substr(at, end - at);
    const std::size_t equals = one.find('=');
    if (equals == one.npos) {
      rules.push_back({"*", parse_quant_target(one)});
    } else {
      rules.push_back(
          {std::string(one.substr(0, equals)),
           parse_quant_target(one.substr(equals + 1))}
      );
    }
    at = end + 1;
  }
  // Nothing is rounded by "none" alone.
  if (rules.size() == 1 && !rules[0].format) return {};
  return QuantRules(std::move(rules));
}

std::string quant_target_name(const QuantRules& rules) {
  if (!rules) return "none";
  std::string text;
  for (const auto& [pattern, format] : rules.rules()) {
    if (!text.empty()) text += ',';
    if (pattern != "*") text += pattern + '=';
    text += format ? format->name() : "none";
  }
  return text;
}

}  // namespace hearth::models
