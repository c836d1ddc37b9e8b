#pragma once
// A conversation: a system message, turns, and what of it fits a model's
// context. Without a chat template it is one text that both continue.
#include <optional>
#include <string>
#include <vector>

#include "hearth/infer/text_model.h"

namespace hearth::cli {

class ChatHistory {
 public:
  explicit ChatHistory(const infer::TextModel& model, bool raw);

  bool raw() const { return raw_; }
  void set_system(const std::string& text);
  const std::string& system() const { return system_; }
  std::size_t turns() const { return turns_.size(); }

  // The tokens that ask for an answer to this text, with room for `room`
  // more among `limit`. Where that is too much, the oldest turns are left out
  // from here on: half of what fits at once, so that the prompts of the next
  // turns begin alike. Throws UsageError when the text alone is too long.
  std::vector<std::int32_t> prompt_for(
      const std::string& text,
      int limit,
      int room
  );
  // First messages that are left out.
  std::size_t left_out() const { return left_out_; }
  // A question that was answered.
  void add(const std::string& text, const std::string& answer);
  void clear();

  // {"system", "messages"} or {"text"}; load() throws FormatError.
  Json save() const;
  void load(const Json& saved, const std::string& file);

 private:
  struct Message {
    std::string role, content;
  };
  const infer::TextModel& model_;
  bool raw_;
  std::string system_;
  std::vector<Message> turns_;
  std::size_t left_out_ = 0;

  void check_system(const std::string& text) const;
  std::vector<std::int32_t> tokens(
      const std::string& text,
      std::size_t left_out
  ) const;
};

}  // namespace hearth::cli
