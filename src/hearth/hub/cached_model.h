#pragma once
// A model that is in the cache already, whoever put it there: us or Hugging
// Face's own tools. Nothing is asked of the network.
#include <string>

#include "hearth/hub/repo_name.h"

namespace hearth::hub {

struct CachedModel {
  // The snapshot's folder, or its one .gguf file; empty while there is no model
  // in it.
  std::string path;
  std::string commit;
  std::string missing;  // the first thing that is not there

  bool whole() const { return missing.empty(); }
  // Whether the model's files are there, except perhaps a tokenizer, which not
  // every use needs.
  bool has_model() const { return !path.empty(); }
};

// The file whose absence says that a commit has no tokenizer of any kind.
inline constexpr const char* kTokenizer = "tokenizer.json";
bool is_tokenizer(const std::string& file);

// Whole means: a config, every shard its index names, and a tokenizer unless
// the hub is known to have none; an adapter's config and weights; or one .gguf.
// Throws UsageError when there are several .gguf files and none was named.
CachedModel find_cached_model(const std::string& cache, const RepoName& repo);

}  // namespace hearth::hub
