#pragma once
// The tokenizer and chat templates in a GGUF file's metadata, as the files that
// a Hugging Face folder has for them.
#include <string>
#include <vector>

namespace hearth::text {

struct NamedText {
  std::string name, text;
};

// tokenizer.json and tokenizer_config.json, and the templates inside the
// latter; empty when the file holds no tokenizer. Read by Hugging Face's
// library they give the ids that the GGUF file's own reader gives. Throws
// FormatError for a kind that is not known.
std::vector<NamedText> gguf_tokenizer_files(const std::string& path);

}  // namespace hearth::text
