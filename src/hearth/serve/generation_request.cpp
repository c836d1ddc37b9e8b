#include "hearth/serve/generation_request.h"

#include <charconv>

#include <fmt/format.h>

#include "hearth/serve/api_error.h"

namespace hearth::serve {
namespace {

void read_stop(
    Fields& fields,
    const RequestLimits& limits,
    std::vector<std::string>& out
) {
  const Json* value = fields.find("stop");
  if (value == nullptr) return;
  const Json list = value->is_array() ? *value : Json::array({*value});
  if (list.size() > static_cast<std::size_t>(limits.max_stops)) {
    fields.fail(
        "stop", fmt::format("may have at most {} texts", limits.max_stops)
    );
  }
  for (const Json& text : list) {
    if (!text.is_string() || text.get_ref<const std::string&>().empty()) {
      fields.fail("stop", "must be a text or a list of texts, none empty");
    }
    out.push_back(text.get<std::string>());
  }
}

void read_logit_bias(Fields& fields, std::map<std::int32_t, float>& out) {
  const Json* value = fields.find("logit_bias");
  if (value == nullptr) return;
  if (!value->is_object()) {
    fields.fail("logit_bias", "must be an object of token ids and numbers");
  }
  for (const auto& [key, bias] : value->items()) {
    std::int32_t id = 0;
    const auto [end, error] =
        std::from_chars(key.data(), key.data() + key.size(), id);
    if (key.empty() || error != std::errc() || id < 0 ||
        end != key.data() + key.size()) {
      fields.fail("logit_bias", "must have token ids as its keys");
    }
    const double number = bias.is_number() ? bias.get<double>() : 1e9;
    if (!(number >= -100 && number <= 100)) {
      fields.fail("logit_bias", "must have values from -100 to 100");
    }
    if (!out.emplace(id, static_cast<float>(number)).second) {
      fields.fail("logit_bias", "must name each token once");
    }
  }
}

void read_stream(Fields& fields, GenerationRequest& out) {
  out.stream = fields.boolean("stream").value_or(false);
  const Json* options = fields.find("stream_options");
  if (options == nullptr) return;
  if (!out.stream) {
    fields.fail("stream_options", "needs 'stream' to be true");
  }
  Fields inner(*options, "stream_options");
  out.include_usage = inner.boolean("include_usage").value_or(false);
  inner.only("include_obfuscation", false, "nothing is padded here");
  inner.finish();
}

Json schema_of(const Json& value) {
  Fields fields(value, "response_format.json_schema");
  fields.need_text("name");
  fields.text("description");
  // A mask always holds the text to its schema, strict or not.
  fields.boolean("strict");
  Json schema = fields.need("schema");
  fields.finish();
  return schema;
}

void read_format(Fields& fields, FormatRequest& out) {
  const Json* value = fields.find("response_format");
  if (value == nullptr) return;
  Fields inner(*value, "response_format");
  const std::string type = inner.need_text("type");
  if (type == "json_object") {
    out.kind = FormatRequest::Kind::json;
  } else if (type == "json_schema") {
    out.kind = FormatRequest::Kind::schema;
    out.schema = schema_of(inner.need("json_schema"));
  } else if (type == "regex") {
    out.kind = FormatRequest::Kind::regex;
    out.source = inner.need_text("pattern");
  } else if (type == "gbnf") {
    out.kind = FormatRequest::Kind::gbnf;
    out.source = inner.need_text("grammar");
  } else if (type != "text") {
    inner.fail("type", "must be text, json_object, json_schema, regex or gbnf");
  }
  inner.finish();
}

void read_sampling(Fields& fields, GenerationRequest& out) {
  out.temperature = fields.number("temperature", 0, 2).value_or(1);
  out.top_p = fields.number("top_p", 0, 1).value_or(1);
  out.min_p = fields.number("min_p", 0, 1).value_or(0);
  out.typical_p = fields.number("typical_p", 0, 1).value_or(1);
  out.top_k =
      static_cast<int>(fields.integer("top_k", 0, INT32_MAX).value_or(0));
  out.repeat_penalty =
      fields.number("repetition_penalty", 0.01, 10).value_or(1);
  out.frequency_penalty = fields.number("frequency_penalty", -2, 2).value_or(0);
  out.presence_penalty = fields.number("presence_penalty", -2, 2).value_or(0);
  if (const auto seed = fields.integer("seed", INT64_MIN, INT64_MAX)) {
    out.seed = static_cast<std::uint64_t>(*seed);
  }
  if (out.top_p == 0) fields.fail("top_p", "must be above 0");
  if (out.typical_p == 0) fields.fail("typical_p", "must be above 0");
}

// What OpenAI's service keeps beside a request, or asks of itself: nothing of
// it changes an answer, here as little as there.
void read_labels(Fields& fields) {
  for (const char* label : {"user", "safety_identifier", "prompt_cache_key"}) {
    fields.text(label);
  }
  const Json* metadata = fields.find("metadata");
  if (metadata != nullptr && !metadata->is_object()) {
    fields.fail("metadata", "must be an object");
  }
  fields.only("store", false, "answers are not kept");
  const auto tier = fields.text("service_tier");
  if (tier && *tier != "auto" && *tier != "default") {
    fields.fail("service_tier", "is not supported: there is one tier");
  }
  fields.only("modalities", Json::array({"text"}), "answers are text");
}

}  // namespace

void read_common(
    Fields& fields,
    const RequestLimits& limits,
    GenerationRequest& out
) {
  out.model = fields.need_text("model");
  read_stream(fields, out);
  read_sampling(fields, out);
  read_stop(fields, limits, out.stop);
  read_logit_bias(fields, out.logit_bias);
  read_format(fields, out.format);
  out.choices =
      static_cast<int>(fields.integer("n", 1, limits.max_choices).value_or(1));
  out.token_ids = fields.boolean("return_token_ids").value_or(false);
  read_labels(fields);
}

void check_token_ids(const Fields& fields, const GenerationRequest& request) {
  if (request.token_ids && !request.log_probs) {
    fields.fail("return_token_ids", "needs 'logprobs', where the ids stand");
  }
}

}  // namespace hearth::serve
