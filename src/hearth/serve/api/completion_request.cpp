// A request for a text that is continued.
#include <algorithm>

#include <fmt/format.h>

#include "hearth/serve/api/api_error.h"
#include "hearth/serve/api/generation_request.h"

namespace hearth::serve {
namespace {

[[noreturn]] void fail_texts(const Fields& fields, const char* key) {
  fields.fail(key, "must be text or token ids, or a list of either");
}

TokenIds ids_of(const Json& list, const Fields& fields, const char* key) {
  TokenIds out;
  out.reserve(list.size());
  for (const Json& id : list) {
    if (!id.is_number_unsigned() ||
        id.get<std::uint64_t>() > static_cast<std::uint64_t>(INT32_MAX)) {
      fail_texts(fields, key);
    }
    out.push_back(static_cast<std::int32_t>(id.get<std::uint64_t>()));
  }
  return out;
}

}  // namespace

std::vector<TextOrIds> read_texts(Fields& fields, const char* key) {
  const Json& value = fields.need(key);
  std::vector<TextOrIds> out;
  const auto add = [&](const Json& one) {
    if (one.is_string()) {
      out.emplace_back(one.get<std::string>());
    } else if (one.is_array()) {
      out.emplace_back(ids_of(one, fields, key));
    } else {
      fail_texts(fields, key);
    }
  };
  const bool list = value.is_array() && !value.empty() &&
                    (value.front().is_string() || value.front().is_array());
  if (list) {
    for (const Json& one : value) add(one);
  } else {
    add(value);
  }
  return out;
}

CompletionRequest parse_completion_request(
    std::string_view body,
    const RequestLimits& limits
) {
  const Json document = parse_request_json(body);
  Fields fields(document, "");
  CompletionRequest out;
  read_common(fields, limits, out);
  out.prompts = read_texts(fields, "prompt");
  out.echo = fields.boolean("echo").value_or(false);
  constexpr int kDefault = 16;
  read_max_tokens(fields, limits, {"max_tokens"}, 0, out);
  if (!out.max_tokens) out.max_tokens = std::min(kDefault, limits.max_tokens);
  if (const auto k = fields.integer("logprobs", 0, limits.max_log_probs)) {
    out.log_probs = static_cast<int>(*k);
  }
  if (*out.max_tokens == 0 && !out.echo) {
    fields.fail("max_tokens", "may be 0 only with 'echo'");
  }
  const auto total = out.prompts.size() * static_cast<std::size_t>(out.choices);
  if (total > static_cast<std::size_t>(limits.max_choices)) {
    fields.fail(
        "prompt", fmt::format(
                      "asks for {} texts with 'n', at most {} are made at once",
                      total, limits.max_choices
                  )
    );
  }
  check_token_ids(fields, out);
  fields.only("suffix", "", "text is only written after a prompt");
  fields.only("best_of", out.choices, "every choice is returned");
  fields.finish();
  return out;
}

}  // namespace hearth::serve
