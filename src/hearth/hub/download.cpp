#include "hearth/hub/download.h"

#include <cstdio>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/quoted.h"
#include "hearth/base/units.h"
#include "hearth/hub/checksum.h"
#include "hearth/hub/file_lock.h"

namespace hearth::hub {
namespace {

// A try that brought less counts as one that failed: a server that breaks off
// after every byte would be asked for ever.
constexpr std::uint64_t kProgressBytes = std::uint64_t{1} << 20;

// The file OID.incomplete: always the first bytes of the blob and nothing
// else, so that whoever finds it can go on.
class Part {
 public:
  Part(const std::string& path, const RemoteFile& remote)
      : file_(FileHandle::open(path, O_RDWR | O_CREAT, "write", 0666)),
        remote_(remote),
        sum_(remote.oid, *remote.size) {
    struct stat info{};
    if (fstat(file_.get(), &info) != 0) throw IoError::from_errno("read", path);
    if (static_cast<std::uint64_t>(info.st_size) > *remote.size) restart();
    std::vector<std::byte> buffer(std::size_t{1} << 20);
    while (const std::size_t n = file_.read_at(buffer, size_)) {
      sum_.update(std::span(buffer).first(n));
      size_ += n;
    }
    found_ = size_;
    lseek(file_.get(), static_cast<off_t>(size_), SEEK_SET);
  }

  std::uint64_t size() const { return size_; }
  std::uint64_t left() const { return *remote_.size - size_; }
  // Whether some of it was here before this process came.
  bool was_found() const { return found_ > 0; }

  void restart() {
    if (ftruncate(file_.get(), 0) != 0) {
      throw IoError::from_errno("empty", file_.path());
    }
    lseek(file_.get(), 0, SEEK_SET);
    sum_ = Checksum(remote_.oid, *remote_.size);
    size_ = found_ = 0;
  }

  void append(std::string_view bytes) {
    const auto span = std::as_bytes(std::span(bytes));
    file_.write(span);
    sum_.update(span);
    size_ += bytes.size();
  }

  // Puts it in place when it is what it should be; else returns its checksum.
  std::string finish(const std::string& blob) {
    std::string found = sum_.digest();
    if (found != remote_.oid) return found;
    file_.sync();
    if (std::rename(file_.path().c_str(), blob.c_str()) != 0) {
      throw IoError::from_errno("put in place", blob);
    }
    file_.close();
    return {};
  }

 private:
  FileHandle file_;
  const RemoteFile& remote_;
  Checksum sum_;
  std::uint64_t size_ = 0, found_ = 0;
};

class Download {
 public:
  Download(
      const HubClient& hub,
      const RepoName& repo,
      const std::string& commit,
      const RemoteFile& file,
      const DownloadNotes& notes,
      Part& part
  )
      : hub_(hub),
        repo_(repo),
        commit_(commit),
        file_(file),
        notes_(notes),
        part_(part) {}

  std::uint64_t received() const { return received_; }

  // Until the part is as long as the file.
  void run() {
    Retry retry(hub_.options().retry, notes_.retrying, hub_.options().check);
    notes_.advanced(part_.size());
    while (part_.left() > 0) {
      const std::uint64_t before = received_;
      try {
        try_once();
        if (part_.left() > 0) {
          throw net::NetworkError(
              fmt::format(
                  "it ended {} before the end", format_bytes(part_.left())
              )
          );
        }
      } catch (const RangeRefused& e) {
        begin_anew();
        retry.after(net::NetworkError(e.what()));
      } catch (const net::NetworkError& e) {
        if (received_ - before >= kProgressBytes) retry.progressed();
        retry.after(e);
      }
    }
  }

 private:
  void try_once() {
    hub_.get_file(
        repo_, commit_, file_.name, part_.size(),
        [&](const HubClient::FileAnswer& answer) { begin(answer); },
        [&](std::string_view bytes) {
          if (bytes.size() > part_.left()) {
            fail(fmt::format("more bytes come than its {}", *file_.size));
          }
          part_.append(bytes);
          received_ += bytes.size();
          notes_.advanced(part_.size());
          return true;
        }
    );
  }

  // Holds the answer against the listing before a byte of it is taken.
  void begin(const HubClient::FileAnswer& answer) {
    const FileHeaders& said = answer.file;
    if (!said.commit.empty() && said.commit != commit_) {
      fail(
          fmt::format(
              "the hub serves it of commit {}", in_quotes(said.commit, 40)
          )
      );
    }
    if (said.etag.size() == file_.oid.size() && said.etag != file_.oid) {
      fail(
          fmt::format(
              "the hub now serves another one than it listed ({} for {})",
              in_quotes(said.etag, 64), file_.oid
          )
      );
    }
    if (answer.head.is_redirect()) return;
    answer.head.status == 206 ? begin_range(answer.head)
                              : begin_whole(answer.head);
  }

  void begin_whole(const net::HttpHead& head) {
    // The range was ignored: what is here comes again.
    if (part_.size() > 0) begin_anew();
    const auto length = head.find("content-length");
    const auto bytes = length ? net::parse_decimal(*length) : std::nullopt;
    if (bytes && *bytes != *file_.size) {
      fail(
          fmt::format(
              "{} bytes come where the listing says {}", *bytes, *file_.size
          )
      );
    }
  }

  void begin_range(const net::HttpHead& head) {
    const auto value = head.find("content-range");
    const auto range = value ? parse_content_range(*value) : std::nullopt;
    if (!range || range->first != part_.size()) {
      begin_anew();
      throw net::NetworkError("it sent another range than was asked for");
    }
    if (range->total != *file_.size) {
      fail(
          fmt::format(
              "it has {} bytes where the listing says {}", range->total,
              *file_.size
          )
      );
    }
  }

  void begin_anew() {
    part_.restart();
    notes_.advanced(0);
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(
        fmt::format("{} of {}: {}", in_quotes(file_.name), repo_.text(), what)
    );
  }

  const HubClient& hub_;
  const RepoName& repo_;
  const std::string& commit_;
  const RemoteFile& file_;
  const DownloadNotes& notes_;
  Part& part_;
  std::uint64_t received_ = 0;
};

}  // namespace

std::uint64_t download_blob(
    const HubClient& hub,
    const RepoCache& cache,
    const RepoName& repo,
    const std::string& commit,
    const RemoteFile& file,
    const DownloadNotes& notes
) {
  const FileLock lock(cache.lock(file.oid), [&] {
    hub.options().check();
    notes.waiting();
  });
  if (cache.has_blob(file.oid, *file.size)) {
    notes.advanced(*file.size);
    return 0;
  }
  std::uint64_t received = 0;
  while (true) {
    Part part(cache.incomplete(file.oid), file);
    const bool found = part.was_found();
    Download download(hub, repo, commit, file, notes, part);
    try {
      download.run();
    } catch (const net::NetworkError& e) {
      throw net::NetworkError(
          fmt::format(
              "{} of {}: {}", in_quotes(file.name), repo.text(), e.what()
          )
      );
    }
    received += download.received();
    const std::string wrong = part.finish(cache.blob(file.oid));
    if (wrong.empty()) return received;
    std::remove(cache.incomplete(file.oid).c_str());
    // What an earlier process left may be at fault: once more from the start.
    if (found) continue;
    throw Error(
        fmt::format(
            "{} of {} came with the checksum {} where the hub says {}; it was "
            "thrown away",
            in_quotes(file.name), repo.text(), wrong, file.oid
        )
    );
  }
}

}  // namespace hearth::hub
