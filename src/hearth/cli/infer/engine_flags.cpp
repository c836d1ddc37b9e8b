#include "hearth/cli/infer/engine_flags.h"

#include <filesystem>

#include <unistd.h>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/cli/infer/sampling_flags.h"
#include "hearth/infer/engine/kv_layout.h"

namespace hearth::cli {
namespace {

infer::KvType kept_as(infer::KvType asked, mlx::core::Dtype compute) {
  if (asked != infer::KvType::automatic) return asked;
  return compute == mlx::core::float32 ? infer::KvType::float32
                                       : infer::KvType::bfloat16;
}

void require_writable_folder(const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (!failed && access(folder.c_str(), W_OK | X_OK) != 0) {
    failed = {errno, std::generic_category()};
  }
  if (!failed) return;
  throw UsageError(
      fmt::format(
          "--prefix-dir must be a folder that can be written, and {} is not: "
          "{}",
          folder, failed.message()
      )
  );
}

// Without both tokenizers the number of embeddings is all there is to compare.
void check_draft(const infer::TextModel& model, const infer::TextModel& draft) {
  if (!model.tokenizer || !draft.tokenizer) {
    const int rows = model.model.decoder->config().vocab;
    const int its = draft.model.decoder->config().vocab;
    if (rows == its) return;
    throw UsageError(
        fmt::format(
            "--draft must have the model's own vocabulary of {} tokens, but {} "
            "has {}",
            rows, draft.path, its
        )
    );
  }
  const auto limit = static_cast<std::int32_t>(model.tokenizer->id_limit());
  for (std::int32_t id = 0; id < limit; ++id) {
    if (model.tokenizer->id_to_token(id) == draft.tokenizer->id_to_token(id)) {
      continue;
    }
    throw UsageError(
        fmt::format(
            "--draft must have the model's own vocabulary, but token {} of {} "
            "is another one",
            id, draft.path
        )
    );
  }
}

// The bytes of keys and values for each token, with the flags as they are.
std::size_t bytes_per_token(
    const infer::TextModel& described,
    const ModelFlags& flags,
    infer::KvType kv
) {
  const auto compute =
      flags.options().compute.value_or(described.model.compute);
  return infer::kv_bytes(
      described.model.decoder->config(), kept_as(kv, compute), 1
  );
}

}  // namespace

DraftPlan plan_draft(
    const Context& context,
    const ModelFlags& model,
    const std::string& draft,
    infer::RunnerOptions& runner
) {
  DraftPlan out;
  out.model.model = draft, out.model.dtype = model.dtype;
  const auto its = out.model.describe(context);
  const auto own = model.describe(context);
  check_draft(own, its);
  out.runner = runner;
  out.runner.adapters.clear();
  const std::size_t all = runner.kv_budget_bytes;
  runner.kv_budget_bytes = infer::first_share(
      all, bytes_per_token(own, model, runner.kv),
      bytes_per_token(its, out.model, runner.kv)
  );
  out.runner.kv_budget_bytes = all - runner.kv_budget_bytes;
  return out;
}

void AheadFlags::declare(Args& args) {
  args.option(
      "--draft", draft,
      "A smaller MODEL of the same vocabulary that guesses ahead; the text "
      "stays the same"
  );
  args.option(
      "--ngram", ngram,
      "Guess ahead what followed the last time these many tokens came; 0: no"
  );
  args.option("--draft-tokens", draft_tokens, "Guesses a step at most");
  args.option(
      "--prefix-dir", prefix_folder,
      "Keep prompts in this folder, so that a later run need not compute them"
  );
  args.option("--prefix-gb", prefix_gb, "GiB that the folder may have");
}

void AheadFlags::apply(infer::EngineOptions& options) const {
  if (!draft.empty() && ngram > 0) {
    throw UsageError("give one of --draft and --ngram");
  }
  options.ngram = flag_number(ngram, "--ngram");
  options.draft_tokens = flag_number(draft_tokens, "--draft-tokens", 1);
  options.prefix_folder = prefix_folder;
  options.prefix_bytes =
      static_cast<std::size_t>(flag_number(prefix_gb, "--prefix-gb", 1)) << 30;
  if (!prefix_folder.empty()) require_writable_folder(prefix_folder);
}

infer::KvType kv_type(const std::string& word) {
  return word == "int8"   ? infer::KvType::int8
         : word == "bf16" ? infer::KvType::bfloat16
         : word == "fp16" ? infer::KvType::float16
         : word == "fp32" ? infer::KvType::float32
                          : infer::KvType::automatic;
}

infer::QuantProducts quant_products(const std::string& word) {
  return word == "int8"    ? infer::QuantProducts::int8
         : word == "exact" ? infer::QuantProducts::exact
                           : infer::QuantProducts::automatic;
}

void EngineFlags::declare(Args& args) {
  args.choice(
      "--kv", kv, {"auto", "bf16", "fp16", "fp32", "int8"},
      "How keys and values are kept; auto: as it computes"
  );
  args.option(
      "--kv-budget", kv_budget_mib,
      "MiB for keys and values; 0: what suits the model and the free memory"
  );
  args.choice(
      "--products", products, {"auto", "int8", "exact"},
      "Quantised weights are multiplied by int8 activations, or as they are; "
      "auto: the prompt as they are, each step in int8"
  );
  ahead.declare(args);
  args.flag(
      "--batch-invariant", batch_invariant,
      "Same seed, same text, whatever else is in the batch; slower"
  );
}

infer::RunnerOptions EngineFlags::runner_options() const {
  infer::RunnerOptions out;
  out.kv = kv_type(kv);
  out.products = quant_products(products);
  out.kv_budget_bytes =
      static_cast<std::size_t>(flag_number(kv_budget_mib, "--kv-budget")) << 20;
  // This is checked before a model is loaded for nothing.
  infer::check_kv_budget(out.kv_budget_bytes, "--kv-budget");
  out.batch_invariant = batch_invariant;
  return out;
}

std::unique_ptr<ModelEngine> EngineFlags::start(
    const Context& context,
    const ModelFlags& model,
    infer::EngineOptions options,
    const infer::TextReady& ready
) const {
  infer::RunnerOptions runner = runner_options();
  options.batch_invariant = batch_invariant;
  ahead.apply(options);
  std::optional<DraftPlan> draft;
  if (!ahead.draft.empty()) {
    draft = plan_draft(context, model, ahead.draft, runner);
  }
  auto out = std::make_unique<ModelEngine>();
  out->guessing = !ahead.draft.empty() || options.ngram > 0;
  out->model = model.load(context, &out->load_ms, ready);
  out->kv = kept_as(runner.kv, out->model.model.compute);
  if (draft) {
    double draft_ms = 0;
    out->draft = draft->model.load(context, &draft_ms);
    out->load_ms += draft_ms;
    options.make_draft = [&live = *out, its = draft->runner] {
      return infer::make_runner(live.draft->model, its);
    };
  }
  out->engine = std::make_unique<infer::Engine>(
      [&live = *out, runner] {
        return infer::make_runner(live.model.model, runner);
      },
      out->model.tokenizer, options
  );
  return out;
}

Guesses Guesses::since(const Guesses& before) const {
  return {drafted - before.drafted, accepted - before.accepted};
}

Json Guesses::json() const {
  return {{"drafted", drafted}, {"accepted", accepted}};
}

std::string Guesses::text() const {
  return fmt::format(
      "guesses: {} made, {} right ({:.0f} %)", drafted, accepted,
      drafted > 0
          ? 1e2 * static_cast<double>(accepted) / static_cast<double>(drafted)
          : 0.0
  );
}

Guesses ModelEngine::guesses() const {
  const infer::EngineStats stats = engine->stats();
  return {stats.drafted, stats.accepted};
}

std::size_t ModelEngine::kv_bytes(int tokens) const {
  return infer::kv_bytes(
      model.model.decoder->config(), kv, static_cast<std::size_t>(tokens)
  );
}

std::string ModelEngine::kv_formula(int tokens) const {
  return infer::kv_formula(
      model.model.decoder->config(), kv, static_cast<std::size_t>(tokens)
  );
}

}  // namespace hearth::cli
