#pragma once
// What a request to the API asks for, checked but not yet tokens. Plain values:
// no model, no engine.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/serve/fields.h"

namespace hearth::serve {

struct RequestLimits {
  int max_tokens = 4096;   // that one answer may have
  int max_choices = 16;    // n times the number of prompts
  int max_log_probs = 64;  // alternatives a token
  int max_stops = 16;
};

// What the text must look like.
struct FormatRequest {
  enum class Kind : unsigned char { text, json, schema, regex, gbnf };
  Kind kind = Kind::text;
  Json schema;         // of Kind::schema
  std::string source;  // of Kind::regex and Kind::gbnf
};

// What both endpoints have in common.
struct GenerationRequest {
  std::string model;
  bool stream = false, include_usage = false;
  std::optional<int> max_tokens;
  int choices = 1;
  double temperature = 1, top_p = 1, min_p = 0, typical_p = 1;
  int top_k = 0;
  double repeat_penalty = 1, frequency_penalty = 0, presence_penalty = 0;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> stop;
  std::map<std::int32_t, float> logit_bias;
  std::optional<int> log_probs;  // with this many alternatives
  bool token_ids = false;        // ids beside the texts of tokens
  FormatRequest format;
};

enum class ToolChoice : unsigned char { none, automatic, required, named };

struct ChatRequest : GenerationRequest {
  Json messages;  // as templates read them: content is text, arguments objects
  Json tools;     // null, or the list as it was sent
  ToolChoice tool_choice = ToolChoice::none;
  std::string tool_name;  // of ToolChoice::named
  bool parallel_tool_calls = true;
  bool continue_final_message = false;
  Json template_variables = Json::object();
};

using TokenIds = std::vector<std::int32_t>;

struct CompletionRequest : GenerationRequest {
  std::vector<std::variant<std::string, TokenIds>> prompts;
  bool echo = false;
};

// The keys that both have. ApiError as Fields says.
void read_common(
    Fields& fields,
    const RequestLimits& limits,
    GenerationRequest& out
);

// After 'logprobs' was read.
void check_token_ids(const Fields& fields, const GenerationRequest& request);

// A chat's messages as ChatRequest has them, and its tools, null where the
// list is empty; of a request or of a line of a batch. ApiError says what is
// wrong.
Json read_messages(const Json& list);
Json read_tools(const Json& list);

ChatRequest parse_chat_request(
    std::string_view body,
    const RequestLimits& limits
);
CompletionRequest parse_completion_request(
    std::string_view body,
    const RequestLimits& limits
);

}  // namespace hearth::serve
