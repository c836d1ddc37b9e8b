#pragma once
// The lines of a batch: what a request's line may say, which of them an
// earlier run has answered, and a file that only ever grows by whole lines.
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hearth/base/json.h"

namespace hearth::cli {

struct BatchLine {
  Json id;  // as given, else the line's number
  long line = 0;
  std::optional<std::string> prompt;
  Json messages;  // or these
  std::optional<int> max_tokens;
  std::optional<double> temperature, top_p;
  std::optional<std::uint64_t> seed;
  std::optional<std::vector<std::string>> stop;
};

// Throws FormatError naming file and line: unknown keys, wrong types, two
// lines of the same id.
std::vector<BatchLine> parse_batch(
    const std::string& text,
    const std::string& file
);

// The ids (as JSON) that the file has answers of; a last line without an end
// is cut off. Nothing when there is no file. Throws FormatError when it holds
// anything else.
std::set<std::string> take_up(const std::string& path);

// Appends, each line by one write.
class LineFile {
 public:
  explicit LineFile(const std::string& path);  // "-" is stdout
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;
  void append(const std::string& line);

 private:
  std::string path_;
  int file_;
};

}  // namespace hearth::cli
