#include "hearth/data/read/dataset_record.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/data/read/dataset_chat.h"
#include "hearth/data/read/dataset_match.h"
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

// Of a text, one byte in ten may be wrong, not more: an image or a program is
// no text, and letters of another encoding would be learned as U+FFFD.
void refuse_binary(std::string_view text, std::size_t replaced) {
  const auto wrong = static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte < 0x20 && c != '\n' && c != '\t' && c != '\r' &&
               c != '\f' && c != '\x1b';
      })
  );
  if ((wrong + replaced) * 10 <= text.size()) return;
  throw FormatError(
      fmt::format(
          "this is no text in UTF-8: {} of {} bytes are not (iconv -f LATIN1 "
          "-t UTF-8 turns other encodings into it)",
          wrong + replaced, text.size()
      )
  );
}

bool blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// How much of two texts is a prompt they share: what they begin with alike, up
// to the last border between words.
std::size_t shared_prompt(std::string_view a, std::string_view b) {
  const auto ends = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  auto at = static_cast<std::size_t>(ends.first - a.begin());
  const auto space = [&](std::size_t i) { return a[i] == ' ' || a[i] == '\n'; };
  while (at > 0 && (at == a.size() || at == b.size() || !space(at))) --at;
  return at;
}

}  // namespace

// One line, and the record that its shape makes of it.
class RecordParser::Line {
 public:
  explicit Line(const RecordFields& names) : fields_(names) {}

  void parse(std::string_view line, Record& out) {
    fields_.read(line);
    out.replaced += fields_.replaced();
    out.shape = fields_.shape();
    out.present = fields_.present();
    build(out);
    out.unused = fields_.unused();
  }

 private:
  using Given = ShapedLine::Given;
  ShapedLine fields_;

  std::string prompt_text() {
    std::string prompt = fields_.text(FieldUse::kPrompt);
    const std::string input = fields_.text(FieldUse::kInput);
    if (!input.empty()) prompt += "\n\n" + input;
    return prompt;
  }
  // What comes before an answer, as messages without loss.
  Json context() {
    const Given prompt = fields_.given(FieldUse::kPrompt);
    if (!prompt.there) return Json::array();
    Json messages = fields_.is_text(prompt)
                        ? Json::array({chat_message("user", prompt_text())})
                        : fields_.chat(prompt);
    without_loss(messages);
    return messages;
  }

  void build(Record& r) {
    r.tools = fields_.tools();
    r.system = fields_.text(FieldUse::kSystem);
    if (fields_.given(FieldUse::kLabel).there) {
      throw FormatError(
          "\"label\" says whether the completion is wanted (KTO), and no "
          "objective learns from that yet: keep the wanted records, without "
          "the label, or make pairs of chosen and rejected"
      );
    }
    if (fields_.given(FieldUse::kRequest).there) return build_request(r);
    if (fields_.given(FieldUse::kChosen).there) return build_pair(r, context());
    if (const Given g = fields_.given(FieldUse::kChat); g.there) {
      r.kind = Record::Kind::kChat;
      r.messages = fields_.chat(g);
      add_system(r.messages, r.system);
    } else if (const Given t = fields_.given(FieldUse::kText); t.there) {
      r.kind = Record::Kind::kText;
      fields_.take(t, r.text);
    } else {
      build_completion(r);
    }
    if (r.kind != Record::Kind::kCompletion) r.system.clear();
  }

  void build_completion(Record& r) {
    const Given prompt = fields_.given(FieldUse::kPrompt);
    const Given completion = fields_.given(FieldUse::kCompletion);
    if (fields_.is_text(prompt) && fields_.is_text(completion) &&
        r.tools.empty()) {
      r.kind = Record::Kind::kCompletion;
      r.prompt = prompt_text();
      fields_.take(completion, r.completion);
      return;
    }
    r.kind = Record::Kind::kChat;
    r.messages = context();
    for (auto& m : fields_.chat_or_text(completion, "assistant")) {
      r.messages.push_back(std::move(m));
    }
    add_system(r.messages, r.system);
  }

  // A prompt as messages goes before each answer, but for answers that are
  // whole chats already.
  void build_pair(Record& r, const Json& prompt) {
    const Given chosen = fields_.given(FieldUse::kChosen);
    const Given rejected = fields_.given(FieldUse::kRejected);
    r.kind = Record::Kind::kPreference;
    const bool texts = fields_.is_text(chosen) && fields_.is_text(rejected);
    if (fields_.is_text(chosen) != fields_.is_text(rejected)) {
      throw FormatError(
          fmt::format(
              "\"{}\" and \"{}\" must both be text or both be messages",
              chosen.name, rejected.name
          )
      );
    }
    const Given asked = fields_.given(FieldUse::kPrompt);
    if (texts && r.tools.empty() &&
        (asked.there ? fields_.is_text(asked) : prompt.empty())) {
      fields_.take(chosen, r.chosen);
      fields_.take(rejected, r.rejected);
      r.prompt = prompt_text();
      if (!asked.there) split_prompt(r);
      return;
    }
    r.chosen_messages = answered(prompt, chosen);
    r.rejected_messages = answered(prompt, rejected);
    add_system(r.chosen_messages, r.system);
    add_system(r.rejected_messages, r.system);
    r.system.clear();
  }
  static void split_prompt(Record& r) {
    const std::size_t shared = shared_prompt(r.chosen, r.rejected);
    r.prompt = r.chosen.substr(0, shared);
    r.chosen.erase(0, shared);
    r.rejected.erase(0, shared);
  }
  Json answered(const Json& prompt, const Given& answer) {
    Json answers = fields_.chat_or_text(answer, "assistant");
    const bool whole =
        std::any_of(answers.begin(), answers.end(), [](const Json& m) {
          return m["role"] == "user";
        });
    if (whole) return answers;
    Json messages = prompt;
    for (auto& m : answers) messages.push_back(std::move(m));
    return messages;
  }

  // OpenAI's preferences: {"input": {"messages": [...], "tools": [...]}}.
  void build_request(Record& r) {
    const Given g = fields_.given(FieldUse::kRequest);
    Json request = fields_.json(g);
    if (!request.contains("messages") || !request["messages"].is_array()) {
      fields_.fail(g, "must be an object with messages");
    }
    if (request.contains("tools") && !request["tools"].is_null()) {
      r.tools = read_tools(std::move(request["tools"]), "tools");
    }
    Json prompt = read_chat(
        std::move(request["messages"]), fields_.names().roles, "messages"
    );
    without_loss(prompt);
    build_pair(r, prompt);
  }
};

void Record::clear() {
  text.clear(), prompt.clear(), completion.clear(), system.clear();
  chosen.clear(), rejected.clear(), unused.clear();
  messages = tools = chosen_messages = rejected_messages = nullptr;
  replaced = shape = present = 0;
}

bool Record::empty_prompt() const {
  const bool prompted =
      kind == Kind::kCompletion ||
      (kind == Kind::kPreference && chosen_messages.is_null());
  return prompted && blank(prompt) && blank(system);
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
  if (!system.empty()) hash.field("system").field(system);
  return hash.digest().low;
}

RecordParser::RecordParser(const ReadSettings& settings)
    : line_(std::make_unique<Line>(settings.fields)) {}

RecordParser::~RecordParser() = default;

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
    refuse_binary(bytes, out.replaced);
    out.text = bytes;
    return;
  }
  line_->parse(bytes, out);
}

}  // namespace hearth::data
