#pragma once
// The lines of a batch: what a request's line may say. Everything that can be
// checked without the model is.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/infer/engine/engine.h"

namespace hearth::cli {

struct BatchLine {
  Json id;  // as given, else the line's number
  long line = 0;
  std::string asks;  // 16 hexadecimal digits of all it says but the id
  std::optional<std::string> prompt;
  Json messages;  // or these, as templates read them
  Json tools;     // null: those of the flags
  std::optional<int> max_tokens, log_probs;
  infer::GivenSampling sampling;
  std::optional<std::uint64_t> seed;
  std::optional<std::vector<std::string>> stop;
  std::optional<std::map<std::int32_t, float>> logit_bias;

  // Puts what the line says in the place of what the flags said; without a
  // seed of its own it draws from the flags' seed and its id, so that equal
  // prompts give different texts.
  void apply(infer::Request& request) const;
};

// Throws FormatError naming file and line: unknown keys, wrong types, values
// out of range, two lines of the same id.
std::vector<BatchLine> parse_batch(
    const std::string& text,
    const std::string& file
);

// Calls body(line, number) for each line that is not blank.
void each_text_line(
    std::string_view text,
    const std::function<void(std::string_view line, long number)>& body
);

}  // namespace hearth::cli
