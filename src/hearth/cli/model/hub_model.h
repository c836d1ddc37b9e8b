#pragma once
// hf:ORG/NAME[@REV] on the command line and in recipes: the model's place in
// the cache that Hugging Face's tools share.
#include <string>

#include "hearth/cli/command.h"

namespace hearth::cli {

// Throws UsageError for a path that is out of reach, and for ORG/NAME without
// its hf: where no such path is.
void check_model_path(const std::string& model);

// A path stays as it is. A model of the hub becomes the path of its snapshot
// (or .gguf file), fetched first where it is not in the cache; with
// HF_HUB_OFFLINE that is a UsageError.
std::string resolve_model(const Context& context, const std::string& model);

}  // namespace hearth::cli
