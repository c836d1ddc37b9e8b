#pragma once
// What --quant may say: how weights are rounded when a model is loaded.
#include <optional>
#include <string>
#include <string_view>

#include "hearth/kernels/quant/format.h"

namespace hearth::models {

// "none"; "4" and "8", the formats of so many bits that the kernels run
// fastest; or a format's name, such as affine4-g64-bf16. Throws UsageError that
// lists what is known.
std::optional<kernels::QuantFormat> parse_quant_target(std::string_view word);

// The inverse: "none" or the format's name.
std::string quant_target_name(const std::optional<kernels::QuantFormat>& f);

}  // namespace hearth::models
