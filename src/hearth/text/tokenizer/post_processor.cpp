#include "hearth/text/tokenizer/post_processor.h"

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/text/tokenizer/component_json.h"

namespace hearth::text {
namespace {

constexpr std::string_view kWhat = "post_processor";
constexpr std::int64_t kMaxLength = std::int64_t{1} << 30;
using Ids = std::vector<std::int32_t>;

std::int32_t checked_id(const Json& value) {
  if (!value.is_number_integer() || value.get<std::int64_t>() < 0 ||
      value.get<std::int64_t>() > Vocabulary::kMaxId) {
    throw FormatError("post_processor: a token id is out of range");
  }
  return value.get<std::int32_t>();
}

void wrap(Ids before, const Ids& after, TokenizerParts& parts) {
  before.insert(before.end(), parts.prefix.begin(), parts.prefix.end());
  parts.prefix = std::move(before);
  parts.suffix.insert(parts.suffix.end(), after.begin(), after.end());
}

Ids special_ids(const Json& json, const std::string& name) {
  Ids out;
  if (json.contains("special_tokens") && json["special_tokens"].is_object() &&
      json["special_tokens"].contains(name)) {
    const Json& token = json["special_tokens"][name];
    for (const Json& id : array_field(token, kWhat, "ids")) {
      out.push_back(checked_id(id));
    }
    return out;
  }
  throw FormatError(
      fmt::format("post_processor: special token \"{}\" is not listed", name)
  );
}

void read_template(const Json& json, TokenizerParts& parts) {
  Ids before, after;
  int texts = 0;
  for (const Json& item : array_field(json, kWhat, "single")) {
    if (item.is_object() && item.contains("Sequence")) {
      ++texts;
      continue;
    }
    if (!item.is_object() || !item.contains("SpecialToken")) {
      throw FormatError("post_processor: unknown item in \"single\"");
    }
    const Json& special = item["SpecialToken"];
    const Ids ids = special_ids(json, string_field(special, kWhat, "id"));
    Ids& side = texts ? after : before;
    side.insert(side.end(), ids.begin(), ids.end());
  }
  if (texts != 1) {
    throw FormatError("post_processor: \"single\" must hold the text once");
  }
  wrap(std::move(before), after, parts);
}

// ["token", id]
Ids pair_id(const Json& json, const char* key) {
  const Json& pair = array_field(json, kWhat, key);
  if (pair.size() != 2) throw FormatError("post_processor: expected a pair");
  return {checked_id(pair[1])};
}

bool is_left(const Json& json, std::string_view what) {
  if (!json.contains("direction")) return false;
  const std::string name = string_field(json, what, "direction");
  if (name != "Left" && name != "Right") {
    throw FormatError(
        fmt::format("{}: direction \"{}\" is not known", what, name)
    );
  }
  return name == "Left";
}

std::size_t length_field(
    const Json& json,
    std::string_view what,
    const char* key
) {
  const std::int64_t value = int_field(json, what, key, 0);
  if (value < 0 || value > kMaxLength) {
    throw FormatError(fmt::format("{}: \"{}\" is out of range", what, key));
  }
  return static_cast<std::size_t>(value);
}

}  // namespace

void read_post_processor(const Json& json, TokenizerParts& parts) {
  if (json.is_null()) return;
  const std::string type = component_type(json, kWhat);
  if (type == "ByteLevel") return;  // it moves offsets only
  if (type == "TemplateProcessing") return read_template(json, parts);
  if (type == "Sequence") {
    for (const Json& item : array_field(json, kWhat, "processors")) {
      read_post_processor(item, parts);
    }
    return;
  }
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    return wrap(pair_id(json, "cls"), pair_id(json, "sep"), parts);
  }
  unknown_type(kWhat, type);
}

std::optional<Truncation> read_truncation(const Json& json) {
  if (json.is_null()) return std::nullopt;
  if (!json.is_object()) throw FormatError("truncation must be an object");
  Truncation out{
      length_field(json, "truncation", "max_length"),
      is_left(json, "truncation")
  };
  if (json.contains("strategy")) {
    const std::string name = string_field(json, "truncation", "strategy");
    if (name != "LongestFirst" && name != "OnlyFirst" && name != "OnlySecond") {
      throw FormatError(
          fmt::format("truncation: strategy \"{}\" is not known", name)
      );
    }
    out.second_only = name == "OnlySecond";
  }
  return out;
}

std::optional<Padding> read_padding(const Json& json) {
  if (json.is_null()) return std::nullopt;
  if (!json.is_object()) throw FormatError("padding must be an object");
  Padding out;
  const auto strategy = json.find("strategy");
  if (strategy != json.end() && strategy->is_object()) {
    out.length = length_field(*strategy, "padding", "Fixed");
  } else if (strategy == json.end() || *strategy != "BatchLongest") {
    throw FormatError("padding: strategy is not known");
  }
  out.multiple = length_field(json, "padding", "pad_to_multiple_of");
  out.left = is_left(json, "padding");
  if (json.contains("pad_id")) out.id = checked_id(json["pad_id"]);
  return out;
}

}  // namespace hearth::text
