#pragma once
// What --quant may say: how weights are rounded when a model is loaded.
#include <optional>
#include <string>
#include <string_view>

#include "hearth/models/weight_plan.h"

namespace hearth::models {

// "none"; "4" and "8", the formats of so many bits that the kernels run
// fastest; or a format's name, such as affine4-g64-bf16. Throws UsageError that
// lists what is known.
std::optional<kernels::QuantFormat> parse_quant_target(std::string_view word);

// Such words, one for all weights or several for patterns of names, the last
// that matches counting: "4,lm_head=8,*.v_proj=none".
QuantRules parse_quant_rules(std::string_view words);

// The inverse, with the formats' names: "none", "q4_0", "q4_0,lm_head=q8_0".
std::string quant_target_name(const QuantRules& rules);

}  // namespace hearth::models
