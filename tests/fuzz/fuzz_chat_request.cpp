// Any body: a request or an ApiError, of both endpoints. What is taken must be
// within its limits.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "hearth/serve/api_error.h"
#include "hearth/serve/generation_request.h"

namespace {

using hearth::serve::GenerationRequest;

void check(const GenerationRequest& r) {
  const hearth::serve::RequestLimits limits;
  const bool holds = r.temperature >= 0 && r.temperature <= 2 && r.top_p > 0 &&
                     r.top_p <= 1 && r.choices >= 1 &&
                     r.choices <= limits.max_choices &&
                     r.max_tokens.value_or(0) <= limits.max_tokens &&
                     r.log_probs.value_or(0) <= limits.max_log_probs;
  if (!holds) std::abort();
  for (const auto& text : r.stop) {
    if (text.empty()) std::abort();
  }
}

template <class Parse>
void try_parse(Parse parse, std::string_view body) {
  try {
    check(parse(body, {}));
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
  try_parse(hearth::serve::parse_completion_request, body);
  return 0;
}
