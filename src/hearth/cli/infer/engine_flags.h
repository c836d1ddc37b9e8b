#pragma once
// The flags of every command that makes text with the engine: how it runs.
#include <memory>
#include <optional>
#include <string>

#include "hearth/cli/model/model_flags.h"
#include "hearth/infer/engine/engine.h"
#include "hearth/infer/engine/make_runner.h"

namespace hearth::cli {

// Guesses of coming tokens, and those of them that were right.
struct Guesses {
  std::uint64_t drafted = 0, accepted = 0;

  Guesses since(const Guesses& before) const;
  Json json() const;
  std::string text() const;
};

// A model with its engine; the engine goes first.
struct ModelEngine {
  infer::TextModel model;
  std::optional<infer::TextModel> draft;
  double load_ms = 0;
  infer::KvType kv = infer::KvType::automatic;  // as it is kept
  bool guessing = false;                        // --draft or --ngram
  std::unique_ptr<infer::Engine> engine;

  // Bytes of keys and values that this many tokens take, and the formula.
  std::size_t kv_bytes(int tokens) const;
  std::string kv_formula(int tokens) const;
  Guesses guesses() const;
};

// Flags about what an engine may know before it computes: guesses of coming
// tokens, and prompts on disk.
struct AheadFlags {
  std::string draft, prefix_folder;
  std::int64_t ngram = 0, draft_tokens = 4, prefix_gb = 4;

  void declare(Args& args);
  // Sets everything but the draft, which has to be loaded. Throws UsageError,
  // also for a folder that cannot be written.
  void apply(infer::EngineOptions& options) const;
};

// The values of the words of --kv and --products.
infer::KvType kv_type(const std::string& word);
infer::QuantProducts quant_products(const std::string& word);

struct EngineFlags {
  std::string kv = "auto", products = "auto";
  std::int64_t kv_budget_mib = 0;
  AheadFlags ahead;
  bool batch_invariant = false;

  void declare(Args& args);
  // Loads and starts; max_batch as the options say. `ready` is called before
  // weights are read.
  std::unique_ptr<ModelEngine> start(
      const Context& context,
      const ModelFlags& model,
      infer::EngineOptions options,
      const infer::TextReady& ready = {}
  ) const;

 private:
  infer::RunnerOptions runner_options() const;
};

// A smaller model beside the one that it guesses for.
struct DraftPlan {
  ModelFlags model;
  infer::RunnerOptions runner;
};
// Looks at both before either is loaded. The draft's ids must mean what the
// model's do, or UsageError; the two share runner's budget for keys and values,
// of which runner keeps the model's part.
DraftPlan plan_draft(
    const Context& context,
    const ModelFlags& model,
    const std::string& draft,
    infer::RunnerOptions& runner
);

}  // namespace hearth::cli
