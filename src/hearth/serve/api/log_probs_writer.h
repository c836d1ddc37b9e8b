#pragma once
// Log probabilities in OpenAI's JSON, an entry at a time: with 64 alternatives
// a token they are a thousand times the text, so that a list of them is never
// built whole.
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "hearth/infer/generated.h"
#include "hearth/text/tokenizer/tokenizer.h"

namespace hearth::serve {

using Tokens = std::vector<infer::GeneratedToken>;

// A prompt that the answer repeats ("echo"): its text, and which of its tokens
// appear in it.
struct PromptEcho {
  std::string text;
  std::size_t tokens = 0;      // of the prompt
  std::size_t hidden = 0;      // the first of them, put there by the tokenizer
  bool shows_special = false;  // special tokens stand there as they are spelled
};

// A token as text; bytes that are no text alone are written \xNN after
// "bytes:".
std::string token_text(const text::Tokenizer& tokenizer, std::int32_t id);

// What is written. The first token of a prompt has no log probability, which
// is null; several choices may share one prompt.
struct LogProbs {
  std::shared_ptr<const text::Tokenizer> tokenizer;
  bool chat = true;
  bool ids = false;  // the tokens' numbers too
  std::shared_ptr<const Tokens> prompt;
  std::shared_ptr<const PromptEcho> echo;  // where there is a prompt
  Tokens made;
  std::size_t offset = 0;  // characters of text before these tokens

  bool empty() const { return !prompt && made.empty(); }
};

class LogProbsWriter {
 public:
  explicit LogProbsWriter(LogProbs what);

  // Appends the next few bytes; false once all of it is written.
  bool next(std::string& out);
  // Writes everything that is left at once; for short answers.
  std::string rest();
  // Characters of text up to and with these tokens, once all is written.
  std::size_t offset() const { return offset_; }

 private:
  // The lists of a completion, as they follow each other.
  enum class List : unsigned char { texts, values, tops, offsets, ids, pairs };

  std::size_t size() const;
  const infer::GeneratedToken& token(std::size_t i) const;
  bool unknown(std::size_t i) const { return i == 0 && what_.prompt; }
  bool next_of_chat(std::string& out);
  bool next_of_completion(std::string& out);
  void write_chat_token(
      std::int32_t id,
      float log_prob,
      std::string& out
  ) const;
  void write_entry(std::size_t i, std::string& out);
  void write_top(const infer::GeneratedToken& token, std::string& out) const;
  void write_pairs(const infer::GeneratedToken& token, std::string& out) const;
  void write_offset(std::size_t i, std::string& out);

  LogProbs what_;
  List list_ = List::texts;
  std::size_t at_ = 0, offset_;
  std::size_t echo_at_ = 0;  // bytes of the echo's text that were counted
  bool begun_ = false, done_ = false;
};

}  // namespace hearth::serve
