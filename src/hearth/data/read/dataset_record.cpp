#include "hearth/data/read/dataset_record.h"

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/text/json_cursor.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::data {
namespace {

std::size_t count_replacements(std::string_view text) {
  constexpr std::string_view kReplacement = "\uFFFD";
  std::size_t count = 0;
  for (auto at = text.find(kReplacement); at != std::string_view::npos;
       at = text.find(kReplacement, at + kReplacement.size())) {
    ++count;
  }
  return count;
}

// Which members a line had, and as what.
struct Found {
  bool text = false, prompt = false, completion = false, messages = false;
  bool chosen = false, rejected = false, input = false;
};

class LineReader {
 public:
  LineReader(std::string_view line, const RecordFields& fields, Record& out)
      : cursor_(line), fields_(fields), out_(out) {}

  Found read() {
    if (cursor_.peek() == '[') {
      cursor_.fail(
          "a line must hold one JSON object, got an array (write its items "
          "one a line: jq -c '.[]')"
      );
    }
    std::string key;
    for (cursor_.begin_object(); cursor_.next_key(key);) member(key);
    cursor_.end();
    out_.replaced += cursor_.replaced();
    return found_;
  }

 private:
  void member(std::string_view key) {
    const auto& f = fields_;
    if (key == f.text) return text(f.text, out_.text, found_.text);
    if (key == f.prompt) return text(f.prompt, out_.prompt, found_.prompt);
    if (!f.input.empty() && key == f.input) {
      return text(f.input, out_.input, found_.input);
    }
    if (key == f.completion) {
      return text(f.completion, out_.completion, found_.completion);
    }
    if (key == f.messages)
      return chat(f.messages, out_.messages, found_.messages);
    if (key == f.chosen) {
      return either(f.chosen, out_.chosen, out_.chosen_messages, found_.chosen);
    }
    if (key == f.rejected) {
      return either(
          f.rejected, out_.rejected, out_.rejected_messages, found_.rejected
      );
    }
    if (key == f.tools && cursor_.peek() == '[') {
      out_.tools = cursor_.value();
      return;
    }
    cursor_.skip();
  }

  // A member that is null counts as absent.
  bool absent() {
    if (cursor_.peek() != 'n') return false;
    cursor_.skip();
    return true;
  }
  void text(const std::string& name, std::string& out, bool& found) {
    if (absent()) return;
    if (cursor_.peek() != '"') {
      cursor_.fail(fmt::format("\"{}\" must be a string", name));
    }
    out.clear();
    cursor_.read_string(out);
    found = true;
  }
  void chat(const std::string& name, Json& out, bool& found) {
    if (absent()) return;
    if (cursor_.peek() != '[') {
      cursor_.fail(fmt::format("\"{}\" must be a list of messages", name));
    }
    out = cursor_.value();
    check_chat(name, out);
    found = true;
  }
  void either(
      const std::string& name,
      std::string& text_out,
      Json& chat_out,
      bool& found
  ) {
    if (cursor_.peek() == '[') return chat(name, chat_out, found);
    text(name, text_out, found);
  }
  void check_chat(const std::string& name, const Json& chat) const {
    if (chat.empty()) {
      cursor_.fail(fmt::format("\"{}\" must have a message", name));
    }
    for (const auto& message : chat) {
      const auto role =
          message.is_object() ? message.find("role") : message.end();
      if (!message.is_object() || role == message.end() || !role->is_string()) {
        cursor_.fail(
            fmt::format("each of \"{}\" must be an object with a role", name)
        );
      }
    }
  }

  text::JsonCursor cursor_;
  const RecordFields& fields_;
  Record& out_;
  Found found_;
};

Record::Kind kind_of(
    const Found& found,
    const Record& r,
    const RecordFields& f
) {
  if (found.messages) return Record::Kind::kChat;
  if (found.chosen && found.rejected) {
    if (r.chosen_messages.is_null() != r.rejected_messages.is_null()) {
      throw FormatError(
          fmt::format(
              "\"{}\" and \"{}\" must both be text or both be messages",
              f.chosen, f.rejected
          )
      );
    }
    return Record::Kind::kPreference;
  }
  if (found.prompt && found.completion) return Record::Kind::kCompletion;
  if (found.text) return Record::Kind::kText;
  throw FormatError(
      fmt::format(
          "a record must have \"{}\", \"{}\" and \"{}\", \"{}\", or \"{}\" and "
          "\"{}\"",
          f.text, f.prompt, f.completion, f.messages, f.chosen, f.rejected
      )
  );
}

}  // namespace

void Record::clear() {
  text.clear(), prompt.clear(), completion.clear(), input.clear();
  chosen.clear(), rejected.clear();
  messages = tools = chosen_messages = rejected_messages = nullptr;
  replaced = 0;
}

std::uint64_t Record::content_hash() const {
  ContentHash hash;
  hash.field(static_cast<std::uint64_t>(kind));
  for (const auto* part : {&text, &prompt, &completion, &chosen, &rejected}) {
    hash.field(*part);
  }
  for (const auto* part :
       {&messages, &tools, &chosen_messages, &rejected_messages}) {
    hash.field(part->is_null() ? std::string() : to_json_line(*part));
  }
  return hash.digest().low;
}

void RecordParser::parse(
    std::string_view bytes,
    FileFormat format,
    Record& out
) {
  out.clear();
  if (!text::is_valid_utf8(bytes)) {
    repaired_.clear();
    text::append_repaired_utf8(repaired_, bytes);
    out.replaced = count_replacements(repaired_) - count_replacements(bytes);
    bytes = repaired_;
  }
  if (format == FileFormat::kText) {
    out.kind = Record::Kind::kText;
    out.text = bytes;
    return;
  }
  const Found found = LineReader(bytes, settings_.fields, out).read();
  out.kind = kind_of(found, out, settings_.fields);
  if (!out.input.empty()) out.prompt += "\n\n" + out.input;
  // A member that the kind does not use must not reach the hash.
  if (out.kind != Record::Kind::kText) out.text.clear();
  if (out.kind == Record::Kind::kText || out.kind == Record::Kind::kChat) {
    out.prompt.clear(), out.completion.clear();
  }
  if (out.kind != Record::Kind::kPreference) {
    out.chosen.clear(), out.rejected.clear();
    out.chosen_messages = out.rejected_messages = nullptr;
  } else {
    out.completion.clear();
  }
}

}  // namespace hearth::data
