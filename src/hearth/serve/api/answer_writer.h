#pragma once
// Writes a whole answer as JSON in pieces: everything but log probabilities at
// once, log probabilities as the client reads them.
#include <memory>
#include <string>
#include <vector>

#include "hearth/serve/api/answer.h"
#include "hearth/serve/api/log_probs_writer.h"

namespace hearth::serve {

// JSON with one "logprobs":null for each choice, cut where they stand: one
// piece more than there are choices.
std::vector<std::string> cut_at_log_probs(std::string_view json);

class AnswerWriter {
 public:
  // log_probs: of each choice, empty where it has none.
  AnswerWriter(
      const AnswerHead& head,
      const std::vector<ChoicePart>& choices,
      std::vector<LogProbs> log_probs,
      const Usage& usage
  );

  // Appends a piece; false after the last.
  bool next(std::string& out);

 private:
  // Worth a chunk, and no great wait for whoever else has a turn.
  static constexpr std::size_t kPiece = std::size_t{64} << 10;

  std::vector<std::string> frame_;
  std::vector<LogProbs> log_probs_;
  std::size_t at_ = 0;  // of the frame's pieces
  std::unique_ptr<LogProbsWriter> writer_;
};

}  // namespace hearth::serve
