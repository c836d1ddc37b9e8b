#pragma once
// Many prompts from a JSONL file, answered as they come and appended to
// another: what is answered there already is not asked again, so a job that
// was ended in any way goes on where it was.
#include <optional>
#include <string>

#include "hearth/cli/command.h"
#include "hearth/cli/engine_flags.h"
#include "hearth/cli/generate_batch_lines.h"

namespace hearth::cli {

struct BatchJob {
  std::string in, out;  // "-" is stdin, stdout
  std::optional<std::string> system;
  bool raw = false, force = false;
  int batch = 0;  // 0: measured
  std::optional<int> log_probs;
};

// What is left to answer.
struct BatchWork {
  std::vector<BatchLine> lines;
  std::size_t answered_before = 0;
};
// Reads both files. Throws FormatError for a line that is no request, or when
// the answers' file holds something else.
BatchWork open_batch(const BatchJob& job);

// Ctrl-C ends it and keeps what is answered. Throws Error at the end when
// requests failed; their lines say why.
void run_batch(
    const Context& context,
    const BatchJob& job,
    const BatchWork& work,
    const SamplingFlags& sampling,
    const std::shared_ptr<const infer::Grammar>& grammar,
    ModelEngine& live
);
// The same when nothing is left.
void report_batch_done(const Context& context, const BatchWork& work);

}  // namespace hearth::cli
