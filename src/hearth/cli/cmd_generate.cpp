// hearth generate: text from a model, streamed.
#include <cstdio>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/cli/answer_stream.h"
#include "hearth/cli/generate_batch.h"
#include "hearth/cli/generate_prompt.h"
#include "hearth/cli/interrupt.h"
#include "hearth/profile/zone.h"

namespace hearth::cli {
namespace {

struct GenerateFlags {
  ModelFlags model;
  SamplingFlags sampling;
  GrammarFlags grammar;
  EngineFlags engine;
  std::optional<std::string> prompt, file, ids, system, jsonl;
  std::string out = "-";
  std::int64_t log_probs = -1, batch = 0;
  bool raw = false, profile = false, force = false;
};

void declare(Args& args, GenerateFlags& f) {
  f.model.declare(args);
  args.option("-p,--prompt", f.prompt, "The prompt; - reads stdin");
  args.option("--file", f.file, "Read the prompt from this file");
  args.option("--ids", f.ids, "Token ids as the prompt, such as 1,2,3");
  args.option(
      "--jsonl", f.jsonl,
      "Many prompts, a JSON object a line: {\"id\", \"prompt\" or "
      "\"messages\"}; - reads stdin"
  );
  args.option(
      "-o", f.out,
      "With --jsonl: the answers; a file that has some goes on from there"
  );
  args.flag("--force", f.force, "With --jsonl: begin the answers anew");
  args.option(
      "--batch", f.batch, "With --jsonl: prompts at once; 0 measures which"
  );
  args.option("--system", f.system, "A system message before the prompt");
  args.flag("--raw", f.raw, "Continue the text itself: no chat template");
  f.sampling.declare(args);
  args.option(
      "--logprobs", f.log_probs,
      "Log probabilities, with this many alternatives a token"
  );
  f.grammar.declare(args);
  f.engine.declare(args);
  args.flag(
      "--profile", f.profile, "Say on stderr where the time of decoding went"
  );
  args.example(
      "hearth generate model/ -p 'What is the capital of France?'",
      "one answer, through the model's chat template"
  );
  args.example(
      "hearth generate model.gguf --raw -p 'Once upon a time' --temp 0.8 "
      "--top-p 0.95 --seed 7",
      "a continuation, drawn; the same seed gives the same text"
  );
  args.example(
      "hearth generate model/ -p - --json --logprobs 3 < prompt.txt",
      "the prompt from stdin, the result as one JSON document"
  );
  args.example(
      "hearth generate model/ --jsonl prompts.jsonl -o answers.jsonl",
      "many at once; run again, it goes on where it was ended"
  );
  args.example(
      "hearth generate model/ -p 'A colour as JSON' --schema colour.json",
      "text that keeps a JSON schema"
  );
  args.example(
      "hearth generate model/ -p 'Say it again: ...' --ngram 3",
      "guesses ahead from the text itself: the same text, sooner"
  );
}

void check_prompt_flags(const GenerateFlags& f) {
  const int given = (f.prompt ? 1 : 0) + (f.file ? 1 : 0) + (f.ids ? 1 : 0) +
                    (f.jsonl ? 1 : 0);
  if (given != 1) {
    throw UsageError(
        "give the prompt by one of -p TEXT, --file, --ids, --jsonl"
    );
  }
  if (f.system && (f.raw || f.ids)) {
    throw UsageError(
        "--system needs a chat template, which --raw and --ids "
        "leave out"
    );
  }
  if (!f.jsonl && (f.out != "-" || f.force || f.batch != 0)) {
    throw UsageError("-o, --force and --batch are for --jsonl");
  }
}

Prompt make_prompt(const infer::TextModel& model, const GenerateFlags& f) {
  if (f.ids) return ids_prompt(*f.ids);
  const std::string text = f.file             ? read_text(*f.file)
                           : *f.prompt == "-" ? read_text("-")
                                              : *f.prompt;
  return text_prompt(model, text, f.system, f.raw);
}

std::optional<int> log_probs_of(const GenerateFlags& f) {
  if (f.log_probs == -1) return std::nullopt;
  return flag_number(f.log_probs, "--logprobs");
}

Json log_probs_json(const Answer& made, const data::Tokenizer* tokenizer) {
  const auto entry = [&](std::int32_t id, float log_prob) {
    Json out = {{"id", id}};
    if (tokenizer != nullptr) {
      out["token"] = tokenizer->decode(std::span(&id, 1));
    }
    out["logprob"] = log_prob;
    return out;
  };
  Json list = Json::array();
  for (const auto& t : made.tokens) {
    Json one = entry(t.id, t.log_prob);
    one["top"] = Json::array();
    for (const auto& a : t.top) one["top"].push_back(entry(a.id, a.log_prob));
    list.push_back(std::move(one));
  }
  return list;
}

// The last token is never fed.
int kv_tokens(const Answer& made) {
  const auto tokens = static_cast<int>(made.tokens.size());
  return made.prompt_tokens + std::max(tokens - 1, 0);
}

Json generation_json(
    const Answer& made,
    const Prompt& prompt,
    const ModelEngine& live
) {
  return {
      {"text", made.text},
      {"ids", made.ids()},
      {"finish", infer::name_of(made.finish)},
      {"prompt_tokens", made.prompt_tokens},
      {"timing",
       {{"load_ms", live.load_ms},
        {"tokenizer_ms", prompt.tokenizer_ms},
        {"first_step_ms", made.first_step_ms},
        {"decode_ms", made.decode_ms},
        {"tokens_per_s", made.tokens_per_s}}},
      {"kv_bytes", live.kv_bytes(kv_tokens(made))}
  };
}

std::string summary(
    const Answer& made,
    const Prompt& prompt,
    const ModelEngine& live
) {
  const double seconds = (prompt.tokenizer_ms + made.first_step_ms) / 1e3;
  return fmt::format(
      "loaded in {:.2f} s; prompt {} tokens, first token after {:.2f} s; {} "
      "tokens, {:.1f} tokens/s; {}\nkeys and values: {}",
      live.load_ms / 1e3, made.prompt_tokens, seconds, made.tokens.size(),
      made.tokens_per_s,
      made.finish == infer::Finish::stop     ? "ended by itself"
      : made.finish == infer::Finish::length ? "ended by length"
                                             : "interrupted",
      live.kv_formula(kv_tokens(made))
  );
}

// The largest shares of the time, by op.
std::string profile_text() {
  constexpr std::size_t kShown = 16;
  std::string out = "    calls      ms  zone\n";
  const auto totals = profile::zone_totals();
  for (std::size_t i = 0; i < totals.size() && i < kShown; ++i) {
    const auto& z = totals[i];
    out += fmt::format("{:9} {:7.1f}  {}\n", z.count, z.seconds * 1e3, z.name);
  }
  return out;
}

// One prompt; whoever asks waits for it, so it is alone in its batch.
void generate_one(Context& context, const GenerateFlags& flags) {
  infer::Request request = flags.sampling.request(context);
  request.log_probs = log_probs_of(flags);
  request.grammar = flags.grammar.grammar();
  infer::EngineOptions options;
  options.max_batch = 1, options.prefill_chunk = 512;
  options.prefix_cache = !flags.engine.ahead.prefix_folder.empty();
  const auto live = flags.engine.start(context, flags.model, options);
  const infer::TextModel& model = live->model;
  const Prompt prompt = make_prompt(model, flags);
  request.prompt = prompt.ids;
  request.stop_ids = model.stop_ids;
  request.continues_prompt = !prompt.chat;
  const bool log_probs = request.log_probs.has_value();
  const InterruptGuard guard;
  const bool json = context.common.json;
  const bool text = model.tokenizer != nullptr;
  if (flags.profile) profile::start_zones();
  const auto made = stream_answer(
      *live->engine, std::move(request),
      [&](const infer::GeneratedToken& token) {
        if (json) return;
        context.print(text ? token.text : fmt::format("{} ", token.id));
        std::fflush(stdout);
      },
      [] { return !InterruptGuard::interrupted(); }
  );
  if (flags.profile) {
    profile::stop_zones();
    context.note(profile_text());
  }
  if (json) {
    Json document = generation_json(made, prompt, *live);
    if (log_probs) {
      document["logprobs"] = log_probs_json(made, model.tokenizer.get());
    }
    context.json("hearth.generate/1", document);
  } else {
    context.print("\n");
    std::fflush(stdout);
    if (log_probs) {
      for (const Json& t : log_probs_json(made, model.tokenizer.get())) {
        context.print(to_json_line(t) + "\n");
      }
    }
    context.note(summary(made, prompt, *live));
  }
  if (InterruptGuard::interrupted()) throw Interrupted("interrupted");
}

void generate_many(const Context& context, const GenerateFlags& flags) {
  if (*flags.jsonl != "-") require_input(*flags.jsonl, "batch");
  if (flags.out != "-") require_output_folder(flags.out);
  if (context.common.json && flags.out == "-") {
    throw UsageError("--json with --jsonl needs -o FILE for the answers");
  }
  BatchJob job;
  job.in = *flags.jsonl, job.out = flags.out;
  job.system = flags.system, job.raw = flags.raw, job.force = flags.force;
  job.batch = flag_number(flags.batch, "--batch");
  job.log_probs = log_probs_of(flags);
  const auto grammar = flags.grammar.grammar();
  const auto work = open_batch(job);
  if (work.lines.empty()) return report_batch_done(context, work);
  const auto live = flags.engine.start(context, flags.model, {});
  run_batch(context, job, work, flags.sampling, grammar, *live);
}

}  // namespace

void cmd_generate(Context& context, const std::vector<std::string>& words) {
  GenerateFlags flags;
  Args args("generate", "Text from a model, as it comes.", context.common);
  declare(args, flags);
  if (!context.parse(args, words)) return;
  check_prompt_flags(flags);
  if (flags.jsonl) return generate_many(context, flags);
  generate_one(context, flags);
}

}  // namespace hearth::cli
