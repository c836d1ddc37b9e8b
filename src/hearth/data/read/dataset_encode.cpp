#include "hearth/data/read/dataset_encode.h"

#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/data/read/dataset_chat.h"

namespace hearth::data {
namespace {

Json dialogue(const Record& record, const std::string& answer) {
  Json messages = Json::array(
      {chat_message("user", record.prompt), chat_message("assistant", answer)}
  );
  add_system(messages, record.system);
  return messages;
}

// What comes before an answer, where no template says how.
std::string plain_prompt(const Record& record) {
  if (record.system.empty()) return record.prompt;
  return record.system + "\n\n" + record.prompt;
}

bool has_calls(const Json& messages) {
  return std::any_of(messages.begin(), messages.end(), [](const Json& m) {
    const auto calls = m.find("tool_calls");
    return calls != m.end() && !calls->empty();
  });
}

bool wants_training(const Json& messages, std::size_t index) {
  if (index >= messages.size()) return true;
  const auto train = messages[index].find("train");
  return train == messages[index].end() || !train->is_boolean() ||
         train->get<bool>();
}

// A key of ours that no template should see.
Json without_train(const Json& messages) {
  Json plain = messages;
  for (auto& m : plain) m.erase("train");
  return plain;
}

void check_turns(const RenderedChat& chat) {
  std::size_t at = 0;
  for (const auto& turn : chat.turns) {
    if (turn.begin < at || turn.end < turn.begin ||
        turn.end > chat.text.size()) {
      throw Error("[data.encode] the renderer's turns must be in order");
    }
    at = turn.end;
  }
}

void add_span(EncodedDocument& d, std::size_t begin, std::size_t end) {
  if (begin == end) return;
  const auto from = static_cast<std::uint32_t>(begin);
  const auto to = static_cast<std::uint32_t>(end);
  if (!d.spans.empty() && d.spans.back().end == from) {
    d.spans.back().end = to;
  } else {
    d.spans.push_back({from, to});
  }
}

}  // namespace

std::uint64_t EncodedDocument::trained() const {
  std::uint64_t count = 0;
  for (const auto& span : spans) count += span.end - span.begin;
  return count;
}

ExampleEncoder::ExampleEncoder(
    std::shared_ptr<const TextEncoder> text,
    std::shared_ptr<const ChatRenderer> chat,
    EncodeSettings settings
)
    : text_(std::move(text)), chat_(std::move(chat)), settings_(settings) {}

void ExampleEncoder::encode(
    const Record& record,
    std::vector<EncodedDocument>& out
) const {
  using Kind = Record::Kind;
  const std::size_t first = out.size();
  const bool templated = chat_ != nullptr;
  switch (record.kind) {
    case Kind::kText:
      out.push_back(plain(record.text));
      break;
    case Kind::kCompletion:
      out.push_back(
          templated ? chat(dialogue(record, record.completion), nullptr)
                    : completion(plain_prompt(record), record.completion)
      );
      break;
    case Kind::kChat:
      out.push_back(chat(record.messages, record.tools));
      break;
    case Kind::kPreference:
      if (!record.chosen_messages.is_null()) {
        out.push_back(chat(record.chosen_messages, record.tools));
        out.push_back(chat(record.rejected_messages, record.tools));
      } else if (templated) {
        out.push_back(chat(dialogue(record, record.chosen), nullptr));
        out.push_back(chat(dialogue(record, record.rejected), nullptr));
      } else {
        out.push_back(completion(plain_prompt(record), record.chosen));
        out.push_back(completion(plain_prompt(record), record.rejected));
      }
      break;
  }
  std::uint64_t hash = record.content_hash();
  for (std::size_t i = first; i < out.size(); ++i) {
    out[i].hash = hash++;
    close(out[i]);
  }
}

EncodedDocument ExampleEncoder::plain(std::string_view text) const {
  EncodedDocument d;
  if (settings_.add_bos && text_->bos()) d.ids.push_back(*text_->bos());
  text_->encode(text, d.ids);
  if (settings_.add_eos && text_->eos()) d.ids.push_back(*text_->eos());
  add_span(d, 0, d.ids.size());
  return d;
}

EncodedDocument ExampleEncoder::completion(
    std::string_view prompt,
    std::string_view completion
) const {
  EncodedDocument d;
  if (settings_.add_bos && text_->bos()) d.ids.push_back(*text_->bos());
  text_->encode(prompt, d.ids);
  const std::size_t begin = settings_.mask == MaskMode::kAll ? 0 : d.ids.size();
  text_->encode(completion, d.ids);
  if (settings_.add_eos && text_->eos()) d.ids.push_back(*text_->eos());
  add_span(d, begin, d.ids.size());
  return d;
}

EncodedDocument ExampleEncoder::chat(
    const Json& messages,
    const Json& tools
) const {
  if (!chat_) {
    throw FormatError("messages need a chat template, and there is none");
  }
  if (has_calls(messages) && !chat_->reads("tool_calls")) {
    throw FormatError(
        "the chat template writes no tool calls, and the message has some: "
        "data.template=chatml does, or a template of the model for tools"
    );
  }
  RenderedChat chat = chat_->render(without_train(messages), tools);
  check_turns(chat);
  // From here on the turns are the ones that carry loss.
  if (settings_.mask == MaskMode::kLast && !chat.turns.empty()) {
    chat.turns.erase(chat.turns.begin(), chat.turns.end() - 1);
  }
  std::erase_if(chat.turns, [&](const auto& turn) {
    return !wants_training(messages, turn.message);
  });
  if (settings_.mask == MaskMode::kAll) chat.turns = {{0, chat.text.size(), 0}};
  EncodedDocument d;
  d.unread_tools = !tools.empty() && !chat_->reads("tools");
  std::vector<std::size_t> begins;
  if (!text_->encode_placed(chat.text, d.ids, begins)) {
    encode_parts(chat, d);
    return d;
  }
  // A token belongs where its first byte lies.
  for (const auto& turn : chat.turns) {
    const auto place = [&](std::size_t byte) {
      return static_cast<std::size_t>(
          std::lower_bound(begins.begin(), begins.end(), byte) - begins.begin()
      );
    };
    add_span(d, place(turn.begin), place(turn.end));
  }
  return d;
}

// Cuts the text at the turns' borders: what the model sees when it generates
// is a prompt that ends there, tokenised by itself.
void ExampleEncoder::encode_parts(
    const RenderedChat& chat,
    EncodedDocument& d
) const {
  const std::string_view text = chat.text;
  std::size_t at = 0;
  d.ids.clear();
  for (const auto& turn : chat.turns) {
    text_->encode(text.substr(at, turn.begin - at), d.ids);
    const std::size_t begin = d.ids.size();
    text_->encode(text.substr(turn.begin, turn.end - turn.begin), d.ids);
    add_span(d, begin, d.ids.size());
    at = turn.end;
  }
  text_->encode(text.substr(at), d.ids);
}

void ExampleEncoder::close(EncodedDocument& d) const {
  const std::uint32_t most = settings_.max_tokens;
  if (most == 0 || d.ids.size() <= most) return;
  d.truncated = true;
  d.ids.resize(most);
  while (!d.spans.empty() && d.spans.back().begin >= most) d.spans.pop_back();
  if (!d.spans.empty()) {
    d.spans.back().end = std::min(d.spans.back().end, most);
  }
}

}  // namespace hearth::data
