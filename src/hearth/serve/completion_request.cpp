#include <fmt/format.h>

#include "hearth/serve/api_error.h"
#include "hearth/serve/generation_request.h"

namespace hearth::serve {
namespace {

TokenIds ids_of(const Json& list, const Fields& fields) {
  TokenIds out;
  out.reserve(list.size());
  for (const Json& id : list) {
    if (!id.is_number_unsigned() ||
        id.get<std::uint64_t>() > static_cast<std::uint64_t>(INT32_MAX)) {
      fields.fail("prompt", "must be text or token ids, or a list of either");
    }
    out.push_back(static_cast<std::int32_t>(id.get<std::uint64_t>()));
  }
  return out;
}

void read_prompt(Fields& fields, CompletionRequest& out) {
  const Json& value = fields.need("prompt");
  const auto add = [&](const Json& one) {
    if (one.is_string()) {
      out.prompts.emplace_back(one.get<std::string>());
    } else if (one.is_array()) {
      out.prompts.emplace_back(ids_of(one, fields));
    } else {
      fields.fail("prompt", "must be text or token ids, or a list of either");
    }
  };
  const bool list = value.is_array() && !value.empty() &&
                    (value.front().is_string() || value.front().is_array());
  if (!list) return add(value);
  for (const Json& one : value) add(one);
}

}  // namespace

CompletionRequest parse_completion_request(
    std::string_view body,
    const RequestLimits& limits
) {
  const Json document = parse_request_json(body);
  Fields fields(document, "");
  CompletionRequest out;
  read_common(fields, limits, out);
  read_prompt(fields, out);
  out.echo = fields.boolean("echo").value_or(false);
  out.max_tokens = static_cast<int>(
      fields.integer("max_tokens", 0, limits.max_tokens).value_or(16)
  );
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
