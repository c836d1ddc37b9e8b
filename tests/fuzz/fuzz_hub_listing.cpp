// Any bytes as what a hub answers: the first byte says as which part of it.
// What is let through must be safe to make a path or a request of.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "hearth/base/error.h"
#include "hearth/hub/hub_headers.h"
#include "hearth/hub/listing.h"
#include "hearth/hub/repo_name.h"
#include "hearth/hub/selection.h"
#include "hearth/net/http_head.h"
#include "hearth/net/url.h"

namespace {

using namespace hearth::hub;
namespace net = hearth::net;

void require(bool holds) {
  if (!holds) std::abort();
}

// No component that climbs, nothing absolute.
void require_inside(std::string_view path) {
  require(!path.empty() && path.front() != '/' && path.back() != '/');
  require(path.find('\0') == path.npos && path.find('\\') == path.npos);
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    require(!part.empty() && part != "." && part != "..");
    if (slash == path.npos) break;
    path.remove_prefix(slash + 1);
  }
}

void read_tree(std::string_view text) {
  std::vector<RemoteFile> files;
  parse_tree(text, "fuzz", files);
  finish_listing(files);
  for (const RemoteFile& file : files) {
    require_inside(file.name);
    require(file.oid.empty() || is_commit(file.oid) || is_sha256(file.oid));
  }
  (void)select_files(files, {}, "o/n");
}

void read_answer(std::string_view text) {
  const net::HttpHead head = net::parse_http_head(text);
  net::check_body_headers(head, false);
  FileHeaders file;
  read_file_headers(head, file);
  for (const auto& [name, value] : head.headers) {
    require(value.find_first_of("\r\n") == value.npos);
    (void)parse_content_range(value);
    (void)parse_retry_after(value, 0);
    (void)next_link(value);
  }
  if (const auto to = head.find("location")) {
    const net::Url url =
        net::resolve_url(net::parse_url("https://hub.example/x/y?z", "x"), *to);
    require(url.target.find_first_of(" \r\n") == url.target.npos);
    require(url.target.front() == '/');
    require(url.host.find_first_of("/@ \r\n") == url.host.npos);
  }
}

void read_name(std::string_view text) {
  const RepoName name = parse_hub_reference(text);
  require_inside(name.org + "/" + name.name);
  require_inside(name.revision);
  if (!name.file.empty()) require_inside(name.file);
  require(parse_repo_name(name.text()).text() == name.text());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  if (n == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, n - 1);
  try {
    switch (data[0]) {
      case 'r':
        for (const auto& name : parse_revision(text, "fuzz").file_names) {
          require_inside(name);
        }
        break;
      case 't':
        read_tree(text);
        break;
      case 'h':
        read_answer(text);
        break;
      default:
        read_name(text);
    }
  } catch (const hearth::UsageError&) {
    // FormatError is one of these.
  }
  return 0;
}
