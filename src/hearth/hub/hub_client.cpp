#include "hearth/hub/hub_client.h"

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/quoted.h"
#include "hearth/base/units.h"

namespace hearth::hub {
namespace {

constexpr int kMostRedirects = 8, kMostPages = 1000;
constexpr std::size_t kMostListingBytes = std::size_t{64} << 20;

bool is_success(const net::HttpHead& head) {
  return head.status == 200 || head.status == 206;
}

// The addresses that the hub redirects to are signed and expire: a refusal
// there means that the hub must be asked again.
[[noreturn]] void throw_storage_status(
    const net::HttpHead& head,
    const net::Url& url
) {
  throw net::NetworkError(
      fmt::format("{}: it answered {}", url.authority(), head.status)
  );
}

}  // namespace

HubClient::HubClient(const Settings& settings, HubOptions options)
    : settings_(settings), options_(std::move(options)) {
  check_endpoint(settings_);
}

net::Url HubClient::address(const std::string& target) const {
  net::Url out = settings_.endpoint;
  std::string path = out.target.substr(0, out.target.find('?'));
  while (path.ends_with('/')) path.pop_back();
  out.target = path + target;
  return out;
}

net::Url HubClient::file_address(
    const RepoName& repo,
    const std::string& commit,
    const std::string& file
) const {
  return address(
      fmt::format(
          "/{}/resolve/{}/{}", repo.id(), commit,
          net::percent_encode(file, true)
      )
  );
}

net::Url HubClient::redirected(
    const net::Url& from,
    const net::HttpHead& head
) const {
  const auto location = head.find("location");
  if (!location) {
    throw FormatError(
        fmt::format("{} redirects, but not where to", from.shown())
    );
  }
  const net::Url to = net::resolve_url(from, *location);
  const bool allowed =
      to.secure || settings_.allow_http || (!from.secure && to.is_loopback());
  if (allowed) return to;
  throw Error(
      fmt::format(
          "{} redirects to {}, which is not encrypted and was refused",
          from.shown(), to.origin()
      )
  );
}

net::HttpHead HubClient::send_once(
    const Request& request,
    const net::Url& url,
    const net::HttpReceiver& receiver
) const {
  net::HttpRequest one{.url = url, .head_only = request.head_only};
  if (request.first > 0) {
    one.headers.emplace_back("Range", fmt::format("bytes={}-", request.first));
  }
  if (!settings_.token.empty() && url.origin() == settings_.endpoint.origin()) {
    one.headers.emplace_back("Authorization", "Bearer " + settings_.token);
  }
  try {
    return net::http_fetch(one, options_.limits, receiver);
  } catch (const net::NetworkError& e) {
    throw net::NetworkError(
        fmt::format("{}: {}", url.authority(), e.what()), e.wait()
    );
  } catch (const FormatError& e) {
    throw FormatError(fmt::format("{}: {}", url.authority(), e.what()));
  }
}

HubClient::FileAnswer HubClient::send(
    const Request& request,
    const std::function<void(const FileAnswer&)>& begin,
    const std::function<bool(std::string_view)>& body
) const {
  net::Url url = request.url;
  FileAnswer answer;
  for (int hops = 0; hops <= kMostRedirects; ++hops) {
    net::HttpReceiver receiver{.body = body, .check = options_.check};
    receiver.head = [&](const net::HttpHead& head) {
      read_file_headers(head, answer.file);
      answer.head = head;
      if (is_success(head) || head.is_redirect()) begin(answer);
      return is_success(head);
    };
    const net::HttpHead head = send_once(request, url, receiver);
    if (is_success(head)) return answer;
    if (!head.is_redirect()) {
      const bool hub = url.origin() == settings_.endpoint.origin();
      if (!hub && head.status != 416) throw_storage_status(head, url);
      throw_status(head, request.model);
    }
    // A HEAD of a large file: the hub has said everything, and the storage is
    // not asked.
    const net::Url next = redirected(url, head);
    if (request.head_only && next.origin() != url.origin()) return answer;
    url = next;
  }
  throw Error(fmt::format("{} redirects without an end", request.url.shown()));
}

std::string HubClient::get_text(
    const Request& request,
    const RetryNote& note,
    net::HttpHead* head
) const {
  Retry retry(options_.retry, note, options_.check);
  while (true) {
    std::string text;
    try {
      const FileAnswer answer = send(
          request, [](const FileAnswer&) {},
          [&](std::string_view bytes) {
            text += bytes;
            return text.size() <= kMostListingBytes;
          }
      );
      if (text.size() > kMostListingBytes) {
        throw FormatError(
            fmt::format(
                "{}: the list of files must be at most {}", request.url.shown(),
                format_bytes(kMostListingBytes)
            )
        );
      }
      if (head != nullptr) *head = answer.head;
      return text;
    } catch (const net::NetworkError& e) {
      retry.after(e);
    }
  }
}

HubListing HubClient::list(const RepoName& repo, const RetryNote& note) const {
  const std::string api = "/api/models/" + repo.id();
  Request request{.model = repo.text()};
  request.url =
      address(api + "/revision/" + net::percent_encode(repo.revision, false));
  const Revision revision =
      parse_revision(get_text(request, note), request.url.shown());
  HubListing out{revision.commit, {}};
  request.url = address(api + "/tree/" + revision.commit + "?recursive=true");
  try {
    for (int pages = 0; pages < kMostPages; ++pages) {
      net::HttpHead head;
      const std::string text = get_text(request, note, &head);
      parse_tree(text, request.url.shown(), out.files);
      const auto link = head.find("link");
      const auto next = link ? next_link(*link) : std::nullopt;
      if (!next) break;
      const net::Url page = net::resolve_url(request.url, *next);
      if (page.origin() != request.url.origin()) {
        throw FormatError(
            fmt::format(
                "{}: the list of files goes on at {}, another host",
                request.url.shown(), page.origin()
            )
        );
      }
      request.url = page;
    }
  } catch (const NotThere&) {
    // A mirror without trees: names are enough, the rest is asked file by file.
    for (const std::string& name : revision.file_names) {
      out.files.push_back({name, std::nullopt, {}});
    }
  }
  finish_listing(out.files);
  return out;
}

void HubClient::complete(
    const RepoName& repo,
    const std::string& commit,
    RemoteFile& file,
    const RetryNote& note
) const {
  Request request{.head_only = true, .model = repo.text()};
  request.url = file_address(repo, commit, file.name);
  Retry retry(options_.retry, note, options_.check);
  FileHeaders found;
  while (true) {
    try {
      found = send(
                  request, [](const FileAnswer&) {},
                  [](std::string_view) { return true; }
      ).file;
      break;
    } catch (const net::NetworkError& e) {
      retry.after(e);
    }
  }
  if (!file.size) file.size = found.size;
  if (file.oid.empty()) file.oid = found.etag;
  if (!file.size || !(is_commit(file.oid) || is_sha256(file.oid))) {
    throw FormatError(
        fmt::format(
            "{}: the hub must say size and checksum of a file, got ETag {}",
            request.url.shown(), in_quotes(file.oid, 80)
        )
    );
  }
}

void HubClient::get_file(
    const RepoName& repo,
    const std::string& commit,
    const std::string& file,
    std::uint64_t first,
    const std::function<void(const FileAnswer&)>& begin,
    const std::function<bool(std::string_view)>& body
) const {
  Request request{.first = first, .model = repo.text()};
  request.url = file_address(repo, commit, file);
  send(request, begin, body);
}

}  // namespace hearth::hub
