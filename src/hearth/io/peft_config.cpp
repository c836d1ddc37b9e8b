#include "hearth/io/peft_config.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/io/message_impl.h"

namespace hearth::io {
namespace {

// Keys that say how an adapter was made or kept, not what it computes.
constexpr std::array<std::string_view, 19> kInert{
    "auto_mapping",
    "peft_version",
    "revision",
    "inference_mode",
    "exclude_modules",
    "layers_to_transform",
    "layers_pattern",
    "megatron_core",
    "loftq_config",
    "eva_config",
    "corda_config",
    "lora_ga_config",
    "qalora_group_size",
    "runtime_config",
    "ensure_weight_tying",
    "base_model_name_or_path",
    "task_type",
    "lora_dropout",
    "peft_type",
};
// Keys that this file reads.
constexpr std::array<std::string_view, 11> kRead{
    "r",
    "lora_alpha",
    "target_modules",
    "modules_to_save",
    "rank_pattern",
    "alpha_pattern",
    "use_dora",
    "use_rslora",
    "fan_in_fan_out",
    "bias",
    "init_lora_weights",
};
// Initialisations that leave the base model's weights as they are.
constexpr std::array<std::string_view, 3> kPlainStarts{
    "gaussian", "eva", "orthogonal"
};

template <std::size_t N>
bool among(
    const std::array<std::string_view, N>& words,
    std::string_view word
) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool ends_in(std::string_view module, std::string_view key) {
  if (!module.ends_with(key)) return false;
  return module.size() == key.size() ||
         module[module.size() - key.size() - 1] == '.';
}

class Parser {
 public:
  Parser(const Json& json, const std::string& name)
      : json_(json), name_(name) {}

  PeftConfig parse() const {
    if (!json_.is_object()) fail("must be a JSON object");
    refuse_unknown();
    PeftConfig out;
    out.base_model = text("base_model_name_or_path", "");
    out.task_type = text("task_type", "CAUSAL_LM");
    out.rank = whole(json_.value("r", Json(8)), "r");
    out.alpha = number(json_.value("lora_alpha", Json(8)), "lora_alpha");
    out.dropout =
        number(json_.value("lora_dropout", Json(0.0)), "lora_dropout");
    out.use_dora = flag("use_dora");
    out.use_rslora = flag("use_rslora");
    out.fan_in_fan_out = flag("fan_in_fan_out");
    if (set("target_modules") && json_["target_modules"].is_string()) {
      out.target_pattern = json_["target_modules"].get<std::string>();
    } else {
      out.targets = texts("target_modules");
    }
    out.modules_to_save = texts("modules_to_save");
    patterns("rank_pattern", [&](const std::string& key, const Json& value) {
      out.rank_pattern[key] = whole(value, "rank_pattern");
    });
    patterns("alpha_pattern", [&](const std::string& key, const Json& value) {
      out.alpha_pattern[key] = number(value, "alpha_pattern");
    });
    return out;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw FormatError::at(name_, 0, what);
  }
  // Present, and not with a value that means "no".
  bool set(const std::string& key) const {
    const auto it = json_.find(key);
    if (it == json_.end() || it->is_null() || *it == false) return false;
    const bool nothing =
        (it->is_structured() || it->is_string()) && (it->empty() || *it == "");
    return !nothing;
  }
  void refuse_unknown() const {
    if (text("peft_type", "") != "LORA") {
      fail(
          fmt::format(
              "peft_type must be LORA, got {}", in_quotes(text("peft_type", ""))
          )
      );
    }
    if (text("bias", "none") != "none") {
      fail("bias must be none: adapters with trained biases are not known");
    }
    for (const auto& [key, value] : json_.items()) {
      if (!among(kInert, key) && !among(kRead, key) && set(key)) {
        fail(
            fmt::format(
                "{} is set, and what it asks for is not known", in_quotes(key)
            )
        );
      }
    }
    const auto start = json_.find("init_lora_weights");
    if (start != json_.end() && start->is_string() &&
        !among(kPlainStarts, start->get_ref<const std::string&>())) {
      fail(
          fmt::format(
              "init_lora_weights {} changes the base model's weights, and is "
              "not known",
              in_quotes(start->get_ref<const std::string&>())
          )
      );
    }
  }
  std::string text(const std::string& key, const char* fallback) const {
    const auto it = json_.find(key);
    if (it == json_.end() || it->is_null()) return fallback;
    if (!it->is_string()) fail(key + " must be a string");
    return it->get<std::string>();
  }
  bool flag(const std::string& key) const {
    const auto it = json_.find(key);
    if (it == json_.end() || it->is_null()) return false;
    if (!it->is_boolean()) fail(key + " must be true or false");
    return it->get<bool>();
  }
  std::int64_t whole(const Json& value, const char* key) const {
    const bool ok = value.is_number_integer() && value >= 1 && value <= 65536;
    if (!ok) fail(fmt::format("{} must be a rank", key));
    return value.get<std::int64_t>();
  }
  double number(const Json& value, const char* key) const {
    if (!value.is_number()) fail(fmt::format("{} must be a number", key));
    return value.get<double>();
  }
  std::vector<std::string> texts(const std::string& key) const {
    std::vector<std::string> out;
    if (!set(key)) return out;
    if (!json_[key].is_array()) fail(key + " must be a list of names");
    for (const Json& item : json_[key]) {
      if (!item.is_string()) fail(key + " must be a list of names");
      out.push_back(item.get<std::string>());
    }
    return out;
  }
  template <class Each>
  void patterns(const std::string& key, Each each) const {
    if (!set(key)) return;
    if (!json_[key].is_object()) fail(key + " must be an object");
    for (const auto& [name, value] : json_[key].items()) {
      if (name.find_first_of("^$*+?()[]{}|\\") != name.npos) {
        fail(
            fmt::format(
                "{} {} must be the end of a module's name: patterns are not "
                "known",
                key, in_quotes(name)
            )
        );
      }
      each(name, value);
    }
  }

  const Json& json_;
  const std::string& name_;
};

}  // namespace

std::int64_t PeftConfig::rank_of(std::string_view module) const {
  for (const auto& [key, value] : rank_pattern) {
    if (ends_in(module, key)) return value;
  }
  return rank;
}

double PeftConfig::scale_of(std::string_view module) const {
  double own = alpha;
  for (const auto& [key, value] : alpha_pattern) {
    if (ends_in(module, key)) own = value;
  }
  const auto r = static_cast<double>(rank_of(module));
  return own / (use_rslora ? std::sqrt(r) : r);
}

bool PeftConfig::is_target(std::string_view module) const {
  if (!target_pattern.empty()) return true;
  return std::any_of(targets.begin(), targets.end(), [&](const auto& target) {
    return ends_in(module, target);
  });
}

PeftConfig parse_peft_config(const Json& json, const std::string& name) {
  return Parser(json, name).parse();
}

Json to_json(const PeftConfig& config) {
  Json out = {
      {"peft_type", "LORA"},
      {"task_type", config.task_type},
      {"base_model_name_or_path", config.base_model},
      {"r", config.rank},
      {"lora_alpha", config.alpha},
      {"lora_dropout", config.dropout},
      {"target_modules", config.targets},
      {"modules_to_save", nullptr},
      {"rank_pattern", config.rank_pattern},
      {"alpha_pattern", config.alpha_pattern},
      {"use_dora", config.use_dora},
      {"use_rslora", config.use_rslora},
      {"fan_in_fan_out", config.fan_in_fan_out},
      {"bias", "none"},
      {"init_lora_weights", true},
      {"inference_mode", true},
  };
  if (config.alpha == std::floor(config.alpha)) {
    out["lora_alpha"] = static_cast<std::int64_t>(config.alpha);
  }
  if (!config.target_pattern.empty()) {
    out["target_modules"] = config.target_pattern;
  }
  if (!config.modules_to_save.empty()) {
    out["modules_to_save"] = config.modules_to_save;
  }
  return out;
}

}  // namespace hearth::io
