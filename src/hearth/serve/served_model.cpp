#include "hearth/serve/served_model.h"

#include <chrono>
#include <random>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/serve/api_error.h"

namespace hearth::serve {
namespace {

std::uint64_t random_number() {
  static thread_local std::mt19937_64 source{std::random_device{}()};
  return source();
}

AnswerHead head_of(const GenerationRequest& request, bool chat) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {
      .id = fmt::format(
          "{}-{:016x}", chat ? "chatcmpl" : "cmpl", random_number()
      ),
      .model = request.model,
      .created = std::chrono::duration_cast<std::chrono::seconds>(now).count(),
      .chat = chat
  };
}

// UsageErrors of what lies below are about what the client sent.
template <class Body>
auto as_api_error(const char* param, Body body) {
  try {
    return body();
  } catch (const UsageError& e) {
    throw ApiError(400, e.what(), param);
  }
}

std::shared_ptr<const infer::Grammar> grammar_of(const FormatRequest& format) {
  using Kind = FormatRequest::Kind;
  return as_api_error("response_format", [&] {
    switch (format.kind) {
      case Kind::json:
        return infer::grammar_of_any_json();
      case Kind::schema:
        return infer::grammar_of_schema(format.schema);
      case Kind::regex:
        return infer::grammar_of_regex(format.source);
      case Kind::gbnf:
        return infer::grammar_of_gbnf(format.source);
      case Kind::text:
        break;
    }
    return std::shared_ptr<const infer::Grammar>();
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
  out.sampling = {
      .temperature = r.temperature,
      .top_k = r.top_k,
      .top_p = r.top_p,
      .typical_p = r.typical_p,
      .min_p = r.min_p,
      .repeat_penalty = r.repeat_penalty,
      .frequency_penalty = r.frequency_penalty,
      .presence_penalty = r.presence_penalty,
      .seed = r.seed ? *r.seed : random_number()
  };
  out.logit_bias = r.logit_bias;
  out.stop_ids = model.text->stop_ids;
  out.stop = r.stop;
  out.log_probs = r.log_probs;
  out.grammar = grammar_of(r.format);
  out.adapter = model.adapter;
  return out;
}

void check_length(const ServedModel& model, const infer::Request& request) {
  const int limit = model.engine->limit();
  const auto tokens = request.prompt.size();
  // One that asks for no new token may fill the context.
  const auto room =
      static_cast<std::size_t>(request.max_tokens == 0 ? limit : limit - 1);
  if (tokens <= room) return;
  throw ApiError(
      400,
      fmt::format(
          "the prompt has {} tokens, but the context of this model holds {}",
          tokens, limit
      ),
      "messages", "context_length_exceeded"
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

// Each choice draws from a seed of its own, so that n texts differ.
void add_choices(
    const ServedModel& model,
    const GenerationRequest& r,
    const infer::Request& request,
    JobPlan& plan
) {
  check_length(model, request);
  for (int i = 0; i < r.choices; ++i) {
    plan.requests.push_back(request);
    plan.requests.back().sampling.seed += static_cast<std::uint64_t>(i);
  }
}

TokenIds chat_ids(const ServedText& text, const ChatRequest& request) {
  if (!text.templates) {
    throw ApiError(
        400,
        "this model has no chat template: use /v1/completions, or start the "
        "server with --chat-template",
        "messages"
    );
  }
  const bool tools = request.tool_choice != ToolChoice::none;
  return as_api_error("messages", [&] {
    const std::string rendered = text.templates->choose(tools).render(
        request.messages,
        {.add_generation_prompt = !request.continue_final_message,
         .continue_final_message = request.continue_final_message,
         .tools = tools ? request.tools : Json(),
         .variables = request.template_variables}
    );
    return text.tokenizer->encode(rendered, {.add_special = false});
  });
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
    throw ApiError(400, "the template of this model knows no tools", "tools");
  }
  as_api_error("tools", [&] {
    plan.tool_names = infer::tool_names(request.tools);
    plan.one_tool_call = !request.parallel_tool_calls;
    if (request.tool_choice == ToolChoice::automatic) return;
    asked.grammar = infer::grammar_of_tool_call(
        plan.tool_form, request.tools, request.tool_name,
        request.parallel_tool_calls
    );
  });
}

TokenIds raw_ids(const ServedText& text, const std::string& prompt) {
  TokenIds ids = text.tokenizer->prefix_ids();
  text.tokenizer->encode(prompt, ids, {.add_special = false});
  return ids;
}

}  // namespace

infer::ToolForm ServedText::tool_form() const {
  if (!templates) return infer::ToolForm::none;
  return infer::tool_form_of(templates->choose(true).source());
}

JobPlan plan_chat(const ServedModel& model, const ChatRequest& request) {
  JobPlan plan = plan_of(request, true);
  TokenIds ids = chat_ids(*model.text, request);
  const int room = model.engine->limit() - static_cast<int>(ids.size());
  auto asked =
      engine_request(model, request, std::move(ids), std::max(room, 1));
  add_tools(model, request, asked, plan);
  add_choices(model, request, asked, plan);
  return plan;
}

JobPlan plan_completion(
    const ServedModel& model,
    const CompletionRequest& request
) {
  JobPlan plan = plan_of(request, false);
  for (const auto& prompt : request.prompts) {
    const auto* given = std::get_if<TokenIds>(&prompt);
    TokenIds ids =
        given ? *given : raw_ids(*model.text, std::get<std::string>(prompt));
    if (ids.empty()) throw ApiError(400, "'prompt' is empty", "prompt");
    if (request.echo) {
      const std::string text = given ? model.text->tokenizer->decode(ids, true)
                                     : std::get<std::string>(prompt);
      plan.echoes.insert(
          plan.echoes.end(), static_cast<std::size_t>(request.choices), text
      );
    }
    auto asked = engine_request(model, request, std::move(ids), 16);
    asked.continues_prompt = true;
    if (request.echo && request.log_probs) {
      asked.prompt_log_probs = request.log_probs;
    } else if (asked.max_tokens == 0) {
      // The engine makes no token only for those who ask about the prompt's.
      asked.prompt_log_probs = 0;
    }
    add_choices(model, request, asked, plan);
  }
  return plan;
}

}  // namespace hearth::serve
