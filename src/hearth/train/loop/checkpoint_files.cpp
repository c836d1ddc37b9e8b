// A checkpoint's files: their checksums, and what an ended writer left.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/hash.h"
#include "hearth/base/json.h"
#include "hearth/base/mapped_file.h"
#include "hearth/train/loop/checkpoint_files_impl.h"

namespace hearth::train::files {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = "hearth.checkpoint/1";

struct Sum {
  std::size_t bytes;
  std::string hash;
};

// In pieces that are given back at once: a checkpoint is read while training
// holds all its memory, and mapped pages count as the process's own.
Sum sum_of(const std::string& path) {
  constexpr std::size_t kPiece = std::size_t{4} << 20;
  const MappedFile file(path);
  Hash64 hash;
  for (std::size_t at = 0; at < file.size(); at += kPiece) {
    const std::size_t n = std::min(kPiece, file.size() - at);
    hash.update(file.text().substr(at, n));
    file.advise(MappedFile::Access::kDone, at, n);
  }
  return {file.size(), fmt::format("{:016x}", hash.digest())};
}

Sum wanted_sum(const std::string& folder, const std::string& name) {
  const std::string list = folder + "/" + kChecksums;
  const Json sums = read_json_file(list, {.max_bytes = 1 << 16});
  try {
    const Json& entry = sums.at("files").at(name);
    return {
        entry.at("bytes").get<std::size_t>(),
        entry.at("xxh64").get<std::string>()
    };
  } catch (const Json::exception&) {
    throw FormatError(
        fmt::format("{}: size and hash of {} must be there", list, name)
    );
  }
}

}  // namespace

std::string checkpoints_folder(const std::string& run) {
  return (fs::path(run) / "checkpoints").string();
}

void write_checksums(const std::string& folder) {
  Json sums = Json::object();
  for (const char* name : {kWeights, kOptimizer, kState}) {
    const Sum sum = sum_of(folder + "/" + name);
    sums[name] = {{"bytes", sum.bytes}, {"xxh64", sum.hash}};
  }
  write_file_atomically(
      folder + "/" + kChecksums,
      to_json_text({{"schema", kSchema}, {"files", sums}})
  );
}

void verify_checksum(const std::string& folder, const std::string& name) {
  const Sum wanted = wanted_sum(folder, name);
  const std::string path = folder + "/" + name;
  const Sum found = sum_of(path);
  if (found.bytes != wanted.bytes) {
    throw FormatError(
        fmt::format(
            "{}: must be {} bytes, got {}", path, wanted.bytes, found.bytes
        )
    );
  }
  if (found.hash != wanted.hash) {
    throw FormatError(
        fmt::format(
            "{}: must have the hash {}, got {}", path, wanted.hash, found.hash
        )
    );
  }
}

void verify_checksums(const std::string& folder) {
  for (const char* name : {kWeights, kOptimizer, kState}) {
    verify_checksum(folder, name);
  }
}

bool has_parts(const std::string& folder) {
  try {
    for (const char* name : {kWeights, kOptimizer, kState}) {
      const Sum wanted = wanted_sum(folder, name);
      if (fs::file_size(folder + "/" + name) != wanted.bytes) return false;
    }
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void remove_leftovers(const std::string& run) {
  std::vector<fs::path> found;
  std::error_code none;
  for (const auto& entry :
       fs::directory_iterator(checkpoints_folder(run), none)) {
    found.push_back(entry.path());
  }
  for (const fs::path& path : found) {
    const std::string name = path.filename().string();
    if (name.starts_with(kNewPrefix)) fs::remove_all(path);
    if (!name.starts_with(kOldPrefix)) continue;
    const fs::path place = path.parent_path() / name.substr(5);
    if (fs::exists(place)) {
      fs::remove_all(path);
    } else {
      fs::rename(path, place);
    }
  }
}

}  // namespace hearth::train::files
