#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "hearth/data/tokenizer/utf8.h"
#include "hearth/serve/answer.h"

namespace hearth::serve {
namespace {

std::string bytes_of(const data::Tokenizer& tokenizer, std::int32_t id) {
  std::string bytes = tokenizer.token_bytes(id);
  if (bytes.empty()) bytes = tokenizer.id_to_token(id).value_or("");
  return bytes;
}

// JSON has no infinity; a token that cannot come has a very small number.
Json number_of(float log_prob) {
  constexpr float kImpossible = -9999;
  return std::isfinite(log_prob) ? log_prob : kImpossible;
}

Json chat_entry(
    const data::Tokenizer& tokenizer,
    std::int32_t id,
    float log_prob,
    bool ids
) {
  const std::string bytes = bytes_of(tokenizer, id);
  Json list = Json::array();
  for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
  Json out = {
      {"token", data::repair_utf8(bytes)},
      {"logprob", number_of(log_prob)},
      {"bytes", std::move(list)}
  };
  if (ids) out["token_id"] = id;
  return out;
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) {
    return (c & 0xC0) != 0x80;
  }));
}

// How far a prompt's text is read, token by token. Where a tokenizer changed
// the text before it cut it, places are as near as its tokens tell.
class EchoReader {
 public:
  EchoReader(const PromptEcho& echo, const data::Tokenizer& tokenizer)
      : echo_(echo), tokenizer_(tokenizer) {}

  // Characters that the next token takes.
  std::size_t next(const infer::GeneratedToken& token) {
    if (index_++ < echo_.hidden) return 0;
    std::string piece = token.text;
    if (piece.empty() && echo_.shows_special &&
        tokenizer_.is_special(token.id)) {
      piece = tokenizer_.id_to_token(token.id).value_or("");
      if (!rest().starts_with(piece)) piece.clear();
    }
    const auto taken = rest().substr(0, piece.size());
    at_ += taken.size();
    // The last has what no token tells.
    const bool last = index_ == echo_.tokens;
    return characters(taken) + (last ? characters(rest()) : 0);
  }

 private:
  std::string_view rest() const {
    return std::string_view(echo_.text).substr(at_);
  }
  const PromptEcho& echo_;
  const data::Tokenizer& tokenizer_;
  std::size_t index_ = 0, at_ = 0;
};

}  // namespace

std::string token_text(const data::Tokenizer& tokenizer, std::int32_t id) {
  std::string bytes = bytes_of(tokenizer, id);
  if (data::repair_utf8(bytes) == bytes) return bytes;
  std::string out = "bytes:";
  for (const char c : bytes) {
    out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

Json chat_log_probs(
    const Tokens& tokens,
    const data::Tokenizer& tokenizer,
    bool ids
) {
  Json list = Json::array();
  for (const auto& t : tokens) {
    Json entry = chat_entry(tokenizer, t.id, t.log_prob, ids);
    entry["top_logprobs"] = Json::array();
    for (const auto& a : t.top) {
      entry["top_logprobs"].push_back(
          chat_entry(tokenizer, a.id, a.log_prob, ids)
      );
    }
    list.push_back(std::move(entry));
  }
  return {{"content", std::move(list)}, {"refusal", nullptr}};
}

Json completion_log_probs(
    const Tokens& tokens,
    const data::Tokenizer& tokenizer,
    bool ids,
    const PromptEcho* echo,
    std::size_t& offset
) {
  std::optional<EchoReader> reader;
  if (echo != nullptr) reader.emplace(*echo, tokenizer);

  Json texts = Json::array(), values = Json::array(), tops = Json::array(),
       offsets = Json::array(), numbers = Json::array(),
       numbered = Json::array();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto& t = tokens[i];
    const bool unknown = echo != nullptr && i == 0;
    texts.push_back(token_text(tokenizer, t.id));
    values.push_back(unknown ? Json() : number_of(t.log_prob));
    offsets.push_back(offset);
    offset += reader && i < echo->tokens ? reader->next(t) : characters(t.text);
    Json top = Json::object(), pairs = Json::array();
    for (const auto& a : t.top) {
      top[token_text(tokenizer, a.id)] = number_of(a.log_prob);
      pairs.push_back({a.id, number_of(a.log_prob)});
    }
    tops.push_back(unknown ? Json() : std::move(top));
    numbers.push_back(t.id);
    numbered.push_back(unknown ? Json() : std::move(pairs));
  }
  Json out = {
      {"tokens", std::move(texts)},
      {"token_logprobs", std::move(values)},
      {"top_logprobs", std::move(tops)},
      {"text_offset", std::move(offsets)}
  };
  if (ids) {
    out["token_ids"] = std::move(numbers);
    // Two tokens may have one text; their numbers differ.
    out["top_token_ids"] = std::move(numbered);
  }
  return out;
}

}  // namespace hearth::serve
