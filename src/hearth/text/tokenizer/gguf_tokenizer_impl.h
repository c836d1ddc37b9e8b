#pragma once
// What the reader of a GGUF file's tokenizer and its translation to a
// tokenizer.json both need.
#include <string>
#include <string_view>
#include <vector>

#include "hearth/io/gguf_metadata.h"
#include "hearth/text/tokenizer/scored_pieces.h"

namespace hearth::text {

// The splitting patterns behind the names in tokenizer.ggml.pre. Throws
// FormatError for a name that is not known.
std::vector<std::string_view> gguf_patterns(
    const std::string& pre,
    const std::string& file
);
// A word that is a token needs no merges; such files add BOS too.
bool gguf_ignores_merges(const std::string& pre);
// The pieces of a "llama" vocabulary.
ScoredPieces gguf_pieces(const io::GgufMetadata& metadata);
TokenizerParts read_gguf_tokenizer(const io::GgufMetadata& metadata);

}  // namespace hearth::text
