#pragma once
// One example as data has it, before any tokenizer sees it.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/data/read/dataset.h"
#include "hearth/data/read/dataset_shape.h"

namespace hearth::data {

struct Record {
  enum class Kind {
    kText,        // text
    kCompletion,  // prompt, completion
    kChat,        // messages, tools
    kPreference,  // prompt, chosen, rejected (texts), or chats of both
  };
  Kind kind = Kind::kText;
  std::string text, prompt, completion, chosen, rejected;
  std::string system;  // of a prompt that is a text
  Json messages, tools, chosen_messages, rejected_messages;
  std::size_t replaced = 0;  // invalid characters that became U+FFFD

  // How it was read: the shape, a bit for each of its fields that was there,
  // and the fields that hold something and were not read.
  std::size_t shape = 0;
  std::uint32_t present = 0;
  std::vector<std::string> unused;

  // A prompt that is a text and says nothing.
  bool empty_prompt() const;
  // The hash of everything that is trained on, and of nothing else in the line.
  std::uint64_t content_hash() const;
  void clear();
};

class RecordParser {
 public:
  explicit RecordParser(const ReadSettings& settings);
  ~RecordParser();
  // Throws FormatError that says what is wrong and not where.
  void parse(std::string_view bytes, FileFormat format, Record& out);

 private:
  class Line;
  std::unique_ptr<Line> line_;
  std::string repaired_;
};

}  // namespace hearth::data
