#include "hearth/serve/api/answer_writer.h"

namespace hearth::serve {

// The quotes of a key are not escaped, those inside a text are: whatever a text
// holds, it is no such key.
std::vector<std::string> cut_at_log_probs(std::string_view json) {
  constexpr std::string_view kKey = "\"logprobs\":", kNothing = "null";
  std::vector<std::string> out;
  for (;;) {
    const auto at = json.find(kKey);
    if (at == json.npos) break;
    out.emplace_back(json.substr(0, at + kKey.size()));
    json.remove_prefix(at + kKey.size() + kNothing.size());
  }
  out.emplace_back(json);
  return out;
}

AnswerWriter::AnswerWriter(
    const AnswerHead& head,
    const std::vector<ChoicePart>& choices,
    std::vector<LogProbs> log_probs,
    const Usage& usage
)
    : frame_(
          cut_at_log_probs(to_json_line(whole_answer(head, choices, usage)))
      ),
      log_probs_(std::move(log_probs)) {
  log_probs_.resize(choices.size());
}

bool AnswerWriter::next(std::string& out) {
  while (out.size() < kPiece) {
    if (writer_) {
      if (!writer_->next(out)) writer_.reset();
      continue;
    }
    if (at_ == frame_.size()) return false;
    out += std::exchange(frame_[at_], {});
    if (at_ < log_probs_.size()) {
      LogProbs list = std::exchange(log_probs_[at_], {});
      if (list.empty()) {
        out += "null";
      } else {
        writer_ = std::make_unique<LogProbsWriter>(std::move(list));
      }
    }
    ++at_;
  }
  return true;
}

}  // namespace hearth::serve
