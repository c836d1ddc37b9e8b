#include "hearth/hub/listing.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/quoted.h"
#include "hearth/hub/repo_name.h"
#include "hearth/io/strict_json.h"

namespace hearth::hub {
namespace {

using io::SortedJson;

constexpr std::size_t kMostFiles = 100'000;
constexpr std::uint64_t kLargestFile = std::uint64_t{1} << 50;

[[noreturn]] void fail(std::string_view name, const std::string& what) {
  throw FormatError(fmt::format("{}: {}", name, what));
}

const SortedJson* member(const SortedJson& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

std::string text_of(
    const SortedJson& object,
    const char* key,
    std::string_view name
) {
  const SortedJson* value = member(object, key);
  if (value == nullptr) return {};
  if (!value->is_string()) fail(name, fmt::format("'{}' must be text", key));
  return value->get<std::string>();
}

std::optional<std::uint64_t> size_of(
    const SortedJson& object,
    std::string_view name
) {
  const SortedJson* value = member(object, "size");
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_unsigned() ||
      value->get<std::uint64_t>() > kLargestFile) {
    fail(name, "a file's size must be a number of bytes");
  }
  return value->get<std::uint64_t>();
}

// Large files carry their own object; its oid is written with or without
// the name of its hash.
void read_lfs(const SortedJson& lfs, RemoteFile& file, std::string_view name) {
  std::string oid = text_of(lfs, "oid", name);
  if (oid.empty()) oid = text_of(lfs, "sha256", name);
  if (oid.starts_with("sha256:")) oid.erase(0, 7);
  if (!is_sha256(oid)) {
    fail(
        name, fmt::format(
                  "the checksum of {} must be 64 hexadecimal digits, got {}",
                  in_quotes(file.name), in_quotes(oid)
              )
    );
  }
  file.oid = oid;
  if (const auto size = size_of(lfs, name)) file.size = size;
}

}  // namespace

Revision parse_revision(std::string_view json, std::string_view name) {
  const SortedJson all = io::parse_strict_json(json, name);
  Revision out;
  out.commit = text_of(all, "sha", name);
  if (!is_commit(out.commit)) {
    fail(
        name, fmt::format(
                  "'sha' must be a commit of 40 hexadecimal digits, got {}",
                  in_quotes(out.commit)
              )
    );
  }
  const SortedJson* siblings = member(all, "siblings");
  if (siblings == nullptr) return out;
  if (!siblings->is_array() || siblings->size() > kMostFiles) {
    fail(
        name, fmt::format("'siblings' must be a list of at most {}", kMostFiles)
    );
  }
  for (const SortedJson& one : *siblings) {
    std::string file = text_of(one, "rfilename", name);
    check_file_name(file);
    out.file_names.push_back(std::move(file));
  }
  return out;
}

void parse_tree(
    std::string_view json,
    std::string_view name,
    std::vector<RemoteFile>& files
) {
  const SortedJson all = io::parse_strict_json(json, name);
  if (!all.is_array() || files.size() + all.size() > kMostFiles) {
    fail(
        name, fmt::format("the files must be a list of at most {}", kMostFiles)
    );
  }
  for (const SortedJson& one : all) {
    if (!one.is_object()) fail(name, "a file must be an object");
    const std::string type = text_of(one, "type", name);
    RemoteFile file;
    file.name = text_of(one, "path", name);
    check_file_name(file.name);
    if (type != "file") continue;
    file.size = size_of(one, name);
    const std::string blob = text_of(one, "oid", name);
    if (const SortedJson* lfs = member(one, "lfs")) {
      read_lfs(*lfs, file, name);
    } else if (is_commit(blob)) {
      file.oid = blob;
    } else if (!blob.empty()) {
      fail(
          name, fmt::format(
                    "the id of {} must be 40 hexadecimal digits, got {}",
                    in_quotes(file.name), in_quotes(blob)
                )
      );
    }
    files.push_back(std::move(file));
  }
}

void finish_listing(std::vector<RemoteFile>& files) {
  std::ranges::sort(files, {}, &RemoteFile::name);
  std::unordered_set<std::string_view> names;
  for (const RemoteFile& file : files) {
    if (!names.insert(file.name).second) {
      throw FormatError(
          fmt::format("the hub lists the file {} twice", in_quotes(file.name))
      );
    }
  }
  for (const RemoteFile& file : files) {
    const std::string_view name = file.name;
    for (std::size_t at = name.find('/'); at != name.npos;
         at = name.find('/', at + 1)) {
      if (names.contains(name.substr(0, at))) {
        throw FormatError(
            fmt::format(
                "the hub lists {} as a file and as a folder",
                in_quotes(name.substr(0, at))
            )
        );
      }
    }
  }
}

}  // namespace hearth::hub
