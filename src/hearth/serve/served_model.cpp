#include "hearth/serve/served_model.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/serve/api/api_error.h"
#include "hearth/serve/api/tool_text.h"
#include "hearth/serve/random_id.h"

namespace hearth::serve {
namespace {

AnswerHead head_of(const GenerationRequest& request, bool chat) {
  return {
      .id = fmt::format(
          "{}-{:016x}", chat ? "chatcmpl" : "cmpl", random_number()
      ),
      .model = request.model,
      .created = static_cast<std::int64_t>(unix_seconds()),
      .chat = chat
  };
}

// UsageErrors of what lies below are about what the client sent.
template <class Body>
auto as_api_error(const char* param, Body body) {
  try {
    return body();
  } catch (const EffortError&) {
    throw;
  } catch (const UsageError& e) {
    throw ApiError(400, plain_message(e.what()), param);
  }
}

// Where it must hold (format.strict), what a grammar cannot hold is refused.
std::shared_ptr<const text::Grammar> grammar_of(
    const FormatRequest& format,
    Effort* effort
) {
  using Kind = FormatRequest::Kind;
  return as_api_error("response_format", [&] {
    switch (format.kind) {
      case Kind::json:
        return text::grammar_of_any_json();
      case Kind::schema:
        return text::grammar_of_schema(
            format.schema, {.strict = format.strict, .effort = effort}
        );
      case Kind::regex:
        return text::grammar_of_regex(format.source, effort);
      case Kind::gbnf:
        return text::grammar_of_gbnf(format.source, effort);
      case Kind::text:
        break;
    }
    return std::shared_ptr<const text::Grammar>();
  });
}

infer::Request engine_request(
    const ServedModel& model,
    const GenerationRequest& r,
    TokenIds prompt,
    int default_tokens
) {
  infer::Request out;
  out.prompt = std::move(prompt);
  out.max_tokens = r.max_tokens.value_or(default_tokens);
  out.sampling = r.sampling;
  out.sampling.seed = r.seed.value_or(0);
  out.logit_bias = r.logit_bias;
  out.stop_ids = model.text->stop_ids();
  out.stop = r.stop;
  out.log_probs = r.log_probs;
  // Tools may put theirs in its place.
  out.grammar = grammar_of(r.format, r.effort);
  out.adapter = model.adapter;
  return out;
}

// The engine would refuse these too, but without the name of the option.
void check_ids(const ServedModel& model, const infer::Request& request) {
  const int limit = model.engine->vocabulary();
  const auto check = [&](std::int32_t id, const char* param) {
    if (id >= 0 && id < limit) return;
    throw ApiError(
        400,
        fmt::format(
            "'{}' must have token ids from 0 to {}, got {}", param, limit - 1,
            id
        ),
        param
    );
  };
  for (const std::int32_t id : request.prompt) check(id, "prompt");
  for (const auto& [id, bias] : request.logit_bias) check(id, "logit_bias");
}

void check_length(
    const ServedModel& model,
    const infer::Request& request,
    const char* param
) {
  const int limit = model.engine->limit();
  const auto tokens = request.prompt.size();
  // A request for no new token may fill the whole context.
  const auto room =
      static_cast<std::size_t>(request.max_tokens == 0 ? limit : limit - 1);
  if (tokens <= room) return;
  throw ApiError(
      400,
      fmt::format(
          "the prompt has {} tokens, which {} {} tokens of this model's "
          "context",
          tokens,
          tokens > static_cast<std::size_t>(limit)
              ? "is more than the"
              : "leaves no room for an answer in the",
          limit
      ),
      param, "context_length_exceeded"
  );
}

JobPlan plan_of(const GenerationRequest& r, bool chat) {
  JobPlan plan;
  plan.head = head_of(r, chat);
  plan.stream = r.stream;
  plan.include_usage = r.include_usage;
  plan.log_probs = r.log_probs.has_value();
  plan.token_ids = r.token_ids;
  plan.choices_per_prompt = r.choices;
  return plan;
}

// An answer that cannot be as long as was asked for says how long it may be.
void tell_cut_tokens(const GenerationRequest& r, int room, JobPlan& plan) {
  if (!r.asked_tokens) return;
  const int most = std::min(r.max_tokens.value_or(room), room);
  if (*r.asked_tokens <= most || most < 0) return;
  plan.headers.emplace_back("x-hearth-max-tokens", std::to_string(most));
}

// Each choice draws from a seed of its own, so that n texts differ.
void add_choices(
    const ServedModel& model,
    const GenerationRequest& r,
    const infer::Request& request,
    JobPlan& plan
) {
  check_length(model, request, plan.head.chat ? "messages" : "prompt");
  check_ids(model, request);
  for (int i = 0; i < r.choices; ++i) {
    plan.requests.push_back(request);
    auto& seed = plan.requests.back().sampling.seed;
    seed = mixed_seed(seed, static_cast<std::uint64_t>(i));
  }
}

// Options for the schemas of tools; a tool that says "strict" is held strictly
// anyway.
text::GrammarOptions options_of(const ChatRequest& request) {
  return {.strict = request.strict, .effort = request.effort};
}

// A strict tool's arguments follow its schema also where the model may choose:
// from the mark of a call on, the text is held to it.
void add_strict_tools(
    const ChatRequest& request,
    infer::Request& asked,
    const JobPlan& plan
) {
  const auto strict = std::ranges::find_if(request.tools, [](const Json& t) {
    const Json& function = t["function"];
    return function.contains("strict") && function["strict"] == true;
  });
  if (strict == request.tools.end()) return;
  const auto mark = infer::tool_call_mark(plan.tool_form);
  if (mark.empty() && !request.strict) {
    asked.grammar = infer::grammar_of_calls_or_text(
        plan.tool_form, request.tools, request.parallel_tool_calls,
        options_of(request)
    );
    return;
  }
  if (mark.empty()) {
    const auto name = fmt::format(
        "tools[{}].function.strict", strict - request.tools.begin()
    );
    throw ApiError(
        400,
        fmt::format(
            "'{}' needs 'tool_choice' to be required or a function: calls of "
            "this model have no mark from which to hold them to a schema",
            name
        ),
        name
    );
  }
  asked.grammar_after = mark;
  asked.grammar = infer::grammar_after_tool_call_mark(
      plan.tool_form, request.tools, request.parallel_tool_calls,
      options_of(request)
  );
}

// The answer is either a call or text in the requested format.
void add_formed_answer(
    const ChatRequest& request,
    infer::Request& asked,
    const JobPlan& plan
) {
  const bool any = request.format.kind == FormatRequest::Kind::json;
  asked.grammar = infer::grammar_of_calls_or_json(
      plan.tool_form, request.tools, any ? nullptr : &request.format.schema,
      request.parallel_tool_calls,
      {.strict = request.format.strict, .effort = request.effort}
  );
}

// Calls are looked for where tools are on offer, and demanded by a grammar
// where one is required.
void add_tools(
    const ServedModel& model,
    const ChatRequest& request,
    infer::Request& asked,
    JobPlan& plan
) {
  if (request.tool_choice == ToolChoice::none) return;
  plan.tool_form = model.text->tool_form();
  if (plan.tool_form == infer::ToolForm::none) {
    if (request.strict) {
      throw ApiError(400, "the template of this model knows no tools", "tools");
    }
    plan.tool_form = kPlainToolForm;
  }
  as_api_error("tools", [&] {
    plan.tool_names = infer::tool_names(request.tools);
    plan.one_tool_call = !request.parallel_tool_calls;
    if (request.tool_choice == ToolChoice::automatic) {
      return request.format.kind == FormatRequest::Kind::text
                 ? add_strict_tools(request, asked, plan)
                 : add_formed_answer(request, asked, plan);
    }
    asked.grammar = infer::grammar_of_tool_call(
        plan.tool_form, request.tools, request.tool_name,
        request.parallel_tool_calls, options_of(request)
    );
  });
}

PromptEcho echo_of_ids(const ServedText& text, const TokenIds& ids) {
  return {.text = text.tokenizer()->decode(ids, true), .tokens = ids.size()};
}

// A prompt's scores are the same for all choices of it and for equal prompts:
// the first of them computes them.
void share_scores(JobPlan& plan) {
  for (std::size_t i = 0; i < plan.requests.size(); ++i) {
    const auto same = std::ranges::find(
        plan.requests, plan.requests[i].prompt, &infer::Request::prompt
    );
    const auto source = static_cast<std::size_t>(same - plan.requests.begin());
    plan.scored_by.push_back(source);
    if (source != i) plan.requests[i].prompt_log_probs.reset();
  }
}

// A request with more texts than can ever wait would be refused each time.
void check_choices(const ServedModel& model, const JobPlan& plan) {
  const std::size_t most = model.engine->most_at_once();
  if (plan.requests.size() <= most) return;
  throw ApiError(
      400,
      fmt::format(
          "'n' asks for {} texts, but this server runs and queues at most {}",
          plan.requests.size(), most
      ),
      "n"
  );
}

}  // namespace

JobPlan plan_chat(const ServedModel& model, const ChatRequest& request) {
  JobPlan plan = plan_of(request, true);
  TokenIds ids = model.text->chat_ids(request, model.engine->limit());
  const int room = model.engine->limit() - static_cast<int>(ids.size());
  auto asked =
      engine_request(model, request, std::move(ids), std::max(room, 1));
  tell_cut_tokens(request, room, plan);
  add_tools(model, request, asked, plan);
  add_choices(model, request, asked, plan);
  check_choices(model, plan);
  return plan;
}

// Errors about messages are about the items they were made of.
JobPlan plan_response(
    const ServedModel& model,
    const ResponseRequest& request
) {
  try {
    JobPlan plan = plan_chat(model, request);
    plan.response = ResponseHead{
        fmt::format("resp_{:016x}{:016x}", random_number(), random_number()),
        plan.head.created, request.echo
    };
    return plan;
  } catch (const ApiError& e) {
    if (!e.param().starts_with("messages")) throw;
    throw ApiError(e.status(), e.what(), "input", e.code());
  }
}

JobPlan plan_completion(
    const ServedModel& model,
    const CompletionRequest& request
) {
  JobPlan plan = plan_of(request, false);
  const std::size_t prefix = model.text->tokenizer()->prefix_ids().size();
  for (const auto& prompt : request.prompts) {
    const auto* given = std::get_if<TokenIds>(&prompt);
    TokenIds ids =
        given ? *given
              : model.text->raw_ids(
                    std::get<std::string>(prompt), model.engine->limit()
                );
    if (ids.empty()) throw ApiError(400, "'prompt' is empty", "prompt");
    if (request.echo) {
      const PromptEcho echo =
          given ? echo_of_ids(*model.text, ids)
                : PromptEcho{
                      std::get<std::string>(prompt), ids.size(), prefix, true
                  };
      plan.echoes.push_back(std::make_shared<PromptEcho>(echo));
    }
    const int room = model.engine->limit() - static_cast<int>(ids.size());
    auto asked = engine_request(model, request, std::move(ids), 16);
    if (plan.headers.empty()) tell_cut_tokens(request, room, plan);
    asked.continues_prompt = true;
    if (request.echo && request.log_probs) {
      asked.prompt_log_probs = request.log_probs;
    } else if (asked.max_tokens == 0) {
      // The engine makes no token only for those who ask about the prompt's.
      asked.prompt_log_probs = 0;
    }
    add_choices(model, request, asked, plan);
  }
  check_choices(model, plan);
  if (plan.requests.front().prompt_log_probs) share_scores(plan);
  return plan;
}

void check_log_probs(const JobPlan& plan, int context) {
  // As JSON, some fifty bytes each; of text, as many.
  constexpr std::size_t kMost = std::size_t{1} << 20;
  constexpr std::size_t kMostText = std::size_t{32} << 20;
  std::size_t entries = 0, text = 0;
  for (const infer::Request& one : plan.requests) {
    const std::size_t prompt = one.prompt.size();
    const auto room = static_cast<std::size_t>(context) - prompt;
    const std::size_t made =
        std::min(static_cast<std::size_t>(one.max_tokens), room);
    const std::size_t tokens = made + (plan.echoes.empty() ? 0 : prompt);
    const int alternatives = one.log_probs.value_or(0);
    entries += tokens * (1 + static_cast<std::size_t>(alternatives));
  }
  for (const auto& echo : plan.echoes) {
    text +=
        echo->text.size() * static_cast<std::size_t>(plan.choices_per_prompt);
  }
  if (plan.log_probs && entries > kMost) {
    throw ApiError(
        400,
        fmt::format(
            "the answer could hold {} log probabilities (texts x tokens x (1 + "
            "alternatives)), but at most {} are given: ask for fewer texts, "
            "tokens or alternatives",
            entries, kMost
        ),
        plan.head.chat ? "top_logprobs" : "logprobs"
    );
  }
  if (text > kMostText) {
    throw ApiError(
        400,
        fmt::format(
            "'echo' would repeat {} bytes of prompts, but at most {} are given",
            text, kMostText
        ),
        "echo"
    );
  }
}

}  // namespace hearth::serve
