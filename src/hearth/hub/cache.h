#pragma once
// The cache folder that Hugging Face's tools share:
//   models--ORG--NAME/blobs/OID                    a file's bytes, by checksum
//   models--ORG--NAME/blobs/OID.incomplete         the first part of them
//   models--ORG--NAME/snapshots/COMMIT/dir/FILE -> ../../../blobs/OID
//   models--ORG--NAME/refs/REVISION                the commit, as text
//   models--ORG--NAME/.no_exist/COMMIT/FILE        the commit has no such file
//   .locks/models--ORG--NAME/OID.lock
// A blob is verified before it has its name, so whatever has one is whole.
#include <cstdint>
#include <optional>
#include <string>

#include "hearth/hub/repo_name.h"

namespace hearth::hub {

class RepoCache {
 public:
  RepoCache(std::string cache, const RepoName& repo);

  const std::string& folder() const { return folder_; }
  std::string blob(const std::string& oid) const;
  std::string incomplete(const std::string& oid) const;
  std::string lock(const std::string& oid) const;
  std::string snapshot(const std::string& commit) const;
  std::string pointer(const std::string& commit, const std::string& file) const;

  // Makes the folders that a download writes to, and marks the cache as one,
  // so that backups leave it out.
  void prepare() const;

  bool has_blob(const std::string& oid, std::uint64_t size) const;
  // Bytes of the part that is there; 0 when there is none.
  std::uint64_t incomplete_size(const std::string& oid) const;

  // Puts the blob under its name in the snapshot: a relative link, a copy where
  // the file system has no links. Throws Error when a folder on the way is a
  // link itself, and so might lead out of the cache.
  void place(
      const std::string& commit,
      const std::string& file,
      const std::string& oid
  ) const;

  // The commit of a revision, which may be one itself; nothing when unknown
  // here. Throws FormatError when the file does not hold a commit.
  std::optional<std::string> commit_of(const std::string& revision) const;
  void remember_commit(
      const std::string& revision,
      const std::string& commit
  ) const;

  // Whether somebody has asked the hub for the file, and it is not there.
  bool known_absent(const std::string& commit, const std::string& file) const;
  // Only advice: a cache that cannot be written to stays as it is.
  void note_absent(const std::string& commit, const std::string& file) const;

  // Bytes free to us where the cache is.
  std::uint64_t free_bytes() const;

 private:
  std::string cache_, folder_, locks_;

  std::string absent(const std::string& commit, const std::string& file) const;
};

}  // namespace hearth::hub
