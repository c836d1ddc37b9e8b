// prepare_cache(): the cache that is there, or a new one under a lock.
#include <filesystem>

#include <fcntl.h>
#include <sys/file.h>

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/env.h"
#include "hearth/base/error.h"
#include "hearth/base/file_handle.h"
#include "hearth/data/cache/cache_builder_impl.h"
#include "hearth/data/cache/cache_impl.h"

namespace hearth::data {
namespace {

namespace fs = std::filesystem;

// Makes the folder ready for this key; true when it already holds the cache.
// The same data as the version before this one read it is replaced.
bool already_there(
    const std::string& folder,
    const std::string& key,
    bool force,
    const std::function<std::string()>& former_key
) {
  const fs::path manifest = fs::path(folder) / kManifestName;
  if (fs::exists(manifest)) {
    try {
      const std::string there = TokenCache(folder).manifest().key;
      if (there == key) return true;
      force = force || there == former_key();
    } catch (const Error&) {
      if (!force) throw;
    }
    if (!force) {
      throw UsageError(
          fmt::format(
              "[data.prepare_cache] {} holds a cache of other data or settings",
              folder
          ),
          "choose another folder, or --force to replace it"
      );
    }
    fs::remove(manifest);
  } else if (!force && !fs::exists(fs::path(folder) / kJournalName)) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      const auto name = entry.path().filename().string();
      if (name.find(".tok") == std::string::npos &&
          !name.starts_with(kJournalName)) {
        throw UsageError(
            fmt::format(
                "[data.prepare_cache] {} must be empty or a token cache, it "
                "holds {}",
                folder, name
            ),
            "choose another folder, or --force"
        );
      }
    }
  }
  return false;
}

// One build at a time in a folder; the lock ends with the process.
FileHandle lock_folder(const std::string& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) {
    throw IoError(
        fmt::format("cannot create {}: {}", folder, failed.message())
    );
  }
  auto handle = FileHandle::open(folder, O_RDONLY | O_DIRECTORY, "open");
  if (flock(handle.get(), LOCK_EX | LOCK_NB) != 0) {
    throw Error("[data.prepare_cache] another process is preparing " + folder);
  }
  return handle;
}

// Lines that an earlier call skipped are an error for this call, which was told
// not to skip any.
void refuse_bad_lines(const CacheReport& report, const CacheSettings& s) {
  if (s.read.on_bad_line != BadLinePolicy::kFatal || report.bad_lines == 0) {
    return;
  }
  const BadLine& first = report.first_bad_lines.at(0);
  throw FormatError::at(first.file, static_cast<long>(first.line), first.what);
}

}  // namespace

PrepareResult prepare_cache(
    const std::vector<DataSource>& sources,
    const CacheSettings& settings,
    const ExampleEncoder& encoder,
    const PrepareOptions& options
) {
  const double start = seconds_now();
  const Hash128 key = cache_key(sources, settings, encoder);
  PrepareResult result;
  result.folder =
      options.folder.empty()
          ? (fs::path(env::cache_folder()) / "data" / key.hex()).string()
          : options.folder;
  const FileHandle lock = lock_folder(result.folder);
  const auto former = [&] {
    return former_cache_key(sources, settings, encoder).hex();
  };
  if (already_there(result.folder, key.hex(), options.force, former)) {
    result.reused = true;
    // A build that was killed between its last two writes leaves its journal.
    fs::remove(fs::path(result.folder) / kJournalName);
    result.report = TokenCache(result.folder).manifest().report;
    refuse_bad_lines(result.report, settings);
  } else {
    CacheBuilder builder(
        sources, settings, encoder, options, result.folder, key
    );
    result.resumed = builder.resume();
    refuse_bad_lines(builder.report(), settings);
    builder.run();
    result.report = builder.report();
    result.new_bytes = builder.new_bytes();
  }
  result.seconds = seconds_now() - start;
  return result;
}

}  // namespace hearth::data
