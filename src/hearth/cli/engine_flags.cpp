#include "hearth/cli/engine_flags.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/infer/kv_layout.h"

namespace hearth::cli {
namespace {

// "1234=-5", "1234=-inf".
std::pair<std::int32_t, float> parse_bias(const std::string& text) {
  const auto refuse = [&] {
    throw UsageError(
        fmt::format(
            "--logit-bias must be ID=VALUE such as 1234=-5, got '{}'", text
        )
    );
  };
  const auto equals = text.find('=');
  if (equals == std::string::npos) refuse();
  std::int32_t id = 0;
  const char* begin = text.data();
  const auto first = std::from_chars(begin, begin + equals, id);
  if (first.ec != std::errc() || first.ptr != begin + equals) refuse();
  float value = 0;
  const char* end = begin + text.size();
  const auto second = std::from_chars(begin + equals + 1, end, value);
  if (second.ec != std::errc() || second.ptr != end) refuse();
  return {id, value};
}

infer::KvType kept_as(infer::KvType asked, const infer::TextModel& model) {
  if (asked != infer::KvType::automatic) return asked;
  return model.model.compute == mlx::core::float32 ? infer::KvType::float32
                                                   : infer::KvType::bfloat16;
}

}  // namespace

void check_draft(const infer::TextModel& model, const infer::TextModel& draft) {
  if (!model.tokenizer || !draft.tokenizer) return;
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

int flag_number(std::int64_t value, const char* name, int least) {
  if (value < least || value > INT32_MAX) {
    throw UsageError(
        fmt::format("{} must be at least {}, got {}", name, least, value)
    );
  }
  return static_cast<int>(value);
}

void SamplingFlags::declare(Args& args) {
  args.option("--max-tokens", max_tokens, "How many tokens at most");
  args.option("--temp", temperature, "Temperature; 0 takes the most likely");
  args.option("--top-k", top_k, "Only the k most likely tokens; 0: all");
  args.option("--top-p", top_p, "Only the tokens that hold this probability");
  args.option(
      "--typical-p", typical_p,
      "Only tokens of usual surprise that hold this probability"
  );
  args.option(
      "--min-p", min_p, "Only tokens this likely beside the most likely"
  );
  args.option(
      "--repeat-penalty", repeat_penalty,
      "Above 1 makes tokens that came before less likely"
  );
  args.option(
      "--frequency-penalty", frequency_penalty,
      "Off a token's logit for each time it was made"
  );
  args.option(
      "--presence-penalty", presence_penalty,
      "Off a token's logit once it was made"
  );
  args.option(
      "--logit-bias", bias,
      "ID=VALUE is added to that token's logit (-inf forbids it); may be "
      "repeated"
  );
  args.option("--stop", stop, "End at this text; may be repeated");
}

infer::Request SamplingFlags::request(const Context& context) const {
  infer::Request out;
  out.max_tokens = flag_number(max_tokens, "--max-tokens", 1);
  out.sampling = {
      .temperature = temperature,
      .top_k = flag_number(top_k, "--top-k"),
      .top_p = top_p,
      .typical_p = typical_p,
      .min_p = min_p,
      .repeat_penalty = repeat_penalty,
      .frequency_penalty = frequency_penalty,
      .presence_penalty = presence_penalty,
      .seed = context.common.seed
  };
  for (const auto& b : bias) out.logit_bias.insert(parse_bias(b));
  out.stop = stop;
  return out;
}

void GrammarFlags::declare(Args& args) {
  args.option("--schema", schema, "JSON schema file that the text must keep");
  args.option("--regex", regex, "Pattern that the whole text must match");
  args.option("--grammar", gbnf, "GBNF grammar file that the text must keep");
}

std::shared_ptr<const infer::Grammar> GrammarFlags::grammar() const {
  const int given = (schema ? 1 : 0) + (regex ? 1 : 0) + (gbnf ? 1 : 0);
  if (given > 1) {
    throw UsageError("give one of --schema, --regex and --grammar");
  }
  if (schema) return infer::grammar_of_schema(read_json(*schema, "schema"));
  if (regex) return infer::grammar_of_regex(*regex);
  if (gbnf) {
    require_input(*gbnf, "grammar");
    return infer::grammar_of_gbnf(read_text(*gbnf));
  }
  return nullptr;
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
}

infer::KvType kv_type(const std::string& word) {
  return word == "int8"   ? infer::KvType::int8
         : word == "bf16" ? infer::KvType::bfloat16
         : word == "fp16" ? infer::KvType::float16
         : word == "fp32" ? infer::KvType::float32
                          : infer::KvType::automatic;
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
  out.products = products == "int8"    ? infer::QuantProducts::int8
                 : products == "exact" ? infer::QuantProducts::exact
                                       : infer::QuantProducts::automatic;
  out.kv_budget_bytes =
      static_cast<std::size_t>(flag_number(kv_budget_mib, "--kv-budget")) << 20;
  out.batch_invariant = batch_invariant;
  return out;
}

std::unique_ptr<ModelEngine> EngineFlags::start(
    const Context& context,
    const ModelFlags& model,
    infer::EngineOptions options
) const {
  const infer::RunnerOptions runner = runner_options();
  options.batch_invariant = batch_invariant;
  ahead.apply(options);
  auto out = std::make_unique<ModelEngine>();
  out->model = model.load(context, &out->load_ms);
  out->kv = kept_as(runner.kv, out->model);
  if (!ahead.draft.empty()) {
    ModelFlags flags;
    flags.model = ahead.draft, flags.dtype = model.dtype;
    double draft_ms = 0;
    out->draft = flags.load(context, &draft_ms);
    out->load_ms += draft_ms;
    check_draft(out->model, *out->draft);
    options.make_draft = [&live = *out, runner] {
      return infer::make_runner(live.draft->model, runner);
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
