#include "hearth/data/read/dataset_splits.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/ascii.h"

namespace hearth::data {
namespace {

namespace fs = std::filesystem;

FileSplit split_of_word(const std::string& word) {
  if (word == "train" || word == "training") return FileSplit::kTrain;
  for (const char* valid : {"valid", "validation", "val", "dev", "eval"}) {
    if (word == valid) return FileSplit::kValid;
  }
  return word == "test" || word == "testing" ? FileSplit::kTest
                                             : FileSplit::kNone;
}

FileSplit named_split(const DataSource& source, const DataFile& file) {
  std::string_view path = file.path;
  // What the folder itself is called says nothing about its files.
  if (path.starts_with(source.name)) path.remove_prefix(source.name.size());
  return split_of_file(path);
}

// The files of that split, which the source loses.
std::vector<DataFile> take_out(DataSource& source, FileSplit split) {
  std::vector<DataFile> taken;
  std::erase_if(source.files, [&](const DataFile& file) {
    const bool yes = named_split(source, file) == split;
    if (yes) taken.push_back(file);
    return yes;
  });
  return taken;
}

std::vector<std::string> paths_of(const std::vector<DataFile>& files) {
  std::vector<std::string> paths;
  for (const auto& file : files) paths.push_back(file.path);
  return paths;
}

}  // namespace

FileSplit split_of_file(std::string_view path) {
  const fs::path file(path);
  std::string name = ascii_lower(file.filename().string());
  name = name.substr(0, name.find('.'));
  // The hub's parts: train-00000-of-00002.
  const auto dash = name.find('-');
  if (dash != std::string::npos &&
      name.find("-of-", dash) != std::string::npos) {
    name.resize(dash);
  }
  const FileSplit by_name = split_of_word(name);
  if (by_name != FileSplit::kNone) return by_name;
  return split_of_word(ascii_lower(file.parent_path().filename().string()));
}

void split_folders(std::vector<DataSource>& sources) {
  std::vector<DataSource> held_out;
  for (auto& source : sources) {
    const auto is = [&](FileSplit split) {
      return std::any_of(
          source.files.begin(), source.files.end(),
          [&](const auto& f) { return named_split(source, f) == split; }
      );
    };
    // One file alone, whatever its name, is what somebody asked for.
    if (!is(FileSplit::kTrain)) continue;
    const auto tests = take_out(source, FileSplit::kTest);
    if (!tests.empty()) {
      source.remarks.push_back(
          list_of_files(paths_of(tests)) + " not read: a test set"
      );
    }
    auto valid = take_out(source, FileSplit::kValid);
    if (valid.empty()) continue;
    DataSource split{valid[0].path, 0, std::move(valid), true, {}};
    split.remarks.push_back(
        list_of_files(paths_of(split.files)) + " held out for validation"
    );
    held_out.push_back(std::move(split));
  }
  for (auto& source : held_out) sources.push_back(std::move(source));
}

std::string list_of_files(const std::vector<std::string>& paths) {
  constexpr std::size_t kShown = 3;
  std::string out;
  for (std::size_t i = 0; i < std::min(paths.size(), kShown); ++i) {
    const bool last = i + 1 == paths.size() && i > 0;
    out += (last ? " and " : i > 0 ? ", " : "") + paths[i];
  }
  if (paths.size() > kShown) {
    out += fmt::format(" and {} more", paths.size() - kShown);
  }
  return out + (paths.size() == 1 ? " is" : " are");
}

}  // namespace hearth::data
