#include "hearth/models/config_keys.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::models {
namespace {

constexpr std::int64_t kLargestSize = std::int64_t{1} << 28;

// What every config.json may carry and no forward pass reads.
constexpr std::array<std::string_view, 33> kAlwaysIgnored{
    "architectures",
    "model_type",
    "torch_dtype",
    "dtype",
    "transformers_version",
    "use_cache",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "unk_token_id",
    "sep_token_id",
    "initializer_range",
    "pretraining_tp",
    "name_or_path",
    "return_dict",
    "output_hidden_states",
    "output_attentions",
    "id2label",
    "label2id",
    "problem_type",
    "chunk_size_feed_forward",
    "is_encoder_decoder",
    "tokenizer_class",
    "task_specific_params",
    "auto_map",
    "quantization",
    "quantization_config",
    "bad_words_ids",
    "attention_dropout",
    "is_llama_config",
    "rope_interleaved",
    "transformers.js_config",
    "_name_or_path",
};

// As PyTorch names them.
constexpr std::array<std::string_view, 10> kNumberTypes{
    "float32", "float",  "float16",       "half",        "bfloat16",
    "float64", "double", "float8_e4m3fn", "float8_e5m2", "auto",
};

bool says_nothing(const Json& v) {
  return v.is_null() || (v.is_boolean() && !v.get<bool>()) ||
         ((v.is_array() || v.is_object()) && v.empty());
}

}  // namespace

std::vector<std::int32_t> read_token_ids(
    const Json& config,
    std::string_view key,
    const std::string& file
) {
  std::vector<std::int32_t> ids;
  const auto at = config.find(key);
  if (at == config.end() || at->is_null()) return ids;
  const auto take = [&](const Json& v) {
    // What does not fit is out of range as well.
    const std::int64_t id =
        !v.is_number_integer() ? INT64_MIN
        : v.is_number_unsigned() && v.get<std::uint64_t>() > INT32_MAX
            ? INT64_MAX
            : v.get<std::int64_t>();
    if (id < -1 || id > INT32_MAX) {
      throw FormatError::at(
          file, 0,
          fmt::format(
              "'{}' must be a token's id or a list of them, got {}", key,
              to_json_line(*at).substr(0, 60)
          )
      );
    }
    if (id >= 0) ids.push_back(static_cast<std::int32_t>(id));
  };
  if (at->is_array()) {
    for (const Json& v : *at) take(v);
  } else {
    take(*at);
  }
  return ids;
}

ConfigKeys::ConfigKeys(const Json& config, std::string file)
    : config_(config), file_(std::move(file)) {
  if (!config.is_object()) {
    throw FormatError::at(file_, 0, "a model's config must be a JSON object");
  }
  for (const auto key : kAlwaysIgnored) seen_.emplace(key);
}

const Json* ConfigKeys::find(std::string_view key) {
  seen_.emplace(key);
  const auto at = config_.find(key);
  return at == config_.end() || at->is_null() ? nullptr : &*at;
}

bool ConfigKeys::has(std::string_view key) const {
  const auto at = config_.find(key);
  return at != config_.end() && !at->is_null();
}

void ConfigKeys::refuse(std::string_view key, std::string_view why) const {
  throw FormatError::at(file_, 0, fmt::format("'{}' {}", key, why));
}

std::int64_t ConfigKeys::integer(std::string_view key) {
  const Json* v = find(key);
  if (v == nullptr) refuse(key, "must be given, got nothing");
  if (!v->is_number_integer()) {
    refuse(key, "must be an integer, got " + to_json_line(*v));
  }
  return v->get<std::int64_t>();
}

std::int64_t ConfigKeys::integer(std::string_view key, std::int64_t fallback) {
  return find(key) == nullptr ? fallback : integer(key);
}

int ConfigKeys::size(std::string_view key) {
  const std::int64_t v = integer(key);
  if (v < 1 || v > kLargestSize) {
    refuse(
        key, fmt::format("must be between 1 and {}, got {}", kLargestSize, v)
    );
  }
  return static_cast<int>(v);
}

int ConfigKeys::size(std::string_view key, int fallback) {
  return find(key) == nullptr ? fallback : size(key);
}

double ConfigKeys::number(std::string_view key, double fallback) {
  const Json* v = find(key);
  if (v == nullptr) return fallback;
  if (!v->is_number() || !std::isfinite(v->get<double>())) {
    refuse(key, "must be a number, got " + to_json_line(*v));
  }
  return v->get<double>();
}

float ConfigKeys::epsilon(std::string_view key, double fallback) {
  const double v = number(key, fallback);
  if (v < 0 || v > 1) {
    refuse(key, fmt::format("must be between 0 and 1, got {}", v));
  }
  return static_cast<float>(v);
}

void ConfigKeys::check_common() {
  for (const auto* key : {"torch_dtype", "dtype"}) {
    const std::string type = word(key, "auto");
    std::string_view name = type;
    if (name.starts_with("torch.")) name.remove_prefix(6);
    if (std::ranges::find(kNumberTypes, name) != kNumberTypes.end()) continue;
    refuse(
        key, fmt::format(
                 "must be a type of numbers such as bfloat16, got '{}'", type
             )
    );
  }
  for (const auto* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    read_token_ids(config_, key, file_);
  }
  check_quantization();
}

// MLX writes its own under two names; what else stands here is of a method that
// changes the weights in a way nobody here undoes.
void ConfigKeys::check_quantization() const {
  constexpr const char* kKey = "quantization_config";
  const auto at = config_.find(kKey);
  if (at == config_.end() || says_nothing(*at)) return;
  const bool named = at->is_object() && at->contains("quant_method");
  if (!named && config_.contains("quantization")) return;
  refuse(
      kKey, fmt::format(
                "has a method that is not read: {}; weights must be plain, "
                "MLX's or of a GGUF file",
                to_json_line(named ? (*at)["quant_method"] : *at).substr(0, 60)
            )
  );
}

bool ConfigKeys::boolean(std::string_view key, bool fallback) {
  const Json* v = find(key);
  if (v == nullptr) return fallback;
  if (!v->is_boolean()) {
    refuse(key, "must be true or false, got " + to_json_line(*v));
  }
  return v->get<bool>();
}

std::string ConfigKeys::word(std::string_view key, std::string fallback) {
  const Json* v = find(key);
  if (v == nullptr) return fallback;
  if (!v->is_string()) {
    refuse(key, "must be a string, got " + to_json_line(*v));
  }
  return v->get<std::string>();
}

std::vector<std::string> ConfigKeys::words(std::string_view key) {
  const Json* v = find(key);
  std::vector<std::string> out;
  if (v == nullptr) return out;
  if (!v->is_array()) refuse(key, "must be a list of strings");
  for (const Json& item : *v) {
    if (!item.is_string()) refuse(key, "must be a list of strings");
    out.push_back(item.get<std::string>());
  }
  return out;
}

const Json& ConfigKeys::raw(std::string_view key) {
  static const Json kNull;
  const Json* v = find(key);
  return v == nullptr ? kNull : *v;
}

void ConfigKeys::ignore(std::initializer_list<std::string_view> keys) {
  for (const auto key : keys) seen_.emplace(key);
}

void ConfigKeys::require(std::string_view key, const Json& value) {
  const Json* v = find(key);
  if (v != nullptr && *v != value) {
    refuse(
        key,
        fmt::format("must be {}, got {}", to_json_line(value), to_json_line(*v))
    );
  }
}

void ConfigKeys::finish() const {
  for (const auto& [key, value] : config_.items()) {
    if (key.starts_with('_') || seen_.contains(key) || says_nothing(value)) {
      continue;
    }
    refuse(
        key, fmt::format(
                 "is not understood for this architecture, and {} might change "
                 "what the model computes; remove it if you know it does not",
                 to_json_line(value).substr(0, 60)
             )
    );
  }
}

}  // namespace hearth::models
