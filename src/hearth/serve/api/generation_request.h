#pragma once
// What a request to the API asks for, checked but not yet tokens. Plain values:
// no model, no engine.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "hearth/base/effort.h"
#include "hearth/base/json.h"
#include "hearth/infer/sampling_options.h"
#include "hearth/serve/api/fields.h"
#include "hearth/text/stop_text.h"

namespace hearth::serve {

struct RequestLimits {
  int max_tokens = 4096;   // that one answer may have
  int max_choices = 16;    // n times the number of prompts
  int max_log_probs = 64;  // alternatives a token
  int max_stops = 16;
  std::size_t max_stop_bytes = text::kMaxStopBytes;  // of each
  int max_inputs = 2048;  // texts that become vectors at once
  // Refuses also what would not change the promised answer, and what could be
  // put another way (--strict-requests).
  bool strict = false;
};

// What the text must look like.
struct FormatRequest {
  enum class Kind : unsigned char { text, json, schema, regex, gbnf };
  Kind kind = Kind::text;
  // The client counts on it: what a grammar cannot hold is refused.
  bool strict = false;
  Json schema;         // of Kind::schema
  std::string source;  // of Kind::regex and Kind::gbnf
};

// What requests for chats and for completions have in common.
struct GenerationRequest {
  std::string model;
  bool stream = false, include_usage = false;
  // How many tokens the answer may have, at most what the server gives; and the
  // number that was asked for, where it is larger.
  std::optional<int> max_tokens;
  std::optional<std::int64_t> asked_tokens;
  int choices = 1;
  infer::SamplerOptions sampling{.temperature = 1};
  std::optional<std::uint64_t> seed;
  std::vector<std::string> stop;
  std::map<std::int32_t, float> logit_bias;
  std::optional<int> log_probs;  // with this many alternatives
  bool token_ids = false;        // ids beside the texts of tokens
  FormatRequest format;
  // The budget that the work for this request is charged to; null: each part
  // has a budget of its own.
  Effort* effort = nullptr;
};

enum class ToolChoice : unsigned char { none, automatic, required, named };

struct ChatRequest : GenerationRequest {
  // The messages as templates read them: content is text; arguments are
  // objects, or text where a model wrote them wrongly.
  Json messages;
  Json tools;                // null, or those of the list that may be called
  bool empty_tools = false;  // no tools are an empty list for the template
  ToolChoice tool_choice = ToolChoice::none;
  std::string tool_name;  // of ToolChoice::named
  bool parallel_tool_calls = true;
  bool continue_final_message = false;
  Json template_variables = Json::object();
  std::string reasoning_effort;  // for templates that know it; else empty
  bool strict = false;           // as RequestLimits has it
};

using TokenIds = std::vector<std::int32_t>;

using TextOrIds = std::variant<std::string, TokenIds>;

struct CompletionRequest : GenerationRequest {
  std::vector<TextOrIds> prompts;
  bool echo = false;
};

// "stream_options"; and how tokens are drawn.
void read_stream_options(Fields& fields, GenerationRequest& out);
void read_sampling(Fields& fields, bool strict, GenerationRequest& out);

// The keys that both have. ApiError as Fields says.
void read_common(
    Fields& fields,
    const RequestLimits& limits,
    GenerationRequest& out
);

// A text, token ids, or a list of either.
std::vector<TextOrIds> read_texts(Fields& fields, const char* key);
// Reads the keys that OpenAI's service stores beside a request or uses for
// itself: none of them changes an answer.
void read_labels(Fields& fields, bool strict);

// A schema's name, itself and whether it must hold: what "json_schema" of a
// chat and "text.format" of a response say.
void read_schema_format(Fields& fields, bool strict, FormatRequest& out);
void read_schema_format(
    const Json& value,
    const std::string& where,
    bool strict,
    FormatRequest& out
);

// Each of these keys says how many tokens the answer may have; those that are
// there must agree.
void read_max_tokens(
    Fields& fields,
    const RequestLimits& limits,
    std::initializer_list<const char*> keys,
    int least,
    GenerationRequest& out
);

// Call it after 'logprobs' was read.
void check_token_ids(const Fields& fields, const GenerationRequest& request);

// A chat's messages as ChatRequest has them, and its tools, null where the
// list is empty; of a request or of a line of a batch. ApiError says what is
// wrong.
Json read_messages(const Json& list, bool strict = true);
Json read_tools(const Json& list);
// What "tool_choice" says, in a chat's form or null, and how much to think;
// tools and strictness were read before.
void read_tool_choice(
    const Fields& fields,
    const Json& choice,
    ChatRequest& out
);
void read_effort(Fields& fields, const char* key, ChatRequest& out);
// Call it after the whole request was read.
void check_format_with_tools(const ChatRequest& request);

ChatRequest parse_chat_request(
    std::string_view body,
    const RequestLimits& limits
);
CompletionRequest parse_completion_request(
    std::string_view body,
    const RequestLimits& limits
);

}  // namespace hearth::serve
