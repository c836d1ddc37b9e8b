#include <utility>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/infer/grammar/compiled.h"
#include "hearth/infer/grammar/recent.h"
#include "hearth/infer/grammar/schema_impl.h"
#include "hearth/infer/tool_calls.h"

namespace hearth::infer {
namespace {

using grammar::ExprPtr;

constexpr const char* kWho = "[infer.grammar_of_tool_call]";

const Json& function_of(const Json& tool) {
  const bool is =
      tool.is_object() && tool.contains("function") &&
      tool["function"].is_object() && tool["function"].contains("name") &&
      tool["function"]["name"].is_string() &&
      !tool["function"]["name"].get_ref<const std::string&>().empty();
  if (!is) {
    throw UsageError(
        "[infer.tool_names] each tool must be {\"type\": \"function\", "
        "\"function\": {\"name\": …, \"parameters\": …}}"
    );
  }
  return tool["function"];
}

// How the form writes a call, around name and arguments.
struct Form {
  std::string_view before, key, after, begin, between, end;
};

Form form_of(ToolForm form) {
  switch (form) {
    case ToolForm::hermes:
      return {"<tool_call>\n", "arguments", "\n</tool_call>", "", "\n", ""};
    case ToolForm::llama:
      return {"", "parameters", "", "", "; ", ""};
    case ToolForm::mistral:
      return {"", "arguments", "", "[TOOL_CALLS] [", ", ", "]"};
    case ToolForm::none:
      break;
  }
  throw UsageError(
      fmt::format(
          "{} the model's chat template must have a form for tool calls", kWho
      )
  );
}

ExprPtr arguments_of(
    const Json& function,
    bool strict_only,
    grammar::Rules& rules
) {
  const auto found = function.find("parameters");
  const auto strict = function.find("strict");
  const bool held =
      !strict_only || (strict != function.end() && *strict == true);
  if (found == function.end() || found->is_null() || !held) {
    return grammar::call(grammar::add_any_json(rules).object);
  }
  try {
    return grammar::call(grammar::SchemaReader(*found).read(rules));
  } catch (const UsageError& error) {
    throw UsageError(
        fmt::format(
            "{} (parameters of tool '{}')", error.what(),
            function["name"].get<std::string>()
        ),
        error.hint()
    );
  }
}

struct Wanted {
  std::string_view name;  // empty: any of them
  bool several = false;
  bool after_mark = false;  // and only strict tools are held to their schemas
};

// Each call, without what comes before it.
ExprPtr calls_of(
    const Form& parts,
    const Json& tools,
    const Wanted& wanted,
    grammar::Rules& rules
) {
  std::vector<ExprPtr> ways;
  for (const Json& tool : tools) {
    const Json& function = function_of(tool);
    const std::string own = function["name"].get<std::string>();
    if (!wanted.name.empty() && own != wanted.name) continue;
    ways.push_back(
        grammar::sequence(
            {grammar::text(
                 fmt::format(
                     "{{\"name\": {}, \"{}\": ", to_json_line(own), parts.key
                 )
             ),
             arguments_of(function, wanted.after_mark, rules),
             grammar::text(fmt::format("}}{}", parts.after))}
        )
    );
  }
  if (ways.empty()) {
    throw UsageError(
        wanted.name.empty()
            ? fmt::format("{} there must be a tool to call", kWho)
            : fmt::format(
                  "{} the tool '{}' must be on offer", kWho, wanted.name
              )
    );
  }
  return grammar::call(
      rules.add("a tool call", grammar::choice(std::move(ways)))
  );
}

std::shared_ptr<const Grammar> make_grammar(
    const Form& parts,
    std::string_view mark,
    const Json& tools,
    const Wanted& wanted
) {
  grammar::Rules rules;
  const ExprPtr call = calls_of(parts, tools, wanted, rules);
  std::vector<ExprPtr> all;
  // What stands between the mark and the call, which a token may have taken
  // with the mark or left out.
  const std::string first = fmt::format("{}{}", parts.begin, parts.before);
  if (wanted.after_mark) {
    std::string_view rest = std::string_view(first).substr(mark.size());
    const auto blank = std::min(rest.find_first_not_of(" \n"), rest.size());
    all.push_back(grammar::repeat(grammar::text(rest.substr(0, blank)), 0, 1));
    all.push_back(grammar::text(rest.substr(blank)));
  } else {
    all.push_back(grammar::text(first));
  }
  all.push_back(call);
  if (wanted.several) {
    all.push_back(
        grammar::repeat(
            grammar::sequence(
                {grammar::text(
                     fmt::format("{}{}", parts.between, parts.before)
                 ),
                 call}
            ),
            0, grammar::kNoLimit
        )
    );
  }
  all.push_back(grammar::text(parts.end));
  rules.root = rules.add("tool calls", grammar::sequence(std::move(all)));
  return std::make_shared<const Grammar>(rules, kWho);
}

}  // namespace

std::vector<std::string> tool_names(const Json& tools) {
  if (!tools.is_array()) {
    throw UsageError("[infer.tool_names] tools must be a list");
  }
  std::vector<std::string> names;
  for (const Json& tool : tools) {
    names.push_back(function_of(tool)["name"].get<std::string>());
  }
  return names;
}

std::shared_ptr<const Grammar> grammar_of_tool_call(
    ToolForm form,
    const Json& tools,
    std::string_view name,
    bool several
) {
  const Form parts = form_of(form);
  tool_names(tools);  // refuses what is no list of tools
  const std::string key = fmt::format(
      "tools {} {} {} {}", tool_form_name(form), several,
      to_json_line(std::string(name)), to_json_line(tools)
  );
  return grammar::recent_grammar(key, [&] {
    return make_grammar(parts, {}, tools, {.name = name, .several = several});
  });
}

std::shared_ptr<const Grammar> grammar_after_tool_call_mark(
    ToolForm form,
    const Json& tools,
    bool several
) {
  const Form parts = form_of(form);
  tool_names(tools);
  const std::string key = fmt::format(
      "tools after mark {} {} {}", tool_form_name(form), several,
      to_json_line(tools)
  );
  return grammar::recent_grammar(key, [&] {
    return make_grammar(
        parts, tool_call_mark(form), tools,
        {.several = several, .after_mark = true}
    );
  });
}

}  // namespace hearth::infer
