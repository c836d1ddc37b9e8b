// hearth tokenizer template: a chat as its template writes it.
#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/cli/command.h"
#include "hearth/cli/inputs.h"
#include "hearth/text/chat/chat.h"

namespace hearth::cli {
namespace {

// key=value; the value is JSON where it reads as such, else a string.
void set_variable(Json& variables, const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UsageError(
        fmt::format("--set must be given key=value, got '{}'", word)
    );
  }
  const std::string value = word.substr(equals + 1);
  Json parsed = Json::parse(value, nullptr, false);
  variables[word.substr(0, equals)] =
      parsed.is_discarded() ? Json(value) : std::move(parsed);
}

Json spans_json(const text::ChatRendering& rendering) {
  Json spans = Json::array();
  for (const text::ChatTurn& turn : rendering.turns) {
    spans.push_back(
        {{"message", turn.message},
         {"begin", turn.span.begin},
         {"end", turn.span.end}}
    );
  }
  return spans;
}

}  // namespace

void cmd_tokenizer_template(
    Context& context,
    const std::vector<std::string>& words
) {
  std::string tokenizer, messages_path, tools_path, documents_path, name;
  std::string train = "all";
  std::vector<std::string> sets;
  text::ChatOptions options;
  Args args(
      "tokenizer template",
      "Render messages with a model's chat template, byte for byte as "
      "transformers does.",
      context.common
  );
  args.option(
      "-t,--tokenizer", tokenizer, "Tokenizer folder, or a .jinja file"
  );
  args.option(
      "--messages", messages_path, "JSON file: a list of messages; - is stdin"
  );
  args.option("--tools", tools_path, "JSON file: a list of tool schemas");
  args.option("--documents", documents_path, "JSON file: a list of documents");
  args.flag(
      "--generation-prompt", options.add_generation_prompt,
      "End with the header of the assistant's next turn"
  );
  args.flag(
      "--continue-final", options.continue_final_message,
      "End inside the last message, for the model to go on with it"
  );
  args.option("--set", sets, "Template variable, key=value (JSON or text)");
  args.option("--name", name, "Which template, where a model has several");
  args.choice(
      "--train-on", train, {"all", "last"},
      "Assistant turns whose spans --json reports"
  );
  args.require("--tokenizer");
  args.require("--messages");
  args.example(
      "hearth tokenizer template -t qwen/ --messages m.json",
      "the prompt as the model sees it"
  );
  args.example(
      "hearth tokenizer template -t t.jinja --messages m.json --tools t.json "
      "--generation-prompt --set enable_thinking=false",
      "with tools and a variable of the template"
  );
  args.example(
      "hearth tokenizer template -t qwen/ --messages m.json --json",
      "with the byte spans a model would be trained on"
  );
  if (!context.parse(args, words)) return;

  require_input(tokenizer, "tokenizer or template");
  const Json messages = read_json(messages_path, "file of messages");
  if (!tools_path.empty()) {
    options.tools = read_json(tools_path, "file of tools");
  }
  if (!documents_path.empty()) {
    options.documents = read_json(documents_path, "file of documents");
  }
  for (const std::string& word : sets) set_variable(options.variables, word);
  const auto templates = text::ChatTemplates::load(tokenizer);
  const text::ChatTemplate& chosen =
      templates.choose(!options.tools.is_null(), name);
  if (!context.common.json) {
    return context.print(chosen.render(messages, options));
  }
  const auto rendering = chosen.render_for_training(
      messages, options,
      train == "all" ? text::TrainOn::kAllAssistant
                     : text::TrainOn::kLastAssistant
  );
  context.json(
      "hearth.tokenizer.template/1",
      {{"text", rendering.text}, {"turns", spans_json(rendering)}}
  );
}

}  // namespace hearth::cli
