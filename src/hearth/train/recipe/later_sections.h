#pragma once
// Sections of a recipe that training itself does not read: they are parsed,
// checked and carried in the run's config for the commands that will. What
// would have to change training, and does not yet, is refused by
// Recipe::check().
#include <cstdint>
#include <string>
#include <vector>

#include "hearth/base/config.h"

namespace hearth::train {

// Training aware of quantisation.
struct QuantSection {
  bool enabled = false;
  double start_fraction = 0.8;
  std::int64_t weight_bits = 8, act_bits = 16;
  std::string kv_cache_precision = "fp16";

  void fields(FieldVisitor& v);
};

// Core ML export.
struct CoreMlSection {
  std::vector<std::int64_t> enumerate_shapes;  // empty: as trained
  bool mlprogram = true;
  std::string compute_units = "all";

  void fields(FieldVisitor& v);
};

// Answers scored by a teacher.
struct RfaiSection {
  std::int64_t num_samples_per_prompt = 2;
  std::int64_t max_new_tokens = 256;
  std::int64_t prompts_per_batch = 8;

  void fields(FieldVisitor& v);
};

struct DistillSection {
  std::string teacher;
  std::string divergence = "forward_kl";
  double temperature = 1;
  double weight = 0.5;

  void fields(FieldVisitor& v);
};

struct HardwareSection {
  std::string profile = "auto";

  void fields(FieldVisitor& v);
};

}  // namespace hearth::train
