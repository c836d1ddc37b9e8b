// hearth generate: text from a model, streamed.
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/cli/infer/answer_stream.h"
#include "hearth/cli/infer/answer_text.h"
#include "hearth/cli/infer/generate_batch.h"
#include "hearth/cli/infer/generate_flags.h"
#include "hearth/cli/infer/generate_prompt.h"
#include "hearth/cli/interrupt.h"
#include "hearth/cli/model/model_identity.h"
#include "hearth/infer/engine/job.h"
#include "hearth/profile/zone.h"

namespace hearth::cli {
namespace {

// Checks what the engine would check, with the names of flags in the errors.
void check_request(
    const infer::Request& request,
    const models::DecoderConfig& config,
    bool ids
) {
  check_bias_ids(request, config.vocab);
  for (const std::int32_t id : request.prompt) {
    if (!ids || (id >= 0 && id < config.vocab)) continue;
    throw UsageError(
        fmt::format(
            "--ids must be tokens from 0 to {}, got {}", config.vocab - 1, id
        )
    );
  }
  try {
    infer::check_request(
        request, config.vocab, config.max_length, config.max_length
    );
  } catch (const UsageError& e) {
    throw UsageError(plain_message(e.what()), e.hint());
  }
}

// Throws UsageError where the model cannot be asked this.
Prompt make_prompt(
    const infer::TextModel& model,
    const models::DecoderConfig& config,
    const GenerateFlags& f,
    Asked& asked
) {
  infer::Request& request = asked.request;
  if (!request.stop.empty() || request.grammar) model.need_tokenizer();
  Prompt prompt =
      f.ids ? ids_prompt(*f.ids)
            : text_prompt(model, asked.text, f.system, asked.tools, f.raw);
  tool_form(model, asked.tools);
  request.prompt = prompt.ids;
  request.stop_ids = model.stop_ids;
  request.continues_prompt = !prompt.chat;
  check_request(request, config, f.ids.has_value());
  return prompt;
}

// The last token is never fed.
int kv_tokens(const Answer& made) {
  const auto tokens = static_cast<int>(made.tokens.size());
  return made.prompt_tokens + std::max(tokens - 1, 0);
}

// One answer, and the time and memory it took.
struct Made {
  const Answer& answer;
  const AnswerText& text;
  const Prompt& prompt;
  const ModelEngine& live;
  std::optional<std::uint64_t> seed;  // where tokens were drawn
};

Json generation_json(const Made& made) {
  const Answer& answer = made.answer;
  Json out = {
      {"text", made.text.text()},
      {"ids", answer.ids()},
      {"finish", finish_name(answer.finish, made.text.calls())},
      {"prompt_tokens", answer.prompt_tokens},
      {"timing",
       {{"load_ms", made.live.load_ms},
        {"tokenizer_ms", made.prompt.tokenizer_ms},
        {"first_step_ms", answer.first_step_ms},
        {"decode_ms", answer.decode_ms},
        {"tokens_per_s", answer.tokens_per_s}}},
      {"kv_bytes", made.live.kv_bytes(kv_tokens(answer))}
  };
  if (!made.text.calls().is_null()) out["tool_calls"] = made.text.calls();
  if (made.seed) out["seed"] = *made.seed;
  if (made.live.guessing) out["guesses"] = made.live.guesses().json();
  return out;
}

void note_summary(const Context& context, const Made& made) {
  const Answer& answer = made.answer;
  const double seconds =
      (made.prompt.tokenizer_ms + answer.first_step_ms) / 1e3;
  context.note(
      fmt::format(
          "loaded in {:.2f} s; prompt {} tokens, first token after {:.2f} s; "
          "{} tokens, {:.1f} tokens/s; {}\nkeys and values: {}",
          made.live.load_ms / 1e3, answer.prompt_tokens, seconds,
          answer.tokens.size(), answer.tokens_per_s,
          answer.finish == infer::Finish::stop     ? "ended by itself"
          : answer.finish == infer::Finish::length ? "ended by length"
                                                   : "interrupted",
          made.live.kv_formula(kv_tokens(answer))
      )
  );
  if (!context.common.verbose) return;
  if (made.seed) context.note(fmt::format("seed: {}", *made.seed));
  if (made.live.guessing) context.note(made.live.guesses().text());
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

// After the text: the calls it makes, then the log probabilities, a JSON line
// each.
void print_result(const Context& context, const Made& made, bool log_probs) {
  const auto* tokenizer = made.live.model.tokenizer.get();
  if (context.common.json) {
    Json document = generation_json(made);
    if (log_probs) {
      document["logprobs"] = log_probs_json(made.answer.tokens, tokenizer);
    }
    return context.json("hearth.generate/1", document);
  }
  context.print("\n");
  for (const Json& call : made.text.calls()) {
    context.print(to_json_line(call) + "\n");
  }
  std::fflush(stdout);
  if (log_probs) {
    for (const Json& t : log_probs_json(made.answer.tokens, tokenizer)) {
      context.print(to_json_line(t) + "\n");
    }
  }
  note_summary(context, made);
}

// Answers one prompt. The user waits for it, so it is alone in its batch.
void generate_one(Context& context, const GenerateFlags& flags) {
  Asked asked = flags.read(context);
  flags.sampling.note_idle(context);
  infer::EngineOptions options;
  options.max_batch = 1, options.prefill_chunk = 512;
  options.prefix_cache = !flags.engine.ahead.prefix_folder.empty();
  Prompt prompt;
  const auto live = flags.engine.start(
      context, flags.model, options,
      [&](const infer::TextModel& model, const models::DecoderConfig& config) {
        prompt = make_prompt(model, config, flags, asked);
      }
  );
  const bool log_probs = asked.request.log_probs.has_value();
  std::optional<std::uint64_t> seed;
  if (asked.request.sampling.temperature > 0) {
    seed = asked.request.sampling.seed;
  }
  const InterruptGuard guard;
  AnswerText text(live->model, asked.tools);
  const auto show = [&](const std::string& part) {
    if (context.common.json) return;
    context.print(part);
    std::fflush(stdout);
  };
  if (flags.profile) profile::start_zones();
  const auto answer = stream_answer(
      *live->engine, std::move(asked.request),
      [&](const infer::GeneratedToken& token) {
        const std::string part = text.push(token);
        show(live->model.tokenizer ? part : fmt::format("{} ", token.id));
      },
      [] { return !InterruptGuard::interrupted(); }
  );
  show(text.finish());
  if (flags.profile) {
    profile::stop_zones();
    context.note(profile_text());
  }
  print_result(context, {answer, text, prompt, *live, seed}, log_probs);
  if (InterruptGuard::interrupted()) throw Interrupted("interrupted");
}

void note_before(const Context& context, const AnswersFile::Before& before) {
  const auto note = [&](std::size_t count, const char* what) {
    if (count > 0) context.note(fmt::format("{} {}", count, what));
  };
  note(before.failed, "that failed are asked again");
  note(before.changed, "that say something else by now are asked again");
}

// Checks what every line of the batch needs.
void check_model(
    const infer::TextModel& model,
    const BatchJob& job,
    const std::vector<BatchLine>& lines
) {
  model.need_tokenizer();
  tool_form(model, job.tools);
  const bool chat = std::ranges::any_of(lines, [](const BatchLine& line) {
    return !line.messages.is_null() || !line.tools.is_null();
  });
  if (chat || job.system) model.need_template();
  if (job.system) text_prompt(model, "x", job.system, job.tools, job.raw);
}

void generate_many(const Context& context, const GenerateFlags& flags) {
  require_input_file(*flags.jsonl, "batch");
  require_output_folder(flags.out);
  require_two_files(*flags.jsonl, flags.out);
  if (context.common.json && flags.out == "-") {
    throw UsageError("--json with --jsonl needs -o FILE for the answers");
  }
  Asked asked = flags.read(context);
  const BatchKey key = {model_identity(flags.model), flags.key(context, asked)};
  BatchJob job;
  job.in = *flags.jsonl, job.out = flags.out;
  job.system = flags.system, job.tools = asked.tools;
  job.raw = flags.raw, job.force = flags.force;
  job.batch = flag_number(flags.batch, "--batch");
  job.asked = std::move(asked.request);
  auto lines = read_batch(job);
  AnswersFile answers(job.out, key, job.force);
  const auto before = answers.take_up(lines);
  note_before(context, before);
  if (lines.empty()) return report_batch_done(context, before);
  const bool drawn = std::ranges::any_of(lines, [](const BatchLine& line) {
    return line.sampling.gave("temperature");
  });
  if (!drawn) flags.sampling.note_idle(context);
  const auto live = flags.engine.start(
      context, flags.model, {},
      [&](const infer::TextModel& model, const models::DecoderConfig& config) {
        check_bias_ids(job.asked, config.vocab);
        check_model(model, job, lines);
      }
  );
  run_batch(context, job, lines, before, answers, *live);
}

}  // namespace

void cmd_generate(Context& context, const std::vector<std::string>& words) {
  GenerateFlags flags;
  Args args("generate", "Text from a model, as it comes.", context.common);
  flags.declare(args);
  if (!context.parse(args, words)) return;
  flags.check();
  if (flags.jsonl) return generate_many(context, flags);
  generate_one(context, flags);
}

}  // namespace hearth::cli
