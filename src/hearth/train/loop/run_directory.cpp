#include "hearth/train/loop/run_directory.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/shell_word.h"
#include "hearth/base/temporary_name.h"
#include "hearth/train/loop/folder_lock.h"

namespace hearth::train {
namespace {

namespace fs = std::filesystem;

// What a run writes, and so what overwriting one removes, in this order: first
// what makes it one to go on with, last what tells that it was one.
constexpr std::array kOwn = {"config.yaml",  "best.json",
                             "checkpoints",  "metrics.jsonl",
                             "events.jsonl", "model",
                             "adapter",      "sweep_result.json",
                             "version",      "machine.json"};

bool is_own(const fs::path& name) {
  return name == kLockFile || is_temporary_name(name.string()) ||
         std::ranges::any_of(kOwn, [&](const char* own) {
           return name == own;
         });
}

bool has_content(const std::string& path) {
  return std::any_of(
      fs::directory_iterator(path), fs::directory_iterator(),
      [](const auto& entry) {
        const fs::path name = entry.path().filename();
        return name != kLockFile && !is_temporary_name(name.string());
      }
  );
}

bool has_foreign(const std::string& path) {
  return std::any_of(
      fs::directory_iterator(path), fs::directory_iterator(),
      [](const auto& entry) { return !is_own(entry.path().filename()); }
  );
}

// Of a run that came to its end.
bool has_weights(const fs::path& run) {
  std::error_code missing;
  if (fs::exists(run / "adapter", missing)) return true;
  for (const auto& entry : fs::directory_iterator(run / "model", missing)) {
    if (entry.path().extension() == ".safetensors") return true;
  }
  return false;
}

// Described, and stopped before its first step: there is nothing to lose.
bool never_stepped(const fs::path& run) {
  std::error_code missing;
  const bool logged = fs::exists(run / "metrics.jsonl", missing) &&
                      fs::file_size(run / "metrics.jsonl", missing) > 0;
  const bool saved = fs::exists(run / "checkpoints", missing) &&
                     !fs::is_empty(run / "checkpoints", missing);
  const bool described = fs::exists(run / "machine.json", missing) ||
                         fs::exists(run / "version", missing);
  return described && !logged && !saved && !has_weights(run) &&
         !has_foreign(run.string());
}

// What a run describes itself with, but for what killed it while it was begun
// or removed: config.yaml is the last to come and the first to go. A folder of
// something else may hold a config.yaml and checkpoints, too.
bool is_run(const fs::path& path) {
  const auto has = [&](const char* name) { return fs::exists(path / name); };
  const bool begun = !has("checkpoints") && !has_weights(path);
  return has("machine.json") && (has("version") || begun);
}

std::string ways_on(const std::string& path) {
  std::string other = "give another folder with -o";
  if (!is_run(path)) return other;
  std::string replaced = "replace it with --force, or " + other;
  if (!fs::exists(fs::path(path) / "config.yaml")) return replaced;
  return fmt::format(
      "continue it with --resume {}, {}", shell_word(path), replaced
  );
}

void require_run(const std::string& path) {
  if (!has_content(path) || is_run(path)) return;
  throw UsageError(
      fmt::format(
          "[train.run] {} must hold a run or nothing for --force, got other "
          "files",
          path
      ),
      "give another folder with -o"
  );
}

void require_empty(const std::string& path) {
  if (!has_content(path) || never_stepped(path)) return;
  throw UsageError(
      fmt::format("[train.run] {} must be empty or new", path), ways_on(path)
  );
}

void make_folder(const std::string& path) {
  std::error_code failed;
  if (fs::exists(path, failed) && !fs::is_directory(path)) {
    throw UsageError(
        fmt::format("[train.run] {} must be a folder, got a file", path)
    );
  }
  fs::create_directories(path, failed);
  if (failed) {
    throw IoError(fmt::format("cannot create {}: {}", path, failed.message()));
  }
}

}  // namespace

RunDirectory::RunDirectory(std::string path, RunMode mode)
    : path_(std::move(path)), mode_(mode) {
  if (mode == RunMode::resume && !fs::exists(file("config.yaml"))) {
    throw UsageError(
        fmt::format("[train.run] {} must hold a run to resume", path_),
        "start one with -o instead of --resume"
    );
  }
  made_ = !fs::exists(path_);
  make_folder(path_);
  // Before the lock, so that a foreign folder is left as it is, and after it,
  // as another process may have been faster.
  if (mode == RunMode::fresh) require_empty(path_);
  if (mode == RunMode::overwrite) require_run(path_);
  lock_ = lock_folder(path_, "train.run", "trains");
  if (mode == RunMode::fresh) require_empty(path_);
  remove_unfinished(path_);
}

RunDirectory::~RunDirectory() {
  std::error_code ignored;
  if (!made_ || fs::exists(file("config.yaml"), ignored)) return;
  fs::remove(file(kLockFile), ignored);
  fs::remove(path_, ignored);
}

std::string RunDirectory::file(std::string_view name) const {
  return (fs::path(path_) / name).string();
}

bool RunDirectory::has_model() const {
  return has_weights(path_);
}

void RunDirectory::describe(const RunDescription& description) const {
  if (mode_ != RunMode::resume) {
    for (const char* name : kOwn) fs::remove_all(file(name));
  }
  write_file_atomically(
      file("machine.json"), to_json_text(description.machine)
  );
  write_file_atomically(file("version"), description.version + "\n");
  // The last one: a folder that has it is a run.
  write_file_atomically(file("config.yaml"), description.config);
}

}  // namespace hearth::train
