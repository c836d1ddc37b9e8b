#pragma once
// A GGUF file's metadata under the keys of Hugging Face's config.json. A key
// that changes the computation and is not understood is refused by name.
#include "hearth/base/json.h"
#include "hearth/io/gguf_file.h"

namespace hearth::io {

// Throws FormatError; an unknown architecture's message lists the known.
Json gguf_config(const GgufFile& file);
Json gguf_generation_config(const GgufMetadata& metadata);

}  // namespace hearth::io
