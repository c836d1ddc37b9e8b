#include "hearth/data/read/dataset_shape.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include <fmt/format.h>

namespace hearth::data {
namespace {

using enum FieldUse;

struct Row {
  const char* name;
  std::initializer_list<ShapeField> fields;
};

// Preferences whose prompt is called otherwise come before Hearth's own form
// without a prompt, so that no prompt is lost.
const Row kPreferences[] = {
    {"Alpaca preferences",
     {{kPrompt, "instruction"},
      {kInput, "input", false},
      {kChosen, "chosen"},
      {kRejected, "rejected"},
      {kSystem, "system", false}}},
    {"question preferences",
     {{kPrompt, "question"},
      {kChosen, "chosen"},
      {kRejected, "rejected"},
      {kSystem, "system", false}}},
    {"ShareGPT preferences",
     {{kPrompt, "conversations"},
      {kChosen, "chosen"},
      {kRejected, "rejected"},
      {kSystem, "system", false},
      {kTools, "tools", false}}},
    {"OpenAI preferences",
     {{kRequest, "input"},
      {kChosen, "preferred_output"},
      {kRejected, "non_preferred_output"}}},
};

// Tried before a plain "text", which Alpaca's own files have beside these: the
// same once more, in a prompt format that is not the model's.
const Row kAlpaca[] = {
    {"Alpaca",
     {{kPrompt, "instruction"},
      {kInput, "input", false},
      {kCompletion, "output"},
      {kSystem, "system", false}}},
    {"Dolly",
     {{kPrompt, "instruction"},
      {kInput, "context", false},
      {kCompletion, "response"},
      {kSystem, "system", false}}},
};

const Row kOthers[] = {
    {"ShareGPT",
     {{kChat, "conversations"},
      {kSystem, "system", false},
      {kTools, "tools", false}}},
    {"questions and answers",
     {{kPrompt, "question"},
      {kInput, "context", false},
      {kCompletion, "answer"},
      {kSystem, "system", false}}},
    {"OpenOrca",
     {{kPrompt, "question"},
      {kCompletion, "response"},
      {kSystem, "system_prompt", false}}},
    {"queries and responses", {{kPrompt, "query"}, {kCompletion, "response"}}},
    {"problems and solutions",
     {{kPrompt, "problem"}, {kCompletion, "solution"}}},
    {"prompts and responses",
     {{kPrompt, "prompt"},
      {kCompletion, "response"},
      {kSystem, "system", false}}},
    {"prompts and outputs", {{kPrompt, "prompt"}, {kCompletion, "output"}}},
    {"instructions and completions",
     {{kPrompt, "instruction"},
      {kInput, "input", false},
      {kCompletion, "completion"}}},
    {"inputs and outputs", {{kPrompt, "input"}, {kCompletion, "output"}}},
};

const char* word(FieldUse use) {
  switch (use) {
    case kText:
      return "text";
    case kPrompt:
      return "prompt";
    case kInput:
      return "input";
    case kCompletion:
      return "completion";
    case kSystem:
      return "system";
    case kChat:
    case kRequest:
      return "messages";
    case kTools:
      return "tools";
    case kChosen:
      return "chosen";
    case kRejected:
      return "rejected";
    case kLabel:
      return "label";
  }
  return "";
}

bool is_one_of(
    std::string_view name,
    std::initializer_list<std::string_view> names
) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool RecordShape::has(FieldUse use) const {
  return std::any_of(fields.begin(), fields.end(), [&](const auto& f) {
    return f.use == use;
  });
}

std::string RecordShape::line(std::uint32_t present) const {
  std::string out, sources;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if ((present >> i & 1) == 0) continue;
    // An input is a part of the prompt.
    const bool goes_on = i + 1 < fields.size() && (present >> (i + 1) & 1) &&
                         fields[i + 1].use == kInput;
    sources += (sources.empty() ? "" : " + ") + fields[i].name;
    if (goes_on) continue;
    const char* use = word(fields[i].use == kInput ? kPrompt : fields[i].use);
    if (sources != use) {
      out += fmt::format("{}{} → {}", out.empty() ? "" : ", ", sources, use);
    }
    sources.clear();
  }
  return out.empty() ? out : name + ": " + out;
}

std::vector<RecordShape> record_shapes(const RecordFields& f) {
  std::vector<RecordShape> shapes;
  const auto add = [&](const char* name, std::vector<ShapeField> fields) {
    // A field whose name is empty is switched off.
    const bool possible =
        std::none_of(fields.begin(), fields.end(), [](const auto& field) {
          return field.needed && field.name.empty();
        });
    std::erase_if(fields, [](const auto& field) { return field.name.empty(); });
    if (possible) shapes.push_back({name, std::move(fields)});
  };
  const auto add_rows = [&](const auto& rows) {
    for (const Row& row : rows) add(row.name, row.fields);
  };
  const ShapeField input{kInput, f.input, false};
  const ShapeField system{kSystem, f.system, false};
  const ShapeField tools{kTools, f.tools, false};
  const ShapeField prompt{kPrompt, f.prompt};
  const ShapeField chosen{kChosen, f.chosen}, rejected{kRejected, f.rejected};
  const ShapeField completion{kCompletion, f.completion};
  const bool text_is_named = f.text != RecordFields().text;
  add("messages", {{kChat, f.messages}, system, tools});
  add("preferences", {prompt, input, chosen, rejected, system, tools});
  add_rows(kPreferences);
  add("preferences", {chosen, rejected, system, tools});
  add("KTO", {prompt, input, completion, {kLabel, "label"}});
  add("prompts", {prompt, input, completion, system, tools});
  if (text_is_named) add("text", {{kText, f.text}});
  add_rows(kAlpaca);
  if (!text_is_named) add("text", {{kText, f.text}});
  add_rows(kOthers);
  return shapes;
}

bool is_known_field(std::string_view name) {
  static const std::vector<RecordShape> shapes = record_shapes({});
  return std::any_of(shapes.begin(), shapes.end(), [&](const auto& shape) {
    return std::any_of(
        shape.fields.begin(), shape.fields.end(), [&](const auto& f) {
          return f.name == name && f.use != kLabel && f.use != kText &&
                 f.use != kCompletion;
        }
    );
  });
}

std::string guess_fields(const std::vector<std::string>& texts) {
  std::string asks, answers;
  for (const auto& name : texts) {
    if (asks.empty() &&
        is_one_of(
            name, {"prompt", "instruction", "question", "query", "input",
                   "problem", "user", "human", "source", "request", "task"}
        )) {
      asks = name;
    } else if (answers.empty() &&
               is_one_of(
                   name, {"completion", "output", "answer", "response",
                          "solution", "assistant", "bot", "target", "reply",
                          "summary", "chosen", "label"}
               )) {
      answers = name;
    }
  }
  if (texts.size() == 1)
    return fmt::format("data.fields={{text: {}}}", texts[0]);
  if (texts.size() == 2 && (asks.empty() || answers.empty())) {
    asks = texts[0] == answers ? texts[1] : texts[0];
    answers = asks == texts[0] ? texts[1] : texts[0];
  }
  if (asks.empty() || answers.empty()) return {};
  return fmt::format(
      "data.fields={{prompt: {}, completion: {}}}", asks, answers
  );
}

}  // namespace hearth::data
