#include "hearth/hub/pull.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <functional>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/base/units.h"
#include "hearth/hub/cached_model.h"
#include "hearth/hub/checksum.h"
#include "hearth/hub/download.h"

namespace hearth::hub {
namespace {

constexpr std::uint64_t kKeepFree = std::uint64_t{64} << 20;

// Thrown in a worker when another one has failed: not shown.
struct GaveUp {};

// Files that tell a program what a folder is come last, so that a snapshot cut
// short by a crash is not taken for a model.
int placing_order(const std::string& name) {
  if (name == "config.json" || name == "adapter_config.json") return 2;
  return name.ends_with(".safetensors") || name.ends_with(".gguf") ? 1 : 0;
}

class Puller {
 public:
  Puller(
      const Settings& settings,
      const RepoName& repo,
      const PullOptions& options,
      PullEvents& events
  )
      : repo_(repo),
        options_(options),
        events_(events),
        cache_(settings.cache, repo),
        hub_(settings, {options.limits, options.retry, [this] { check(); }}) {}

  Pulled run() {
    plan();
    {
      const std::scoped_lock lock(mutex_);
      events_.planned(out_);
    }
    if (options_.dry_run) return std::move(out_);
    // Where every file is here already, a cache that cannot be written to will
    // do.
    if (std::ranges::any_of(out_.files, std::not_fn(&PulledFile::was_here))) {
      cache_.prepare();
      check_space();
      fetch_all();
    }
    place_all();
    return std::move(out_);
  }

 private:
  void check() {
    if (failed_) throw GaveUp();
    events_.check();
  }

  RetryNote note_of(const std::string& what) {
    return [this, what](const std::string& why, double seconds) {
      const std::scoped_lock lock(mutex_);
      events_.retrying(what + ": " + why, seconds);
    };
  }

  void plan() {
    const HubListing listing = hub_.list(repo_, note_of(repo_.text()));
    Selection selection = options_.selection;
    selection.file = repo_.file;
    out_.commit = listing.commit;
    out_.path = cache_.snapshot(listing.commit);
    has_tokenizer_ = std::ranges::any_of(listing.files, [](const auto& file) {
      return is_tokenizer(file.name);
    });
    for (RemoteFile& file :
         select_files(listing.files, selection, repo_.id())) {
      if (!file.size || file.oid.empty()) {
        hub_.complete(repo_, listing.commit, file, note_of(file.name));
      }
      out_.files.push_back({.remote = std::move(file)});
    }
    for (PulledFile& file : out_.files) look_at(file);
  }

  // Several names may have the same bytes: they are fetched once.
  void look_at(PulledFile& file) {
    const RemoteFile& remote = file.remote;
    out_.bytes += *remote.size;
    file.was_here = cache_.has_blob(remote.oid, *remote.size);
    if (file.was_here && options_.verify) {
      events_.check();
      const std::string blob = cache_.blob(remote.oid);
      if (checksum_of_file(blob, remote.oid, *remote.size) != remote.oid) {
        file.was_here = false;
        if (!options_.dry_run) std::remove(blob.c_str());
      }
    }
    if (file.was_here) return;
    if (!seen_.insert(remote.oid).second) {
      file.comes_with_another = true;
      return;
    }
    file.part = std::min(cache_.incomplete_size(remote.oid), *remote.size);
    out_.missing += *remote.size - file.part;
  }

  void check_space() const {
    const std::uint64_t free = cache_.free_bytes();
    if (out_.missing == 0 || free >= out_.missing + kKeepFree) return;
    throw IoError(
        fmt::format(
            "{} needs {} more in {}, and {} are to stay free there, but {} are "
            "free",
            repo_.text(), format_bytes(out_.missing), cache_.folder(),
            format_bytes(kKeepFree), format_bytes(free)
        ),
        "HF_HUB_CACHE names another folder"
    );
  }

  void fetch_all() {
    std::vector<PulledFile*> todo;
    for (PulledFile& file : out_.files) {
      if (!file.was_here && !file.comes_with_another) todo.push_back(&file);
    }
    // The large ones first: the small ones fill the gaps at the end.
    std::ranges::stable_sort(todo, std::greater(), [](const PulledFile* f) {
      return *f->remote.size;
    });
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
      while (true) {
        const std::size_t i = next++;
        if (i >= todo.size() || failed_) return;
        try {
          fetch(*todo[i]);
        } catch (const GaveUp&) {
          return;
        } catch (...) {
          fail(std::current_exception());
        }
      }
    };
    const std::size_t workers = std::min<std::size_t>(
        todo.size(), static_cast<std::size_t>(std::max(1, options_.jobs))
    );
    std::vector<std::thread> threads;
    try {
      for (std::size_t i = 1; i < workers; ++i) threads.emplace_back(work);
    } catch (const std::system_error&) {
      // The system refused a thread: those that run fetch all.
    }
    work();
    for (std::thread& thread : threads) thread.join();
    if (error_) std::rethrow_exception(error_);
  }

  // The first failure is the one that is told.
  void fail(std::exception_ptr error) {
    const std::scoped_lock lock(mutex_);
    if (!error_) error_ = std::move(error);
    failed_ = true;
  }

  void fetch(PulledFile& file) {
    const auto start = Clock::now();
    bool told = false;
    DownloadNotes notes;
    notes.advanced = [&](std::uint64_t there) {
      const std::scoped_lock lock(mutex_);
      events_.advanced(file, there);
    };
    notes.retrying = note_of(file.remote.name);
    notes.waiting = [&] {
      if (std::exchange(told, true)) return;
      const std::scoped_lock lock(mutex_);
      events_.waiting(file);
    };
    const std::uint64_t fetched =
        download_blob(hub_, cache_, repo_, out_.commit, file.remote, notes);
    const std::scoped_lock lock(mutex_);
    file.fetched = fetched;
    out_.fetched += fetched;
    file.seconds = seconds_since(start);
    events_.finished(file);
  }

  void place_all() {
    std::vector<const PulledFile*> files;
    for (const PulledFile& file : out_.files) files.push_back(&file);
    std::ranges::stable_sort(files, {}, [](const PulledFile* f) {
      return placing_order(f->remote.name);
    });
    for (const PulledFile* file : files) {
      cache_.place(out_.commit, file->remote.name, file->remote.oid);
    }
    if (!has_tokenizer_) cache_.note_absent(out_.commit, kTokenizer);
    cache_.remember_commit(repo_.revision, out_.commit);
  }

  const RepoName& repo_;
  const PullOptions& options_;
  PullEvents& events_;
  RepoCache cache_;
  HubClient hub_;
  Pulled out_;
  bool has_tokenizer_ = true;
  std::set<std::string> seen_;
  std::mutex mutex_;
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
};

}  // namespace

Pulled pull(
    const Settings& settings,
    const RepoName& repo,
    const PullOptions& options,
    PullEvents& events
) {
  return Puller(settings, repo, options, events).run();
}

}  // namespace hearth::hub
