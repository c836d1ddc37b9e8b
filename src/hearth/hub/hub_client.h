#pragma once
// Requests to a hub: its redirects followed, its refusals turned into one clear
// line, the token sent to it and to nobody it points to.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hearth/hub/hub_headers.h"
#include "hearth/hub/listing.h"
#include "hearth/hub/repo_name.h"
#include "hearth/hub/retry.h"
#include "hearth/hub/settings.h"
#include "hearth/net/http_client.h"

namespace hearth::hub {

struct HubOptions {
  net::HttpLimits limits;
  RetryPolicy retry;
  // Called several times a second, from any thread; throws to give up.
  std::function<void()> check = [] {};
};

struct HubListing {
  std::string commit;
  std::vector<RemoteFile> files;
};

class HubClient {
 public:
  // Throws UsageError for an endpoint that is not allowed.
  HubClient(const Settings& settings, HubOptions options);

  const HubOptions& options() const { return options_; }

  // The commit behind a revision, and its files.
  HubListing list(const RepoName& repo, const RetryNote& note) const;
  // Size and checksum of a file that the listing gave without.
  void complete(
      const RepoName& repo,
      const std::string& commit,
      RemoteFile& file,
      const RetryNote& note
  ) const;

  struct FileAnswer {
    net::HttpHead head;
    FileHeaders file;
  };
  // One try at a file's bytes from `first` on. `begin` sees each redirect and
  // the answer before its body, and may refuse by throwing; body as
  // HttpReceiver has it.
  void get_file(
      const RepoName& repo,
      const std::string& commit,
      const std::string& file,
      std::uint64_t first,
      const std::function<void(const FileAnswer&)>& begin,
      const std::function<bool(std::string_view)>& body
  ) const;

 private:
  struct Request {
    net::Url url;
    bool head_only = false;
    std::uint64_t first = 0;
    std::string model;  // for messages
  };
  // Follows redirects; a status that is no success throws.
  FileAnswer send(
      const Request& request,
      const std::function<void(const FileAnswer&)>& begin,
      const std::function<bool(std::string_view)>& body
  ) const;
  net::HttpHead send_once(
      const Request& request,
      const net::Url& url,
      const net::HttpReceiver& receiver
  ) const;
  std::string get_text(
      const Request& request,
      const RetryNote& note,
      net::HttpHead* head = nullptr
  ) const;
  net::Url redirected(const net::Url& from, const net::HttpHead& head) const;
  net::Url address(const std::string& target) const;
  net::Url file_address(
      const RepoName& repo,
      const std::string& commit,
      const std::string& file
  ) const;

  Settings settings_;
  HubOptions options_;
};

// The hub has no such model, revision or file.
class NotThere : public UsageError {
 public:
  using UsageError::UsageError;
};

// What is asked for begins after the end of the file.
class RangeRefused : public Error {
 public:
  using Error::Error;
};

// What a status that is no success means. NetworkError where trying again may
// help. Throws always.
[[noreturn]] void throw_status(
    const net::HttpHead& head,
    const std::string& model
);

}  // namespace hearth::hub
