#include "hearth/hub/cached_model.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/quoted.h"
#include "hearth/hub/cache.h"
#include "hearth/io/strict_json.h"

namespace hearth::hub {
namespace {

namespace fs = std::filesystem;

// A link whose blob is gone counts as not there.
bool has_file(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// Relative to the folder; sorted.
std::vector<std::string> files_ending(
    const std::string& folder,
    std::string_view ending
) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end;
       !error && it != end; it.increment(error)) {
    const std::string name = it->path().lexically_relative(folder).string();
    if (name.ends_with(ending) && has_file(it->path().string())) {
      out.push_back(name);
    }
  }
  std::ranges::sort(out);
  return out;
}

// The first shard of the index that is not there; empty when all are.
std::string missing_shard(const std::string& folder) {
  const std::string path = folder + "/model.safetensors.index.json";
  if (!has_file(path)) return {};
  const Json index = read_json_file(path);
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object()) return {};
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : map->items()) {
    if (shard.is_string()) shards.insert(shard.get<std::string>());
  }
  for (const std::string& shard : shards) {
    if (!has_file(folder + "/" + shard)) return shard;
  }
  return {};
}

bool has_safetensors(const std::string& folder) {
  return std::ranges::any_of(
      files_ending(folder, ".safetensors"),
      [](const std::string& name) { return name.find('/') == name.npos; }
  );
}

void look_for_model(
    const RepoCache& cache,
    const RepoName& repo,
    CachedModel& out
) {
  const std::string folder = std::exchange(out.path, {});
  const bool model = has_file(folder + "/config.json");
  const bool config = model || has_file(folder + "/adapter_config.json");
  const std::string shard = missing_shard(folder);
  if (!shard.empty()) {
    out.missing = shard;
  } else if (config && has_safetensors(folder)) {
    out.path = folder;
    const bool text = has_file(folder + "/" + kTokenizer) ||
                      has_file(folder + "/tokenizer.model") ||
                      cache.known_absent(out.commit, kTokenizer);
    if (model && !text) out.missing = "a tokenizer";
  } else {
    const auto gguf = files_ending(folder, ".gguf");
    if (gguf.size() > 1) {
      throw UsageError(
          fmt::format(
              "{} has {} .gguf files in the cache and one must be named",
              repo.text(), gguf.size()
          ),
          fmt::format("hf:{}/{}", repo.id(), gguf.front())
      );
    }
    if (gguf.empty()) {
      out.missing = config ? "a file of weights" : "config.json";
    } else {
      out.path = folder + "/" + gguf.front();
    }
  }
}

}  // namespace

bool is_tokenizer(const std::string& file) {
  return file == kTokenizer || file == "tokenizer.model";
}

CachedModel find_cached_model(const std::string& cache, const RepoName& repo) {
  const RepoCache here(cache, repo);
  CachedModel out;
  const auto commit = here.commit_of(repo.revision);
  if (!commit || !fs::is_directory(here.snapshot(*commit))) {
    out.missing = "every file";
    return out;
  }
  out.commit = *commit;
  out.path = here.snapshot(*commit);
  if (repo.file.empty()) {
    look_for_model(here, repo, out);
    return out;
  }
  out.path = here.pointer(*commit, repo.file);
  if (!has_file(out.path)) {
    out.missing = repo.file;
    out.path.clear();
  }
  return out;
}

}  // namespace hearth::hub
