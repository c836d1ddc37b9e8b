// The files that the entries of data.sources name: folders, patterns, weights.
#include <algorithm>
#include <charconv>
#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/data/read/dataset.h"
#include "hearth/data/read/dataset_splits.h"

namespace hearth::data {
namespace {

namespace fs = std::filesystem;

// The format by name; false when it is none of ours.
bool known_format(std::string_view name, FileFormat& format) {
  if (is_called(name, {".jsonl", ".ndjson", ".json"})) {
    format = FileFormat::kJsonl;
    return true;
  }
  if (is_called(name, {".csv", ".tsv", ".tab", ".parquet"})) {
    format = FileFormat::kTable;
    return true;
  }
  format = FileFormat::kText;
  return is_called(name, {".txt", ".text", ".md"});
}

// What makes a file of another kind one of ours.
std::string cure_of(const std::string& path) {
  for (const auto& [end, cure] :
       std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {".xz", "xz -dk {} unpacks it"},
           {".bz2", "bzip2 -dk {} unpacks it"},
           {".zip", "unzip {} unpacks it"},
           {".tar", "tar -xf {} unpacks it"},
           {".tgz", "tar -xf {} unpacks it"},
           {".xlsx", "a spreadsheet saves its rows as .csv"}
       }) {
    if (path.ends_with(end)) return fmt::format(fmt::runtime(cure), path);
  }
  return {};
}

DataFile one_file(const std::string& path) {
  DataFile file{path, FileFormat::kText, fs::file_size(path)};
  if (!known_format(path, file.format)) {
    throw UsageError(
        fmt::format(
            "[data.find_sources] a data file must be .jsonl, .ndjson, .json, "
            ".csv, .tsv, .parquet, .txt, .text or .md (also .gz, .zst), got "
            "{}",
            path
        ),
        cure_of(path)
    );
  }
  return file;
}

void sort_by_path(std::vector<DataFile>& files) {
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) {
    return a.path < b.path;
  });
}

bool has_wildcard(std::string_view path) {
  return path.find_first_of("*?") != std::string_view::npos;
}

// Every file below a folder, or those that a pattern names.
class FolderFiles {
 public:
  std::vector<DataFile> files;

  void add(const fs::path& root, std::string_view pattern) {
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      if (!entry.is_regular_file()) continue;
      const std::string path = entry.path().string();
      if (!pattern.empty() && !glob_match(pattern, path)) continue;
      FileFormat format;
      if (known_format(path, format)) {
        files.push_back({path, format, entry.file_size()});
      } else if (!entry.path().filename().string().starts_with('.')) {
        others_.push_back(path);
      }
    }
    sort_by_path(files);
    std::sort(others_.begin(), others_.end());
  }

  // A data set's own papers are no data, where it has records.
  void leave_out_papers() {
    if (std::none_of(files.begin(), files.end(), [](const DataFile& f) {
          return f.format != FileFormat::kText;
        })) {
      return;
    }
    std::erase_if(files, [&](const DataFile& f) {
      const std::string name = fs::path(f.path).filename().string();
      const bool paper =
          f.format == FileFormat::kText &&
          (name.starts_with("README") || name.starts_with("LICENSE"));
      if (paper) others_.push_back(f.path);
      return paper;
    });
  }

  std::vector<std::string> remarks() const {
    if (others_.empty()) return {};
    return {list_of_files(others_) + " not read: no data, or of another kind"};
  }

 private:
  std::vector<std::string> others_;
};

// A folder below that cannot be read is an error: data would be missing.
void find_files(DataSource& source) try {
  const std::string& path = source.name;
  FolderFiles found;
  if (fs::is_directory(path)) {
    found.add(path, {});
    found.leave_out_papers();
  } else if (fs::exists(path)) {
    found.files.push_back(one_file(path));
  } else if (has_wildcard(path)) {
    const auto slash = path.rfind('/', path.find_first_of("*?"));
    const std::string root =
        slash == std::string::npos ? "." : path.substr(0, slash + 1);
    const std::string pattern = slash == std::string::npos ? "./" + path : path;
    if (fs::is_directory(root)) found.add(root, pattern);
  }
  source.files = std::move(found.files);
  source.remarks = found.remarks();
  if (source.files.empty()) {
    std::string also;
    for (const auto& remark : source.remarks) also += "; " + remark;
    throw UsageError("[data.find_sources] no data files at " + path + also);
  }
} catch (const fs::filesystem_error& e) {
  throw IoError(
      fmt::format("cannot read {}: {}", e.path1().string(), e.code().message())
  );
}

bool parse_number(std::string_view text, double& out) {
  const auto* end = text.data() + text.size();
  const auto got = std::from_chars(text.data(), end, out);
  return got.ec == std::errc{} && got.ptr == end;
}

// Splits "PATH:WEIGHT"; a path that exists with its colon is left alone.
DataSource parse_entry(const std::string& entry, bool& weighted) {
  DataSource source{entry, 1, {}, false, {}};
  const auto colon = entry.rfind(':');
  weighted =
      colon != std::string::npos && !fs::exists(entry) &&
      parse_number(std::string_view(entry).substr(colon + 1), source.weight);
  if (!weighted) return source;
  if (!(source.weight > 0) || source.weight > 1e9) {
    throw UsageError(
        "[data.find_sources] a mixing weight must be above 0, got " + entry
    );
  }
  source.name = entry.substr(0, colon);
  return source;
}

}  // namespace

std::vector<std::string> remarks_of(const std::vector<DataSource>& sources) {
  std::vector<std::string> all;
  for (const auto& source : sources) {
    all.insert(all.end(), source.remarks.begin(), source.remarks.end());
  }
  return all;
}

bool is_called(
    std::string_view path,
    std::initializer_list<std::string_view> ends
) {
  for (std::string_view end : {".gz", ".zst"}) {
    if (path.ends_with(end)) path.remove_suffix(end.size());
  }
  return std::any_of(ends.begin(), ends.end(), [&](auto end) {
    return path.ends_with(end);
  });
}

bool glob_match(std::string_view pattern, std::string_view path) {
  if (pattern.empty()) return path.empty();
  if (pattern[0] != '*') {
    const bool one = !path.empty() && (pattern[0] == path[0] ||
                                       (pattern[0] == '?' && path[0] != '/'));
    return one && glob_match(pattern.substr(1), path.substr(1));
  }
  const bool deep = pattern.starts_with("**");
  const auto rest = pattern.substr(deep ? 2 : 1);
  // "**/" also matches no folder at all.
  if (deep && rest.starts_with('/') && glob_match(rest.substr(1), path)) {
    return true;
  }
  for (std::size_t i = 0;; ++i) {
    if (glob_match(rest, path.substr(i))) return true;
    if (i == path.size() || (!deep && path[i] == '/')) return false;
  }
}

std::vector<DataSource> find_sources(const std::vector<std::string>& entries) {
  if (entries.empty()) {
    throw UsageError("[data.find_sources] at least one data file is needed");
  }
  std::vector<DataSource> sources;
  std::size_t with_weight = 0;
  for (const auto& entry : entries) {
    bool weighted = false;
    sources.push_back(parse_entry(entry, weighted));
    with_weight += weighted;
    find_files(sources.back());
  }
  if (with_weight != 0 && with_weight != entries.size()) {
    throw UsageError(
        fmt::format(
            "[data.find_sources] all sources of a mix need a weight or none, "
            "got "
            "{} of {}",
            with_weight, entries.size()
        )
    );
  }
  for (auto& source : sources) source.weight *= with_weight > 0;
  split_folders(sources);
  return sources;
}

Split split_of(std::uint64_t content_hash, double valid_share) {
  // 53 bits are exact in a double, so every platform agrees on the border.
  const double at = static_cast<double>(content_hash >> 11) * 0x1p-53;
  return at < valid_share ? Split::kValid : Split::kTrain;
}

double parse_share(std::string_view text) {
  double share = 0;
  if (text == "off") return 0;
  const bool percent = text.ends_with('%');
  const bool number =
      parse_number(text.substr(0, text.size() - percent), share);
  if (percent) share *= 0.01;
  if (!number || !(share >= 0) || share >= 1) {
    throw UsageError(
        fmt::format(
            "[data.parse_share] a held-out share must be like 2% or 0.02 and "
            "below 1, got '{}'",
            text
        )
    );
  }
  return share;
}

}  // namespace hearth::data
