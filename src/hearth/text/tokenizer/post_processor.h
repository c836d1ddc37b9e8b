#pragma once
// The parts of a tokenizer.json that act on finished ids: the tokens put around
// a text, truncation, padding.
#include <optional>

#include "hearth/base/json.h"
#include "hearth/text/tokenizer/tokenizer_parts.h"

namespace hearth::text {

// Fills prefix and suffix. Throws FormatError that names an unknown type.
void read_post_processor(const Json& json, TokenizerParts& parts);
std::optional<Truncation> read_truncation(const Json& json);
std::optional<Padding> read_padding(const Json& json);

}  // namespace hearth::text
