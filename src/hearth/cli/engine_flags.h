#pragma once
// The flags of every command that makes text with the engine: how tokens are
// chosen, what the text may be, how the engine runs.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/cli/model_flags.h"
#include "hearth/infer/engine.h"
#include "hearth/infer/make_runner.h"

namespace hearth::cli {

struct SamplingFlags {
  std::int64_t max_tokens = 256, top_k = 0;
  double temperature = 0, top_p = 1, typical_p = 1, min_p = 0;
  double repeat_penalty = 1, frequency_penalty = 0, presence_penalty = 0;
  std::vector<std::string> bias, stop;

  void declare(Args& args);
  // max_tokens, sampling, logit_bias and stop of a request.
  infer::Request request(const Context& context) const;
};

struct GrammarFlags {
  std::optional<std::string> schema, regex, gbnf;

  void declare(Args& args);
  // Null when none was asked for.
  std::shared_ptr<const infer::Grammar> grammar() const;
};

// A model with its engine; the engine goes first.
struct ModelEngine {
  infer::TextModel model;
  std::optional<infer::TextModel> draft;
  double load_ms = 0;
  infer::KvType kv = infer::KvType::automatic;  // as it is kept
  std::unique_ptr<infer::Engine> engine;

  // Bytes of keys and values that this many tokens take, and the formula.
  std::size_t kv_bytes(int tokens) const;
  std::string kv_formula(int tokens) const;
};

// What an engine may know before it computes: guesses of coming tokens, and
// prompts on disk.
struct AheadFlags {
  std::string draft, prefix_folder;
  std::int64_t ngram = 0, draft_tokens = 4, prefix_gb = 4;

  void declare(Args& args);
  // All but the draft, which has to be loaded. Throws UsageError.
  void apply(infer::EngineOptions& options) const;
};

// What a word of --kv means.
infer::KvType kv_type(const std::string& word);

struct EngineFlags {
  std::string kv = "auto", products = "auto";
  std::int64_t kv_budget_mib = 0;
  AheadFlags ahead;
  bool batch_invariant = false;

  void declare(Args& args);
  // Loads and starts; max_batch as the options say.
  std::unique_ptr<ModelEngine> start(
      const Context& context,
      const ModelFlags& model,
      infer::EngineOptions options
  ) const;

 private:
  infer::RunnerOptions runner_options() const;
};

// Throws UsageError unless the draft's ids mean what the model's do.
void check_draft(const infer::TextModel& model, const infer::TextModel& draft);

// A flag's number as an int; UsageError when it is below least or no int.
int flag_number(std::int64_t value, const char* name, int least = 0);

}  // namespace hearth::cli
