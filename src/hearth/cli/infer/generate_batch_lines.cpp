#include "hearth/cli/infer/generate_batch_lines.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/hash.h"
#include "hearth/base/random.h"
#include "hearth/io/strict_json.h"
#include "hearth/serve/api/api_error.h"
#include "hearth/serve/api/generation_request.h"
#include "hearth/text/stop_text.h"

namespace hearth::cli {
namespace {

using serve::Fields;

std::optional<int> whole(Fields& fields, const char* key, int least) {
  const auto value = fields.integer(key, least, INT32_MAX);
  if (!value) return std::nullopt;
  return static_cast<int>(*value);
}

std::optional<double> number(Fields& fields, const char* key) {
  constexpr double kMost = std::numeric_limits<double>::max();
  return fields.number(key, -kMost, kMost);
}

Json id_of(Fields& fields, long line) {
  const Json* id = fields.find("id");
  if (id == nullptr) return line;
  if (!id->is_string() && !id->is_number_integer()) {
    fields.fail("id", "must be a string or a whole number");
  }
  return *id;
}

std::optional<std::uint64_t> seed_of(Fields& fields) {
  const Json* seed = fields.find("seed");
  if (seed == nullptr) return std::nullopt;
  if (!seed->is_number_unsigned()) {
    fields.fail(
        "seed", fmt::format(
                    "must be a whole number from 0 to {}, got {}", UINT64_MAX,
                    serve::shown(*seed)
                )
    );
  }
  return seed->get<std::uint64_t>();
}

std::optional<std::vector<std::string>> stops_of(Fields& fields) {
  const Json* value = fields.find("stop");
  if (value == nullptr) return std::nullopt;
  std::vector<std::string> out;
  for (const Json& stop : value->is_array() ? *value : Json::array({*value})) {
    if (!stop.is_string() || stop.get_ref<const std::string&>().empty()) {
      fields.fail("stop", "must be a text or a list of texts, none empty");
    }
    const std::size_t bytes = stop.get_ref<const std::string&>().size();
    if (bytes > text::kMaxStopBytes) {
      fields.fail(
          "stop", fmt::format(
                      "must have texts of at most {} bytes, got one of {}",
                      text::kMaxStopBytes, bytes
                  )
      );
    }
    out.push_back(stop.get<std::string>());
  }
  return out;
}

// {"1234": -5, "99": "-inf"}: JSON has no infinity of its own.
std::optional<std::map<std::int32_t, float>> bias_of(Fields& fields) {
  const Json* value = fields.find("logit_bias");
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) {
    fields.fail("logit_bias", "must be an object of token ids and numbers");
  }
  std::map<std::int32_t, float> out;
  for (const auto& [key, bias] : value->items()) {
    std::int32_t id = 0;
    const char* end = key.data() + key.size();
    const auto [at, error] = std::from_chars(key.data(), end, id);
    if (key.empty() || error != std::errc() || id < 0 || at != end) {
      fields.fail("logit_bias", "must have token ids as its keys");
    }
    const bool forbids = bias == "-inf";
    const auto off = bias.is_number() ? bias.get<float>() : NAN;
    if (!forbids && !std::isfinite(off)) {
      fields.fail("logit_bias", "must have numbers or \"-inf\" as its values");
    }
    if (!out.emplace(id, forbids ? -INFINITY : off).second) {
      fields.fail("logit_bias", "must name each token once");
    }
  }
  return out;
}

void read_sampling(Fields& fields, BatchLine& out) {
  const auto options = infer::sampling_fields();
  for (std::size_t i = 0; i < options.size(); ++i) {
    const char* key = options[i].key;
    if (options[i].whole()) {
      out.sampling.give(i, whole(fields, key, 0));
    } else {
      out.sampling.give(i, number(fields, key));
    }
  }
  out.seed = seed_of(fields);
  infer::Request request;
  out.apply(request);
  if (const auto fault = request.sampling.fault()) {
    fields.fail(
        fault->field->key,
        fmt::format("{}, got {}", fault->field->range.must, fault->got)
    );
  }
}

BatchLine line_of(const Json& json, long number) {
  Fields fields(json, "");
  BatchLine out;
  out.line = number;
  out.id = id_of(fields, number);
  out.prompt = fields.text("prompt");
  const Json* messages = fields.find("messages");
  if (messages != nullptr) out.messages = serve::read_messages(*messages);
  if (out.prompt.has_value() == (messages != nullptr)) {
    throw serve::ApiError(
        400, "a request must have one of prompt and messages"
    );
  }
  if (const Json* tools = fields.find("tools")) {
    out.tools = serve::read_tools(*tools);
  }
  out.max_tokens = whole(fields, "max_tokens", 1);
  out.log_probs = whole(fields, "logprobs", 0);
  out.stop = stops_of(fields);
  out.logit_bias = bias_of(fields);
  read_sampling(fields, out);
  fields.finish();
  return out;
}

BatchLine parse_line(
    std::string_view text,
    const std::string& file,
    long number
) {
  const auto refuse = [&](std::string_view what) {
    throw FormatError::at(file, number, what);
  };
  // It would end the document for the parser, and the rest pass unseen.
  if (text.find('\0') != text.npos) refuse("a request must not hold NUL bytes");
  const Json json = parse_json(text, file, {}, number);
  auto sorted = io::parse_strict_json(text, fmt::format("{}:{}", file, number));
  if (!json.is_object()) refuse("a request must be an object");
  try {
    BatchLine out = line_of(json, number);
    sorted.erase("id");
    out.asks = fmt::format("{:016x}", hash64(sorted.dump()));
    return out;
  } catch (const serve::ApiError& e) {
    throw FormatError::at(file, number, e.what());
  }
}

template <class T, class From>
void put(T& to, const std::optional<From>& from) {
  if (from) to = *from;
}

}  // namespace

void BatchLine::apply(infer::Request& request) const {
  put(request.max_tokens, max_tokens);
  if (log_probs) request.log_probs = log_probs;
  put(request.stop, stop);
  put(request.logit_bias, logit_bias);
  infer::SamplerOptions& s = request.sampling;
  sampling.apply(s);
  // 53 bits, which every reader of JSON keeps.
  s.seed = seed ? *seed : RandomKey(s.seed).fold(to_json_line(id)).bits() >> 11;
}

void each_text_line(
    std::string_view text,
    const std::function<void(std::string_view line, long number)>& body
) {
  std::size_t begin = 0;
  for (long number = 1; begin < text.size(); ++number) {
    const auto end = std::min(text.find('\n', begin), text.size());
    const auto line = text.substr(begin, end - begin);
    if (line.find_first_not_of(" \t\r") != line.npos) body(line, number);
    begin = end + 1;
  }
}

std::vector<BatchLine> parse_batch(
    const std::string& text,
    const std::string& file
) {
  std::vector<BatchLine> out;
  std::set<std::string> ids;
  each_text_line(text, [&](std::string_view line, long number) {
    out.push_back(parse_line(line, file, number));
    const std::string id = to_json_line(out.back().id);
    if (!ids.insert(id).second) {
      throw FormatError::at(
          file, number, fmt::format("an earlier line has the id {} too", id)
      );
    }
  });
  return out;
}

}  // namespace hearth::cli
