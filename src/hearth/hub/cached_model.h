#pragma once
// A model that is in the cache already, whoever put it there: us or Hugging
// Face's own tools. Nothing is asked of the network.
#include <string>

#include "hearth/hub/repo_name.h"

namespace hearth::hub {

struct CachedModel {
  // The snapshot's folder, or its one .gguf file; empty while `missing` says
  // what is not there.
  std::string path;
  std::string commit;
  std::string missing;

  bool whole() const { return missing.empty(); }
};

// Whole means: a config and every shard its index names, or one .gguf. Throws
// UsageError when there are several .gguf files and none was named.
CachedModel find_cached_model(const std::string& cache, const RepoName& repo);

}  // namespace hearth::hub
