// hearth generate: text from a model, streamed.
#include <charconv>
#include <cstdio>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/cli/interrupt.h"
#include "hearth/cli/model_flags.h"
#include "hearth/infer/generator.h"
#include "hearth/profile/zone.h"

namespace hearth::cli {
namespace {

using Ids = std::vector<std::int32_t>;

struct GenerateFlags {
  ModelFlags model;
  std::optional<std::string> prompt, file, ids, system;
  std::int64_t max_tokens = 256, top_k = 0, log_probs = -1;
  double temperature = 0, top_p = 1, min_p = 0, repeat_penalty = 1;
  std::string kv = "auto", products = "auto";
  std::vector<std::string> stop;
  bool raw = false, profile = false;
};

void declare(Args& args, GenerateFlags& f) {
  f.model.declare(args);
  args.option("-p,--prompt", f.prompt, "The prompt; - reads stdin");
  args.option("--file", f.file, "Read the prompt from this file");
  args.option("--ids", f.ids, "Token ids as the prompt, such as 1,2,3");
  args.option("--system", f.system, "A system message before the prompt");
  args.flag("--raw", f.raw, "Continue the text itself: no chat template");
  args.option("--max-tokens", f.max_tokens, "How many tokens at most");
  args.option("--temp", f.temperature, "Temperature; 0 takes the most likely");
  args.option("--top-k", f.top_k, "Only the k most likely tokens; 0: all");
  args.option("--top-p", f.top_p, "Only the tokens that hold this probability");
  args.option(
      "--min-p", f.min_p, "Only tokens this likely beside the most likely"
  );
  args.option(
      "--repeat-penalty", f.repeat_penalty,
      "Above 1 makes tokens that came before less likely"
  );
  args.option("--stop", f.stop, "End at this text; may be repeated");
  args.option(
      "--logprobs", f.log_probs,
      "Log probabilities, with this many alternatives a token"
  );
  args.choice(
      "--kv", f.kv, {"auto", "bf16", "fp32", "int8"},
      "How keys and values are kept; auto: as it computes"
  );
  args.choice(
      "--products", f.products, {"auto", "int8", "exact"},
      "Quantised weights are multiplied by int8 activations, or as they are; "
      "auto: the prompt as they are, each step in int8"
  );
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
}

Ids parse_ids(const std::string& text) {
  Ids out;
  const char *at = text.data(), *end = at + text.size();
  while (at < end) {
    if (*at == ',' || *at == ' ') {
      ++at;
      continue;
    }
    std::int32_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc() || next == at) {
      throw UsageError(
          fmt::format("--ids must be numbers such as 1,2,3, got '{}'", text)
      );
    }
    out.push_back(id);
    at = next;
  }
  return out;
}

struct Prompt {
  Ids ids;
  bool chat = false;
  double tokenizer_ms = 0;
};

void check_prompt_flags(const GenerateFlags& f) {
  const int given = (f.prompt ? 1 : 0) + (f.file ? 1 : 0) + (f.ids ? 1 : 0);
  if (given != 1) {
    throw UsageError("give the prompt by one of -p TEXT, --file, --ids");
  }
  if (f.system && (f.raw || f.ids)) {
    throw UsageError(
        "--system needs a chat template, which --raw and --ids "
        "leave out"
    );
  }
}

Prompt make_prompt(const infer::TextModel& model, const GenerateFlags& f) {
  Prompt out;
  if (f.ids) {
    out.ids = parse_ids(*f.ids);
    if (out.ids.empty()) throw UsageError("--ids names no token");
    return out;
  }
  const std::string text = f.file             ? read_text(*f.file)
                           : *f.prompt == "-" ? read_text("-")
                                              : *f.prompt;
  out.chat = !f.raw && (model.templates || f.system);
  const double start = milliseconds_now();
  if (out.chat) {
    Json messages = Json::array();
    if (f.system) {
      messages.push_back({{"role", "system"}, {"content", *f.system}});
    }
    messages.push_back({{"role", "user"}, {"content", text}});
    out.ids = model.chat_prompt(messages);
  } else {
    out.ids = model.raw_prompt(text);
  }
  out.tokenizer_ms = milliseconds_now() - start;
  return out;
}

infer::GenerateOptions options_of(
    const Context& context,
    const GenerateFlags& f,
    const infer::TextModel& model,
    const Prompt& prompt
) {
  const auto number = [](std::int64_t v, const char* name) {
    if (v < -1 || v > INT32_MAX) {
      throw UsageError(fmt::format("{} is out of range, got {}", name, v));
    }
    return static_cast<int>(v);
  };
  infer::GenerateOptions o;
  o.max_tokens = number(f.max_tokens, "--max-tokens");
  o.sampling = {
      .temperature = f.temperature,
      .top_k = number(f.top_k, "--top-k"),
      .top_p = f.top_p,
      .min_p = f.min_p,
      .repeat_penalty = f.repeat_penalty,
      .seed = context.common.seed
  };
  o.stop_ids = model.stop_ids;
  o.stop = f.stop;
  o.kv = f.kv == "int8"   ? infer::KvType::int8
         : f.kv == "bf16" ? infer::KvType::bfloat16
         : f.kv == "fp32" ? infer::KvType::float32
                          : infer::KvType::automatic;
  o.products = f.products == "int8"    ? infer::QuantProducts::int8
               : f.products == "exact" ? infer::QuantProducts::exact
                                       : infer::QuantProducts::automatic;
  if (f.log_probs < -1) {
    throw UsageError(
        fmt::format("--logprobs must be 0 or more, got {}", f.log_probs)
    );
  }
  if (f.log_probs >= 0) o.log_probs = number(f.log_probs, "--logprobs");
  o.continues_prompt = !prompt.chat;
  return o;
}

Json log_probs_json(
    const infer::Generation& made,
    const data::Tokenizer* tokenizer
) {
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

Json generation_json(
    const infer::Generation& made,
    const Prompt& prompt,
    double load_ms
) {
  return {
      {"text", made.text},
      {"ids", made.ids()},
      {"finish", infer::name_of(made.finish)},
      {"prompt_tokens", made.prompt_tokens},
      {"timing",
       {{"load_ms", load_ms},
        {"tokenizer_ms", prompt.tokenizer_ms},
        {"first_step_ms", made.first_step_ms},
        {"decode_ms", made.decode_ms},
        {"tokens_per_s", made.tokens_per_s}}},
      {"kv_bytes", made.kv_bytes}
  };
}

std::string summary(
    const infer::Generation& made,
    const Prompt& prompt,
    double load_ms
) {
  const double seconds = (prompt.tokenizer_ms + made.first_step_ms) / 1e3;
  return fmt::format(
      "loaded in {:.2f} s; prompt {} tokens, first token after {:.2f} s; {} "
      "tokens, {:.1f} tokens/s; {}",
      load_ms / 1e3, made.prompt_tokens, seconds, made.tokens.size(),
      made.tokens_per_s,
      made.finish == infer::Finish::stop     ? "ended by itself"
      : made.finish == infer::Finish::length ? "ended by length"
                                             : "interrupted"
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

}  // namespace

void cmd_generate(Context& context, const std::vector<std::string>& words) {
  GenerateFlags flags;
  Args args("generate", "Text from a model, as it comes.", context.common);
  declare(args, flags);
  if (!context.parse(args, words)) return;

  check_prompt_flags(flags);
  double load_ms = 0;
  const auto model = flags.model.load(context, &load_ms);
  const Prompt prompt = make_prompt(model, flags);
  const auto options = options_of(context, flags, model, prompt);
  const InterruptGuard guard;
  const bool json = context.common.json;
  const bool text = model.tokenizer != nullptr;
  if (flags.profile) profile::start_zones();
  const auto made = infer::generate(
      model.model, model.tokenizer, prompt.ids, options,
      [&](const infer::GeneratedToken& token) {
        if (!json) {
          context.print(text ? token.text : fmt::format("{} ", token.id));
          std::fflush(stdout);
        }
        return !InterruptGuard::interrupted();
      }
  );
  if (flags.profile) {
    profile::stop_zones();
    context.note(profile_text());
  }
  if (json) {
    Json document = generation_json(made, prompt, load_ms);
    if (options.log_probs) {
      document["logprobs"] = log_probs_json(made, model.tokenizer.get());
    }
    context.json("hearth.generate/1", document);
  } else {
    context.print("\n");
    std::fflush(stdout);
    if (options.log_probs) {
      for (const Json& t : log_probs_json(made, model.tokenizer.get())) {
        context.print(to_json_line(t) + "\n");
      }
    }
    context.note(summary(made, prompt, load_ms));
  }
  if (InterruptGuard::interrupted()) throw Interrupted("interrupted");
}

}  // namespace hearth::cli
