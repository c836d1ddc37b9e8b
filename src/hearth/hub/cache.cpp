#include "hearth/hub/cache.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <sys/statvfs.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/quoted.h"
#include "hearth/base/temporary_name.h"

namespace hearth::hub {
namespace {

namespace fs = std::filesystem;

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error) return;
  throw IoError(
      fmt::format(
          "cannot make the folder {}: {}", path.string(), error.message()
      )
  );
}

bool has_size(const std::string& path, std::uint64_t size) {
  std::error_code error;
  return fs::is_regular_file(path, error) &&
         fs::file_size(path, error) == size && !error;
}

// The folders between the snapshot and the file, each a real one.
void make_folders_below(const fs::path& snapshot, const fs::path& file) {
  fs::path at = snapshot;
  make_folder(at);
  for (const fs::path& part : file.parent_path()) {
    at /= part;
    std::error_code error;
    const fs::file_status status = fs::symlink_status(at, error);
    if (!fs::exists(status)) {
      make_folder(at);
    } else if (!fs::is_directory(status)) {
      throw Error(
          fmt::format(
              "{} must be a folder of the cache, not a link", at.string()
          )
      );
    }
  }
}

// blobs/OID as seen from the snapshot's file.
std::string link_target(const std::string& file, const std::string& oid) {
  std::string out = "../../";
  for (const char c : file) out += c == '/' ? "../" : "";
  return out + "blobs/" + oid;
}

}  // namespace

RepoCache::RepoCache(std::string cache, const RepoName& repo)
    : cache_(std::move(cache)),
      folder_(cache_ + "/" + repo.folder()),
      locks_(cache_ + "/.locks/" + repo.folder()) {}

std::string RepoCache::blob(const std::string& oid) const {
  return folder_ + "/blobs/" + oid;
}

std::string RepoCache::incomplete(const std::string& oid) const {
  return blob(oid) + ".incomplete";
}

std::string RepoCache::lock(const std::string& oid) const {
  return locks_ + "/" + oid + ".lock";
}

std::string RepoCache::snapshot(const std::string& commit) const {
  return folder_ + "/snapshots/" + commit;
}

std::string RepoCache::pointer(
    const std::string& commit,
    const std::string& file
) const {
  return snapshot(commit) + "/" + file;
}

void RepoCache::prepare() const {
  make_folder(folder_ + "/blobs");
  make_folder(folder_ + "/refs");
  make_folder(folder_ + "/snapshots");
  make_folder(locks_);
  const std::string tag = cache_ + "/CACHEDIR.TAG";
  if (fs::exists(tag)) return;
  write_file_atomically(
      tag,
      "Signature: 8a477f597d28d172789f06886806bc55\n"
      "# A cache of models: it can be fetched again. See "
      "https://bford.info/cachedir/\n"
  );
}

bool RepoCache::has_blob(const std::string& oid, std::uint64_t size) const {
  return has_size(blob(oid), size);
}

std::uint64_t RepoCache::incomplete_size(const std::string& oid) const {
  std::error_code error;
  const auto size = fs::file_size(incomplete(oid), error);
  return error ? 0 : size;
}

void RepoCache::place(
    const std::string& commit,
    const std::string& file,
    const std::string& oid
) const {
  make_folders_below(snapshot(commit), file);
  const std::string at = pointer(commit, file);
  const std::string target = link_target(file, oid);
  std::error_code error;
  if (fs::read_symlink(at, error) == target && !error) return;
  const std::string beside = temporary_name(at);
  fs::create_symlink(target, beside, error);
  if (error) {
    error.clear();
    fs::copy_file(blob(oid), beside, fs::copy_options::none, error);
  }
  if (!error) fs::rename(beside, at, error);
  if (!error) return;
  std::remove(beside.c_str());
  throw IoError(fmt::format("cannot put {} in place: {}", at, error.message()));
}

std::optional<std::string> RepoCache::commit_of(
    const std::string& revision
) const {
  if (is_commit(revision)) return revision;
  const std::string path = folder_ + "/refs/" + revision;
  if (!fs::is_regular_file(path)) return std::nullopt;
  std::string text = read_text_file(path, 1024);
  while (text.ends_with('\n') || text.ends_with(' ')) text.pop_back();
  if (is_commit(text)) return text;
  throw FormatError(
      fmt::format(
          "{}: a reference must hold a commit of 40 digits, got {}", path,
          in_quotes(text, 60)
      ),
      "remove the file and pull again"
  );
}

void RepoCache::remember_commit(
    const std::string& revision,
    const std::string& commit
) const {
  if (revision == commit) return;
  const std::string path = folder_ + "/refs/" + revision;
  make_folder(fs::path(path).parent_path());
  std::error_code unknown;
  if (fs::is_regular_file(path, unknown) &&
      read_text_file(path, 1024) == commit) {
    return;
  }
  write_file_atomically(path, commit);
}

std::string RepoCache::absent(
    const std::string& commit,
    const std::string& file
) const {
  return folder_ + "/.no_exist/" + commit + "/" + file;
}

bool RepoCache::known_absent(
    const std::string& commit,
    const std::string& file
) const {
  std::error_code error;
  return fs::is_regular_file(absent(commit, file), error);
}

void RepoCache::note_absent(
    const std::string& commit,
    const std::string& file
) const {
  if (known_absent(commit, file)) return;
  try {
    make_folder(fs::path(absent(commit, file)).parent_path());
    write_file_atomically(absent(commit, file), "");
  } catch (const Error& e) {
    log_debug("{}", e.what());
  }
}

std::uint64_t RepoCache::free_bytes() const {
  struct statvfs info{};
  if (statvfs(cache_.c_str(), &info) != 0) {
    throw IoError::from_errno("ask for the free space of", cache_);
  }
  return static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
}

}  // namespace hearth::hub
