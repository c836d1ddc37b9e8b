#pragma once
// adapter_config.json of PEFT's LoRA adapters. What changes the computation
// and is not understood is refused by name.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/json.h"

namespace hearth::io {

struct PeftConfig {
  std::string base_model, task_type = "CAUSAL_LM";
  std::int64_t rank = 8;
  double alpha = 8, dropout = 0;
  // Names a module ends in ("q_proj"), or one pattern in their place.
  std::vector<std::string> targets;
  std::string target_pattern;
  std::vector<std::string> modules_to_save;
  // Ranks of modules whose name ends in the key; the other modules have rank
  // and alpha.
  std::map<std::string, std::int64_t> rank_pattern;
  std::map<std::string, double> alpha_pattern;
  bool use_dora = false, use_rslora = false;
  bool fan_in_fan_out = false;  // the base keeps weights as [in, out]

  std::int64_t rank_of(std::string_view module) const;
  // What B·A is multiplied with.
  double scale_of(std::string_view module) const;
  bool is_target(std::string_view module) const;
};

// `name` is the file, for messages. Throws FormatError.
PeftConfig parse_peft_config(const Json& json, const std::string& name);
Json to_json(const PeftConfig& config);

}  // namespace hearth::io
