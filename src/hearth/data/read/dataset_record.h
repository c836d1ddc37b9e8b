#pragma once
// One example as data has it, before any tokenizer sees it.
#include <cstdint>
#include <string>
#include <string_view>

#include "hearth/base/json.h"
#include "hearth/data/read/dataset.h"

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
  std::string input;  // is part of the prompt once all is read
  Json messages, tools, chosen_messages, rejected_messages;
  std::size_t replaced = 0;  // invalid characters that became U+FFFD

  // The hash of everything that is trained on, and of nothing else in the line.
  std::uint64_t content_hash() const;
  void clear();
};

class RecordParser {
 public:
  explicit RecordParser(const ReadSettings& settings) : settings_(settings) {}
  // Throws FormatError that says what is wrong and not where.
  void parse(std::string_view bytes, FileFormat format, Record& out);

 private:
  const ReadSettings& settings_;
  std::string repaired_;
};

}  // namespace hearth::data
