#pragma once
// Which of a model's files are fetched. Without being told: what a model needs
// to run here (config, tokenizer, templates, and its weights once, as
// safetensors or GGUF); pickle files are never chosen, since reading one can
// run code.
#include <string>
#include <vector>

#include "hearth/hub/listing.h"

namespace hearth::hub {

struct Selection {
  std::vector<std::string> include, exclude;  // globs; '*' crosses folders
  bool all = false;
  std::string file;  // this one alone
};

// `model` is ORG/NAME, for messages. Throws UsageError when nothing is left,
// when weights are only there as pickle files, or when there are several GGUF
// files and none is named.
std::vector<RemoteFile> select_files(
    const std::vector<RemoteFile>& files,
    const Selection& selection,
    const std::string& model
);

// `*`, `?` and `[a-z]` against the whole name, as Hugging Face's tools do it.
bool glob_matches(const std::string& glob, const std::string& name);

}  // namespace hearth::hub
