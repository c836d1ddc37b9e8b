#pragma once
// Many prompts from a JSONL file, answered as they come and appended to
// another: what is answered there already is not asked again, so a job that
// was ended in any way goes on where it was.
#include <optional>
#include <string>

#include "hearth/cli/infer/engine_flags.h"
#include "hearth/cli/infer/generate_answers.h"

namespace hearth::cli {

struct BatchJob {
  std::string in, out;  // "-" is stdin, stdout
  std::optional<std::string> system;
  Json tools;  // null: none, but those of a line
  bool raw = false, force = false;
  int batch = 0;         // 0: measured
  infer::Request asked;  // what the flags say of each request
};

// The prompts. Throws FormatError for a line that is no request or that the
// flags leave no room for.
std::vector<BatchLine> read_batch(const BatchJob& job);

// Answers what is left of the lines. Ctrl-C ends it and keeps what is
// answered. Throws Error at the end when requests failed; their lines say why.
void run_batch(
    const Context& context,
    const BatchJob& job,
    const std::vector<BatchLine>& lines,
    const AnswersFile::Before& before,
    AnswersFile& answers,
    ModelEngine& live
);
// Reports a batch of which nothing is left to answer.
void report_batch_done(
    const Context& context,
    const AnswersFile::Before& before
);

}  // namespace hearth::cli
