#pragma once
// A model from a hub into the shared cache: listed, chosen, fetched several
// files at a time, verified, and put in place last, so that a snapshot that is
// found is one that is whole.
#include <cstdint>
#include <string>
#include <vector>

#include "hearth/hub/hub_client.h"
#include "hearth/hub/selection.h"

namespace hearth::hub {

struct PullOptions {
  Selection selection;
  int jobs = 4;          // files at a time
  bool dry_run = false;  // say what would be fetched, and fetch nothing
  bool verify = false;   // read what is there again, against its checksum
  net::HttpLimits limits;
  RetryPolicy retry;
};

struct PulledFile {
  RemoteFile remote;
  bool was_here = false;
  bool comes_with_another = false;  // of the same bytes, which is fetched
  std::uint64_t part = 0;           // bytes an earlier try had left
  std::uint64_t fetched = 0;
  double seconds = 0;
};

struct Pulled {
  std::string commit;
  std::string path;  // the snapshot's folder
  std::vector<PulledFile> files;
  std::uint64_t bytes = 0;    // of all files
  std::uint64_t missing = 0;  // of what was to fetch at the beginning
  std::uint64_t fetched = 0;
};

// What happens, as it happens; one call at a time, from any thread.
class PullEvents {
 public:
  virtual ~PullEvents() = default;
  // Throws to give up (Interrupted); asked several times a second. The only
  // one that may be called from several threads at once.
  virtual void check() {}
  virtual void planned(const Pulled&) {}
  virtual void advanced(const PulledFile&, std::uint64_t /*there*/) {}
  virtual void finished(const PulledFile&) {}
  virtual void retrying(const std::string& /*what*/, double /*seconds*/) {}
  // Another process is at this file.
  virtual void waiting(const PulledFile&) {}
};

// Throws UsageError for what the hub refuses, Error for what it lies about,
// NetworkError when it cannot be reached. Whatever is thrown, what was fetched
// stays as parts to go on from, and no snapshot or reference was changed.
Pulled pull(
    const Settings& settings,
    const RepoName& repo,
    const PullOptions& options,
    PullEvents& events
);

}  // namespace hearth::hub
