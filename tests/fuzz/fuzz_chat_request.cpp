// Any body: a request or an ApiError, of every endpoint, strict or not. What is
// taken must be within its limits, and the messages must be such that they can
// be put another way.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "hearth/serve/api/api_error.h"
#include "hearth/serve/api/embedding_request.h"
#include "hearth/serve/api/message_turns.h"
#include "hearth/serve/api/response_request.h"
#include "hearth/serve/api/tool_text.h"

namespace {

using hearth::serve::ChatRequest;
using hearth::serve::EmbeddingRequest;
using hearth::serve::GenerationRequest;

void check(const GenerationRequest& r) {
  const hearth::serve::RequestLimits limits;
  for (const auto& field : hearth::infer::sampling_fields()) {
    const double value = field.get(r.sampling);
    const bool within =
        value >= field.request_least && value <= field.request_most;
    if (!within || !field.range.holds(value)) std::abort();
  }
  const bool holds = r.choices >= 1 && r.choices <= limits.max_choices &&
                     r.max_tokens.value_or(0) <= limits.max_tokens &&
                     r.log_probs.value_or(0) <= limits.max_log_probs;
  if (!holds) std::abort();
  for (const auto& text : r.stop) {
    if (text.empty()) std::abort();
  }
}

// Every message has a role and a text; what a template cannot read is put
// otherwise without a fault, and has no calls afterwards.
void check(const ChatRequest& r) {
  check(static_cast<const GenerationRequest&>(r));
  hearth::Json messages = r.messages;
  for (const auto& message : messages) {
    if (!message["role"].is_string() || !message["content"].is_string()) {
      std::abort();
    }
  }
  if (!r.tools.is_null()) {
    hearth::serve::add_tools_as_text(messages, r.tools);
  }
  hearth::serve::write_calls_as_text(messages);
  for (const auto& message : messages) {
    if (message.contains("tool_calls")) std::abort();
  }
  using hearth::serve::TurnForm;
  for (const auto form :
       {TurnForm::own, TurnForm::joined, TurnForm::one_system,
        TurnForm::no_system, TurnForm::user_first}) {
    const auto turns = hearth::serve::in_turns(messages, form);
    if (turns.empty() != messages.empty()) std::abort();
    if (form == TurnForm::own && turns != messages) std::abort();
    for (const auto& message : turns) {
      const bool system = message["role"] == "system";
      if (system && form >= TurnForm::no_system) std::abort();
    }
  }
}

void check(const EmbeddingRequest& r) {
  const hearth::serve::RequestLimits limits;
  const auto most = static_cast<std::size_t>(limits.max_inputs);
  if (r.inputs.empty() || r.inputs.size() > most || r.dimensions == 0) {
    std::abort();
  }
}

template <class Parse>
void try_parse(Parse parse, std::string_view body, bool strict = false) {
  try {
    check(parse(body, {.strict = strict}));
  } catch (const hearth::serve::ApiError& e) {
    if (e.status() != 400) std::abort();
    // The error itself must become JSON.
    hearth::parse_json(hearth::serve::error_body(e), "error");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  const std::string_view body(reinterpret_cast<const char*>(data), n);
  try_parse(hearth::serve::parse_chat_request, body);
  try_parse(hearth::serve::parse_chat_request, body, true);
  try_parse(hearth::serve::parse_completion_request, body);
  try_parse(hearth::serve::parse_response_request, body);
  try_parse(hearth::serve::parse_embedding_request, body);
  return 0;
}
