#pragma once
// What a dataset is made of: files, how their records are read, and which
// split a record belongs to. Nothing here knows tokens.
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/hash.h"

namespace hearth::data {

enum class BadLinePolicy { kSkip, kFatal };

// Names of the fields that a record is read from; an empty one is not read.
// Forms with other names are known too (dataset_shape.h), after these.
struct RecordFields {
  std::string text = "text";
  std::string prompt = "prompt", completion = "completion";
  std::string
      input;  // what the prompt is about, after it; empty: no such field
  std::string messages = "messages", tools = "tools";
  std::string system = "system";  // a system message before the prompt
  std::string chosen = "chosen", rejected = "rejected";
  std::map<std::string, std::string> roles;  // the data's, to a template's
};

struct ReadSettings {
  RecordFields fields;
  BadLinePolicy on_bad_line = BadLinePolicy::kSkip;
  std::size_t max_line_bytes = std::size_t{16} << 20;
  // Plain text: where one document ends and the next begins.
  std::string separator = "<|endoftext|>";
  // A longer plain-text document is cut at a line end.
  std::size_t max_text_bytes = std::size_t{1} << 20;
};

enum class FileFormat {
  kText,
  kJsonl,
  kTable,  // CSV, TSV, Parquet
};

struct DataFile {
  std::string path;
  FileFormat format = FileFormat::kJsonl;
  std::uint64_t bytes = 0;  // as stored, compressed or not
};

// One part of a mix: files that share a weight.
struct DataSource {
  std::string name;   // as the user wrote it
  double weight = 0;  // share of the tokens seen; 0 for all: as they come
  std::vector<DataFile> files;
  bool held_out = false;  // all of it is validation, whatever its hashes
  // What of its files is not read, and why: a line for each reason.
  std::vector<std::string> remarks;
};

// "PATH", "PATH:WEIGHT"; PATH is a file, a folder (searched in depth, sorted)
// or a glob (* ? and ** over folders). Throws UsageError when nothing matches
// or a format is unknown. Either every entry has a weight or none. A folder
// with files called train and valid or test is cut into these splits: valid is
// a held-out source of its own, after all others, and test is not read.
std::vector<DataSource> find_sources(const std::vector<std::string>& entries);

// What is not read of all of them, for people: a line each.
std::vector<std::string> remarks_of(const std::vector<DataSource>& sources);

// Whether a file's name ends so, seen through .gz and .zst.
bool is_called(
    std::string_view path,
    std::initializer_list<std::string_view> ends
);

// The part of a data set that a file's name, or its folder's, says it is.
enum class FileSplit { kNone, kTrain, kValid, kTest };
FileSplit split_of_file(std::string_view path);

// Whether a name matches a glob: * and ? stay inside one folder, ** does not.
bool glob_match(std::string_view pattern, std::string_view path);

enum class Split { kTrain, kValid };
// The split follows from the hash of the content alone: a record stays where it
// is when others come or go, and a larger share only moves records from train
// to valid.
Split split_of(std::uint64_t content_hash, double valid_share);

// "2%", "0.02" or "off". Throws UsageError outside [0, 1).
double parse_share(std::string_view text);

}  // namespace hearth::data
