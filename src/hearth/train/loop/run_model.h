#pragma once
// A run directory as a model. RUN/model holds config.json and the tokenizer
// from the start, and the best weights once the run is through; RUN/adapter an
// adapter for PEFT where adapters were trained. Before that, and for a step of
// one's choice, weights come from the checkpoints.
#include <optional>
#include <string>

#include "hearth/models/load.h"
#include "hearth/train/loop/session.h"

namespace hearth::train {

// Writes RUN/model without weights, as far as it is not there: a start that was
// cut short left it in part.
void describe_model(const Session& session, const std::string& run);
// Writes what the run made: the model, or the adapter.
void write_model(const Session& session, const std::string& run);

// RUN, RUN@best, RUN@last or RUN@STEP.
struct RunReference {
  std::string run;
  std::string which = "best";
};
// Nothing when the word names no run directory.
std::optional<RunReference> parse_run_reference(const std::string& word);

// With the step that it stands for now. Throws UsageError when there is no such
// checkpoint.
RunReference at_step(const RunReference& reference);
// RUN@STEP.
std::string text_of(const RunReference& reference);

// The recipe that the run goes by.
Recipe run_recipe(const std::string& run);

// The weights as they lie in the checkpoint; of a run that trained adapters,
// the model below them. Throws UsageError when there is no such checkpoint,
// FormatError when it is damaged.
std::shared_ptr<const io::ModelSource> open_run_source(
    const RunReference& reference
);
// What training can start from: a folder, a .gguf file or a run, whose adapters
// are merged into the model below them.
std::shared_ptr<const io::ModelSource> open_base(const std::string& word);
// Adapters included.
models::LoadedModel load_run_model(
    const RunReference& reference,
    const models::LoadOptions& options = {}
);
// The folder of the checkpoint that is meant. Throws as open_run_source() does.
std::string run_checkpoint(const RunReference& reference);
// Where the run's tokenizer is.
std::string run_tokenizer(const RunReference& reference);

}  // namespace hearth::train
