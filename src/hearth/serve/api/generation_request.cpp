#include "hearth/serve/api/generation_request.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "hearth/serve/api/api_error.h"

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
    const std::size_t bytes = text.get_ref<const std::string&>().size();
    if (bytes > limits.max_stop_bytes) {
      fields.fail(
          "stop", fmt::format(
                      "may have texts of at most {} bytes, got one of {}",
                      limits.max_stop_bytes, bytes
                  )
      );
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

void read_stream(Fields& fields, bool strict, GenerationRequest& out) {
  out.stream = fields.boolean("stream").value_or(false);
  if (strict && !out.stream && fields.find("stream_options") != nullptr) {
    fields.fail("stream_options", "needs 'stream' to be true");
  }
  read_stream_options(fields, out);
}

void read_format(Fields& fields, bool strict, FormatRequest& out) {
  const Json* value = fields.find("response_format");
  if (value == nullptr) return;
  Fields inner(*value, "response_format");
  const std::string type = inner.need_text("type");
  if (type == "json_object") {
    out.kind = FormatRequest::Kind::json;
  } else if (type == "json_schema") {
    read_schema_format(
        inner.need("json_schema"), "response_format.json_schema", strict, out
    );
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

}  // namespace

void read_stream_options(Fields& fields, GenerationRequest& out) {
  const Json* options = fields.find("stream_options");
  if (options == nullptr) return;
  Fields inner(*options, "stream_options");
  out.include_usage = inner.boolean("include_usage").value_or(false);
  inner.only("include_obfuscation", false, "nothing is padded here");
  inner.finish();
}

void read_sampling(Fields& fields, bool strict, GenerationRequest& out) {
  for (const infer::SamplingField& field : infer::sampling_fields()) {
    const double least = field.request_least, most = field.request_most;
    std::optional<double> value;
    if (field.whole()) {
      // Some clients say -1 for any number of tokens.
      const bool any = !strict && field.key == std::string_view("top_k");
      value = fields.integer(
          field.key, any ? -1 : static_cast<std::int64_t>(least),
          static_cast<std::int64_t>(most)
      );
      if (any && value == -1) value = 0;
    } else {
      value = fields.number(field.key, least, most);
    }
    if (value) field.set(out.sampling, *value);
  }
  if (const auto seed = fields.integer("seed", INT64_MIN, INT64_MAX)) {
    out.seed = static_cast<std::uint64_t>(*seed);
  }
  if (out.sampling.top_p == 0 && !strict) {
    // A share of 0 keeps the most likely token alone.
    out.sampling.top_p = 1, out.sampling.temperature = 0;
  }
  if (const auto fault = out.sampling.fault()) {
    fields.fail(fault->field->key, fault->field->range.must);
  }
}

void read_labels(Fields& fields, bool strict) {
  for (const char* label : {"user", "safety_identifier", "prompt_cache_key"}) {
    fields.text(label);
  }
  const Json* metadata = fields.find("metadata");
  if (metadata != nullptr && !metadata->is_object()) {
    fields.fail("metadata", "must be an object");
  }
  const auto tier = fields.text("service_tier");
  if (strict) {
    fields.only("store", false, "answers are not kept");
    if (tier && *tier != "auto" && *tier != "default") {
      fields.fail("service_tier", "is not supported: there is one tier");
    }
  } else {
    fields.boolean("store");
    // Predicted text, wordiness and how long to keep a prompt are only advice.
    fields.pass_over({"prediction", "prompt_cache_retention"});
    fields.text("verbosity");
  }
  fields.only("modalities", Json::array({"text"}), "answers are text");
}

void read_schema_format(
    const Json& value,
    const std::string& where,
    bool strict,
    FormatRequest& out
) {
  Fields fields(value, where);
  read_schema_format(fields, strict, out);
  fields.finish();
}

void read_schema_format(Fields& fields, bool strict, FormatRequest& out) {
  fields.need_text("name");
  fields.text("description");
  // The grammar holds the text to its schema, strict or not. What a grammar
  // cannot express is refused where the client counts on it.
  out.strict = fields.boolean("strict").value_or(false) || strict;
  const Json* schema = fields.find("schema");
  out.kind = FormatRequest::Kind::schema;
  if (schema != nullptr) {
    out.schema = *schema;
  } else if (strict) {
    fields.fail("schema", "is missing");
  } else {
    out.kind = FormatRequest::Kind::json;
  }
}

void read_max_tokens(
    Fields& fields,
    const RequestLimits& limits,
    std::initializer_list<const char*> keys,
    int least,
    GenerationRequest& out
) {
  constexpr std::int64_t kAny = INT64_MAX;
  const std::int64_t most = limits.strict ? limits.max_tokens : kAny;
  for (const char* key : keys) {
    const auto given = fields.integer(key, least, most);
    if (!given) continue;
    if (out.asked_tokens && *out.asked_tokens != *given) {
      fields.fail(key, fmt::format("and '{}' disagree", *keys.begin()));
    }
    out.asked_tokens = given;
    out.max_tokens =
        static_cast<int>(std::min<std::int64_t>(*given, limits.max_tokens));
  }
}

void read_common(
    Fields& fields,
    const RequestLimits& limits,
    GenerationRequest& out
) {
  out.model = fields.need_text("model");
  read_stream(fields, limits.strict, out);
  read_sampling(fields, limits.strict, out);
  read_stop(fields, limits, out.stop);
  read_logit_bias(fields, out.logit_bias);
  read_format(fields, limits.strict, out.format);
  out.choices =
      static_cast<int>(fields.integer("n", 1, limits.max_choices).value_or(1));
  out.token_ids = fields.boolean("return_token_ids").value_or(false);
  read_labels(fields, limits.strict);
}

void check_token_ids(const Fields& fields, const GenerationRequest& request) {
  if (request.token_ids && !request.log_probs) {
    fields.fail("return_token_ids", "needs 'logprobs', where the ids stand");
  }
}

}  // namespace hearth::serve
