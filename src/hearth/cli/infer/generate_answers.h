#pragma once
// The file of a batch's answers: which an earlier run has left there, and new
// ones as they come. Each answer says what it answers, so that a file is only
// ever gone on with where that is the same; one process writes it at a time;
// and it grows by whole lines, so that one cut short is seen.
#include <map>
#include <string>
#include <vector>

#include "hearth/base/file_handle.h"
#include "hearth/cli/infer/generate_batch_lines.h"

namespace hearth::cli {

// What all answers of a run have in common, 16 hexadecimal digits each.
struct BatchKey {
  std::string model, options;

  // The text of an answer's "of": MODEL.OPTIONS.REQUEST.
  std::string of(const BatchLine& line) const;
};

class AnswersFile {
 public:
  // Opens and reads, and changes nothing yet. "-" is stdout; what is no regular
  // file is only written to. force: what is there does not count. Throws
  // FormatError for a file that holds anything but answers, UsageError for
  // answers of another model or with other options and for a file that another
  // process writes.
  AnswersFile(const std::string& path, BatchKey key, bool force);
  // Removes a file that it made and nothing was written to.
  ~AnswersFile();
  AnswersFile(const AnswersFile&) = delete;
  AnswersFile& operator=(const AnswersFile&) = delete;

  // Takes the lines out that have their answer. Failed ones and those that say
  // something else by now are asked again.
  struct Before {
    std::size_t answered = 0, failed = 0, changed = 0;
  };
  Before take_up(std::vector<BatchLine>& lines);

  // Call it before the first answer is written: lines that are asked again are
  // taken out of the file.
  void begin();
  void append(const BatchLine& line, Json answer);

 private:
  struct Kept {
    std::string text, asks;
    bool failed = false;
  };

  std::string path_, place_;  // as given; past its links
  BatchKey key_;
  FileHandle file_;
  bool regular_ = false, made_ = false, written_ = false;
  bool rewrite_ = false;            // the file is not just the kept lines
  std::vector<std::string> order_;  // ids as they stand in the file
  std::map<std::string, Kept> kept_;

  void open();
  void read();
  bool read_line(std::string_view line, long number, bool last);
};

// Throws UsageError when answers would be written over the prompts.
void require_two_files(const std::string& in, const std::string& out);

}  // namespace hearth::cli
