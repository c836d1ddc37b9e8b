#pragma once
// The real tokenizer and chat template behind the interfaces that datasets are
// encoded through.
#include <memory>
#include <string>

#include "hearth/data/read/dataset_encode.h"

namespace hearth::data {

// A TOKENIZER as the command line takes it: tokenizer.json, tokenizer.model,
// .gguf, or a folder holding one.
std::shared_ptr<const TextEncoder> load_text_encoder(const std::string& path);

// From a .jinja file or a tokenizer's folder. Throws FormatError when there is
// no template. Templates that ask for the date get a fixed one, so that a
// cache made tomorrow is the one made today.
std::shared_ptr<const ChatRenderer> load_chat_renderer(const std::string& path);

}  // namespace hearth::data
