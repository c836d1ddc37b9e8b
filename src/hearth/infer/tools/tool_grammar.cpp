// The grammars that hold a text to tool calls.
#include <utility>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/infer/tools/tool_calls.h"
#include "hearth/text/grammar/recent.h"
#include "hearth/text/grammar/schema_impl.h"

namespace hearth::infer {
namespace {

using text::grammar::ExprPtr;

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

// What is asked of the calls, and what making the grammar counts to.
struct Wanted {
  std::string_view name;  // empty: any of them
  bool several = false;
  bool after_mark = false;
  bool strict_only = false;  // the others' arguments are any object
  bool strict = true;        // of each schema; see GrammarOptions
};

// A tool that lists no parameters has none: a schema that lists no properties
// would take any.
bool takes_nothing(const Json& parameters) {
  const auto properties = parameters.find("properties");
  return parameters.is_object() && properties != parameters.end() &&
         *properties == Json::object() &&
         !parameters.contains("additionalProperties") &&
         !parameters.contains("required");
}

ExprPtr arguments_of(
    const Json& function,
    const Wanted& wanted,
    text::grammar::Rules& rules,
    Effort& effort
) {
  const auto found = function.find("parameters");
  const auto strict = function.find("strict");
  const bool own_strict = strict != function.end() && *strict == true;
  if (wanted.strict_only && !own_strict) {
    return text::grammar::call(text::grammar::add_any_json(rules).object);
  }
  if (found == function.end() || found->is_null())
    return text::grammar::text("{}");
  Json parameters = *found;
  if (takes_nothing(parameters)) parameters["additionalProperties"] = false;
  try {
    return text::grammar::call(
        text::grammar::SchemaReader(
            parameters, wanted.strict || own_strict, effort
        )
            .read(rules)
    );
  } catch (const EffortError&) {
    throw;
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

// The grammar of each call, without the mark before it.
ExprPtr calls_of(
    const Form& parts,
    const Json& tools,
    const Wanted& wanted,
    text::grammar::Rules& rules,
    Effort& effort
) {
  std::vector<ExprPtr> ways;
  for (const Json& tool : tools) {
    const Json& function = function_of(tool);
    const std::string own = function["name"].get<std::string>();
    if (!wanted.name.empty() && own != wanted.name) continue;
    ways.push_back(
        text::grammar::sequence(
            {text::grammar::text(
                 fmt::format(
                     "{{\"name\": {}, \"{}\": ", to_json_line(own), parts.key
                 )
             ),
             arguments_of(function, wanted, rules, effort),
             text::grammar::text(fmt::format("}}{}", parts.after))}
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
  return text::grammar::call(
      rules.add("a tool call", text::grammar::choice(std::move(ways)))
  );
}

text::grammar::Rules make_rules(
    const Form& parts,
    std::string_view mark,
    const Json& tools,
    const Wanted& wanted,
    Effort& effort
) {
  text::grammar::Rules rules;
  const ExprPtr call = calls_of(parts, tools, wanted, rules, effort);
  std::vector<ExprPtr> all;
  // What stands between the mark and the call, which a token may have taken
  // with the mark or left out.
  const std::string first = fmt::format("{}{}", parts.begin, parts.before);
  if (wanted.after_mark) {
    std::string_view rest = std::string_view(first).substr(mark.size());
    const auto blank = std::min(rest.find_first_not_of(" \n"), rest.size());
    all.push_back(
        text::grammar::repeat(text::grammar::text(rest.substr(0, blank)), 0, 1)
    );
    all.push_back(text::grammar::text(rest.substr(blank)));
  } else {
    all.push_back(text::grammar::text(first));
  }
  all.push_back(call);
  if (wanted.several) {
    all.push_back(
        text::grammar::repeat(
            text::grammar::sequence(
                {text::grammar::text(
                     fmt::format("{}{}", parts.between, parts.before)
                 ),
                 call}
            ),
            0, text::grammar::kNoLimit
        )
    );
  }
  all.push_back(text::grammar::text(parts.end));
  rules.root = rules.add("tool calls", text::grammar::sequence(std::move(all)));
  return rules;
}

// Text whose first character, blanks aside, does not begin a call.
ExprPtr other_text() {
  const auto any = text::grammar::chars(text::grammar::all_but({}));
  const auto blank = text::grammar::chars(
      text::grammar::normal_ranges(
          {{U' ', U' '}, {U'\t', U'\n'}, {U'\r', U'\r'}}
      )
  );
  const auto first = text::grammar::chars(
      text::grammar::all_but(
          text::grammar::normal_ranges(
              {{U' ', U' '},
               {U'\t', U'\n'},
               {U'\r', U'\r'},
               {U'{', U'{'},
               {U';', U';'}}
          )
      )
  );
  return text::grammar::sequence(
      {text::grammar::repeat(blank, 0, text::grammar::kNoLimit),
       text::grammar::optional(
           text::grammar::sequence(
               {first, text::grammar::repeat(any, 0, text::grammar::kNoLimit)}
           )
       )}
  );
}

// Calls or what `other` adds to the rules.
template <class Other>
std::shared_ptr<const text::Grammar> calls_or(
    ToolForm form,
    const Json& tools,
    bool several,
    const text::GrammarOptions& options,
    const std::string& what,
    Other other
) {
  const Form parts = form_of(form);
  tool_names(tools);
  const std::string key = fmt::format(
      "tools or {} {} {} {} {}", tool_form_name(form), several, options.strict,
      to_json_line(tools), what
  );
  const Wanted wanted{
      .name = {},
      .several = several,
      .strict_only = true,
      .strict = options.strict
  };
  return text::grammar::recent_grammar(
      key, kWho, options.effort, [&](Effort& used) {
        text::grammar::Rules rules = make_rules(parts, {}, tools, wanted, used);
        std::vector<ExprPtr> ways{
            text::grammar::call(rules.root), other(rules, used)
        };
        rules.root =
            rules.add("an answer", text::grammar::choice(std::move(ways)));
        return rules;
      }
  );
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

std::shared_ptr<const text::Grammar> grammar_of_tool_call(
    ToolForm form,
    const Json& tools,
    std::string_view name,
    bool several,
    const text::GrammarOptions& options
) {
  const Form parts = form_of(form);
  tool_names(tools);  // refuses what is no list of tools
  const std::string key = fmt::format(
      "tools {} {} {} {} {}", tool_form_name(form), several, options.strict,
      to_json_line(std::string(name)), to_json_line(tools)
  );
  const Wanted wanted{
      .name = name, .several = several, .strict = options.strict
  };
  return text::grammar::recent_grammar(
      key, kWho, options.effort,
      [&](Effort& used) { return make_rules(parts, {}, tools, wanted, used); }
  );
}

std::shared_ptr<const text::Grammar> grammar_after_tool_call_mark(
    ToolForm form,
    const Json& tools,
    bool several,
    const text::GrammarOptions& options
) {
  const Form parts = form_of(form);
  tool_names(tools);
  const std::string key = fmt::format(
      "tools after mark {} {} {} {}", tool_form_name(form), several,
      options.strict, to_json_line(tools)
  );
  const Wanted wanted{
      .name = {},
      .several = several,
      .after_mark = true,
      .strict_only = true,
      .strict = options.strict
  };
  return text::grammar::recent_grammar(
      key, kWho, options.effort, [&](Effort& used) {
        return make_rules(parts, tool_call_mark(form), tools, wanted, used);
      }
  );
}

std::shared_ptr<const text::Grammar> grammar_of_calls_or_json(
    ToolForm form,
    const Json& tools,
    const Json* schema,
    bool several,
    const text::GrammarOptions& options
) {
  const std::string what =
      schema == nullptr ? "json" : "schema " + to_json_line(*schema);
  const auto json = [&](text::grammar::Rules& rules, Effort& effort) {
    if (schema == nullptr) {
      return text::grammar::call(text::grammar::add_any_json(rules).object);
    }
    text::grammar::SchemaReader reader(*schema, options.strict, effort);
    return text::grammar::call(reader.read(rules));
  };
  return calls_or(form, tools, several, options, what, json);
}

std::shared_ptr<const text::Grammar> grammar_of_calls_or_text(
    ToolForm form,
    const Json& tools,
    bool several,
    const text::GrammarOptions& options
) {
  const auto text = [](text::grammar::Rules&, Effort&) { return other_text(); };
  return calls_or(form, tools, several, options, "text", text);
}

}  // namespace hearth::infer
