#include "hearth/hub/repo_name.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/quoted.h"

namespace hearth::hub {
namespace {

constexpr std::size_t kLongestName = 96, kLongestRevision = 255;
constexpr std::size_t kLongestPath = 1024, kLongestComponent = 255;
constexpr int kDeepest = 32;

bool is_alnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// The hub's own rule for an organisation and for a model's name. "--" would be
// taken for the border between the two in the cache's folder name.
bool is_repo_word(std::string_view word) {
  const auto plain = [](char c) {
    return is_alnum(c) || c == '.' || c == '_' || c == '-';
  };
  return !word.empty() && word.size() <= kLongestName &&
         std::ranges::all_of(word, plain) && word.find("--") == word.npos &&
         word.find("..") == word.npos && word.front() != '.' &&
         word.front() != '-' && word.back() != '.' && word.back() != '-' &&
         !word.ends_with(".git");
}

// What git allows of a reference's component, and nothing that a path would
// read in another way.
bool is_revision_component(std::string_view part) {
  const auto plain = [](char c) {
    return static_cast<unsigned char>(c) > ' ' && c != 0x7f &&
           std::string_view("~^:?*[\\").find(c) == std::string_view::npos;
  };
  return !part.empty() && std::ranges::all_of(part, plain) &&
         part.front() != '.' && part.back() != '.' && !part.ends_with(".lock");
}

// Calls body(component) for each part between slashes, empty ones too.
template <class Body>
bool all_components(std::string_view path, Body body) {
  while (true) {
    const std::size_t slash = path.find('/');
    if (!body(path.substr(0, slash))) return false;
    if (slash == path.npos) return true;
    path.remove_prefix(slash + 1);
  }
}

bool is_revision(std::string_view text) {
  return text.size() <= kLongestRevision && text.find("..") == text.npos &&
         text.find("@{") == text.npos &&
         all_components(text, is_revision_component);
}

[[noreturn]] void refuse(std::string_view text) {
  throw UsageError(
      fmt::format(
          "a model of the hub must be named ORG/NAME or ORG/NAME@REV, got {}",
          in_quotes(text)
      ),
      "for example HuggingFaceTB/SmolLM2-135M-Instruct"
  );
}

}  // namespace

std::string RepoName::text() const {
  std::string out = id();
  if (!file.empty()) out += "/" + file;
  if (revision != "main") out += "@" + revision;
  return out;
}

RepoName parse_repo_name(std::string_view text) {
  RepoName out;
  std::string_view rest = text;
  if (const std::size_t at = rest.find('@'); at != rest.npos) {
    out.revision = rest.substr(at + 1);
    rest = rest.substr(0, at);
    if (!is_revision(out.revision)) {
      throw UsageError(
          fmt::format(
              "a revision must be a branch, tag or commit, got {}",
              in_quotes(out.revision)
          )
      );
    }
  }
  const std::size_t first = rest.find('/');
  if (first == rest.npos) refuse(text);
  out.org = rest.substr(0, first);
  rest.remove_prefix(first + 1);
  const std::size_t second = rest.find('/');
  out.name = rest.substr(0, second);
  if (!is_repo_word(out.org) || !is_repo_word(out.name)) refuse(text);
  if (second != rest.npos) {
    out.file = rest.substr(second + 1);
    try {
      check_file_name(out.file);
    } catch (const FormatError&) {
      refuse(text);
    }
  }
  return out;
}

bool is_hub_reference(std::string_view text) {
  return text.starts_with("hf:");
}

RepoName parse_hub_reference(std::string_view text) {
  text.remove_prefix(is_hub_reference(text) ? 3 : 0);
  return parse_repo_name(text);
}

bool is_commit(std::string_view text) {
  return is_hex(text, 40);
}

bool is_sha256(std::string_view text) {
  return is_hex(text, 64);
}

void check_file_name(std::string_view name) {
  int depth = 0;
  const auto plain = [](char c) {
    return static_cast<unsigned char>(c) >= ' ' && c != 0x7f && c != '\\';
  };
  const bool good =
      name.size() <= kLongestPath && std::ranges::all_of(name, plain) &&
      all_components(name, [&](std::string_view part) {
        return ++depth <= kDeepest && !part.empty() && part != "." &&
               part != ".." && part.size() <= kLongestComponent;
      });
  if (good) return;
  throw FormatError(
      fmt::format(
          "the hub lists a file named {}, which is no plain relative path",
          in_quotes(name)
      )
  );
}

}  // namespace hearth::hub
