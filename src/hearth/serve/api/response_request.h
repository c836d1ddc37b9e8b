#pragma once
// What a request to /v1/responses asks for: a chat, said another way.
#include <string_view>

#include "hearth/serve/api/generation_request.h"

namespace hearth::serve {

struct ResponseRequest : ChatRequest {
  Json echo;  // what the answer repeats of it
};

ResponseRequest parse_response_request(
    std::string_view body,
    const RequestLimits& limits
);

// The messages of `input`: a text of the user's, or a list of items; with what
// `instructions` say (null where there are none) before them.
Json read_items(const Json& input, const Json& instructions);

}  // namespace hearth::serve
