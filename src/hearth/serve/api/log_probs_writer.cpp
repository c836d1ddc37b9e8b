#include "hearth/serve/api/log_probs_writer.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hearth/base/json.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::serve {
namespace {

std::string bytes_of(const text::Tokenizer& tokenizer, std::int32_t id) {
  std::string bytes = tokenizer.token_bytes(id);
  if (bytes.empty()) bytes = tokenizer.id_to_token(id).value_or("");
  return bytes;
}

// JSON has no infinity; a token that cannot come has a very small number.
void write_number(float log_prob, std::string& out) {
  constexpr float kImpossible = -9999;
  const float value = std::isfinite(log_prob) ? log_prob : kImpossible;
  const auto from = out.size();
  fmt::format_to(std::back_inserter(out), "{}", value);
  // Whole numbers are written with a decimal point, so that every value has the
  // same type.
  if (out.find_first_of(".e", from) == std::string::npos) out += ".0";
}

void write_text(std::string_view text, std::string& out) {
  out += to_json_line(Json(text));
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) {
    return (c & 0xC0) != 0x80;
  }));
}

}  // namespace

std::string token_text(const text::Tokenizer& tokenizer, std::int32_t id) {
  std::string bytes = bytes_of(tokenizer, id);
  if (text::repair_utf8(bytes) == bytes) return bytes;
  std::string out = "bytes:";
  for (const char c : bytes) {
    out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

LogProbsWriter::LogProbsWriter(LogProbs what)
    : what_(std::move(what)), offset_(what_.offset) {}

std::size_t LogProbsWriter::size() const {
  return (what_.prompt ? what_.prompt->size() : 0) + what_.made.size();
}

const infer::GeneratedToken& LogProbsWriter::token(std::size_t i) const {
  const std::size_t before = what_.prompt ? what_.prompt->size() : 0;
  return i < before ? (*what_.prompt)[i] : what_.made[i - before];
}

bool LogProbsWriter::next(std::string& out) {
  if (done_) return false;
  done_ = what_.chat ? !next_of_chat(out) : !next_of_completion(out);
  return !done_;
}

std::string LogProbsWriter::rest() {
  std::string out;
  while (next(out)) continue;
  return out;
}

void LogProbsWriter::write_chat_token(
    std::int32_t id,
    float log_prob,
    std::string& out
) const {
  const std::string bytes = bytes_of(*what_.tokenizer, id);
  out += "{\"token\":";
  write_text(text::repair_utf8(bytes), out);
  out += ",\"logprob\":";
  write_number(log_prob, out);
  out += ",\"bytes\":[";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i > 0) out += ',';
    out += std::to_string(static_cast<unsigned char>(bytes[i]));
  }
  out += ']';
  if (what_.ids) out += ",\"token_id\":" + std::to_string(id);
}

bool LogProbsWriter::next_of_chat(std::string& out) {
  if (at_ == 0) out += "{\"content\":[";
  if (at_ == size()) {
    out += "],\"refusal\":null}";
    return false;
  }
  if (at_ > 0) out += ',';
  const auto& t = token(at_++);
  write_chat_token(t.id, t.log_prob, out);
  out += ",\"top_logprobs\":[";
  for (std::size_t i = 0; i < t.top.size(); ++i) {
    if (i > 0) out += ',';
    write_chat_token(t.top[i].id, t.top[i].log_prob, out);
    out += '}';
  }
  out += "]}";
  return true;
}

bool LogProbsWriter::next_of_completion(std::string& out) {
  constexpr const char* kNames[] = {"tokens",       "token_logprobs",
                                    "top_logprobs", "text_offset",
                                    "token_ids",    "top_token_ids"};
  const auto list = static_cast<std::size_t>(list_);
  if (!begun_) {
    out += fmt::format("{}\"{}\":[", list == 0 ? '{' : ',', kNames[list]);
    begun_ = true;
  }
  if (at_ < size()) {
    if (at_ > 0) out += ',';
    write_entry(at_++, out);
    return true;
  }
  out += ']';
  at_ = 0;
  begun_ = false;
  const List last = what_.ids ? List::pairs : List::offsets;
  if (list_ == last) {
    out += '}';
    return false;
  }
  list_ = static_cast<List>(list + 1);
  return true;
}

void LogProbsWriter::write_entry(std::size_t i, std::string& out) {
  const auto& t = token(i);
  const bool numbers =
      list_ == List::values || list_ == List::tops || list_ == List::pairs;
  if (numbers && unknown(i)) {
    out += "null";
    return;
  }
  switch (list_) {
    case List::texts:
      return write_text(token_text(*what_.tokenizer, t.id), out);
    case List::values:
      return write_number(t.log_prob, out);
    case List::tops:
      return write_top(t, out);
    case List::offsets:
      return write_offset(i, out);
    case List::ids:
      out += std::to_string(t.id);
      return;
    case List::pairs:
      return write_pairs(t, out);
  }
}

// Alternatives are listed by their text: of two tokens with the same text, the
// less likely one stands for both.
void LogProbsWriter::write_top(
    const infer::GeneratedToken& token,
    std::string& out
) const {
  std::vector<std::pair<std::string, float>> by_text;
  for (const auto& a : token.top) {
    std::string text = token_text(*what_.tokenizer, a.id);
    const auto same =
        std::ranges::find(by_text, text, &std::pair<std::string, float>::first);
    if (same == by_text.end()) {
      by_text.emplace_back(std::move(text), a.log_prob);
    } else {
      same->second = a.log_prob;
    }
  }
  out += '{';
  for (const auto& [text, log_prob] : by_text) {
    if (out.back() != '{') out += ',';
    write_text(text, out);
    out += ':';
    write_number(log_prob, out);
  }
  out += '}';
}

// Two tokens may have one text; their numbers differ.
void LogProbsWriter::write_pairs(
    const infer::GeneratedToken& token,
    std::string& out
) const {
  out += '[';
  for (std::size_t i = 0; i < token.top.size(); ++i) {
    if (i > 0) out += ',';
    out += '[' + std::to_string(token.top[i].id) + ',';
    write_number(token.top[i].log_prob, out);
    out += ']';
  }
  out += ']';
}

// How far the text is read, token by token. Where a tokenizer changed the
// prompt before it cut it, places are as near as its tokens tell.
void LogProbsWriter::write_offset(std::size_t i, std::string& out) {
  out += std::to_string(offset_);
  const auto& t = token(i);
  const PromptEcho* echo = what_.echo.get();
  if (!what_.prompt || echo == nullptr || i >= echo->tokens) {
    offset_ += characters(t.text);
    return;
  }
  if (i < echo->hidden) return;
  const auto rest = [&] {
    return std::string_view(echo->text).substr(echo_at_);
  };
  std::string piece = t.text;
  if (piece.empty() && echo->shows_special &&
      what_.tokenizer->is_special(t.id)) {
    piece = what_.tokenizer->id_to_token(t.id).value_or("");
    if (!rest().starts_with(piece)) piece.clear();
  }
  const auto taken = rest().substr(0, piece.size());
  echo_at_ += taken.size();
  offset_ += characters(taken);
  // The last has what no token tells.
  if (i + 1 == echo->tokens) offset_ += characters(rest());
}

}  // namespace hearth::serve
