#include "hearth/cli/infer/generate_flags.h"

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/hash.h"
#include "hearth/cli/infer/generate_prompt.h"

namespace hearth::cli {

void GenerateFlags::declare(Args& args) {
  model.declare(args);
  args.option("-p,--prompt", prompt, "The prompt; - reads stdin");
  args.option("--file", file, "Read the prompt from this file");
  args.option("--ids", ids, "Token ids as the prompt, such as 1,2,3");
  args.option(
      "--jsonl", jsonl,
      "Many prompts, a JSON object a line: {\"id\", \"prompt\" or "
      "\"messages\"}; - reads stdin"
  );
  args.option(
      "-o", out,
      "With --jsonl: the answers; a file that has some goes on from there"
  );
  args.flag("--force", force, "With --jsonl: begin the answers anew");
  args.option(
      "--batch", batch, "With --jsonl: prompts at once; 0 measures which"
  );
  args.option("--system", system, "A system message before the prompt");
  args.option(
      "--tools", tools,
      "JSON file with tools in OpenAI's form that the model may call"
  );
  args.flag("--raw", raw, "Continue the text itself: no chat template");
  sampling.declare(args);
  args.option(
      "--logprobs", log_probs,
      "Log probabilities, with this many alternatives a token"
  );
  grammar.declare(args);
  engine.declare(args);
  args.flag(
      "--profile", profile, "Say on stderr where the time of decoding went"
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

void GenerateFlags::check() const {
  const int given =
      (prompt ? 1 : 0) + (file ? 1 : 0) + (ids ? 1 : 0) + (jsonl ? 1 : 0);
  if (given != 1) {
    throw UsageError(
        "give the prompt by one of -p TEXT, --file, --ids, --jsonl"
    );
  }
  if ((system || tools) && (raw || ids)) {
    throw UsageError(
        fmt::format(
            "{} needs a chat template, which --raw and --ids leave out",
            system ? "--system" : "--tools"
        )
    );
  }
  if (!jsonl && (out != "-" || force || batch != 0)) {
    throw UsageError("-o, --force and --batch are for --jsonl");
  }
  if (jsonl && profile) throw UsageError("--profile is for one prompt");
  if (out.empty()) throw UsageError("-o needs a file, got an empty name");
}

Asked GenerateFlags::read(const Context& context) const {
  Asked asked;
  asked.request = sampling.request(context);
  if (log_probs) {
    asked.request.log_probs = flag_number(*log_probs, "--logprobs");
  }
  auto made = grammar.read();
  asked.request.grammar = std::move(made.grammar);
  asked.grammar = std::move(made.source);
  if (tools) asked.tools = read_tools_file(*tools);
  if (asked.request.grammar && !asked.tools.is_null()) {
    throw UsageError(
        "--schema, --regex and --grammar leave no room for a tool call"
    );
  }
  if (file) asked.text = read_prompt(*file);
  if (prompt) asked.text = *prompt == "-" ? read_prompt("-") : *prompt;
  if (ids) ids_prompt(*ids);
  return asked;
}

std::string GenerateFlags::key(
    const Context& context,
    const Asked& asked
) const {
  const infer::Request& r = asked.request;
  Json all = {r.max_tokens};
  for (const infer::SamplingField& field : infer::sampling_fields()) {
    const double value = field.get(r.sampling);
    all.push_back(field.whole() ? Json(static_cast<int>(value)) : Json(value));
  }
  const Json rest = {
      context.common.seed_given ? Json(r.sampling.seed) : Json(),
      sampling.bias,
      r.stop,
      r.log_probs ? Json(*r.log_probs) : Json(),
      system ? Json(*system) : Json(),
      raw,
      asked.tools,
      asked.grammar,
      model.dtype,
      model.quant,
      model.dense,
      engine.kv,
      engine.products,
      engine.batch_invariant
  };
  all.insert(all.end(), rest.begin(), rest.end());
  return fmt::format("{:016x}", hash64(to_json_line(all)));
}

}  // namespace hearth::cli
