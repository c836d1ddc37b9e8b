#pragma once
// The `optim` section of a recipe.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hearth/base/config.h"

namespace hearth::optim {

// Muon, for the matrices inside the model; the rest is AdamW's.
struct MuonConfig {
  double momentum = 0.95;
  bool nesterov = true;
  std::int64_t steps = 5;
  double rms = 0.2;
  std::string precision = "bf16";
  std::vector<std::string> exclude = {"embed_tokens", "wte", "wpe", "lm_head"};

  void fields(FieldVisitor& v);
};

struct AdafactorConfig {
  double decay_rate = 0.8;
  double clip = 1;
  double momentum = 0;
  bool scale_by_size = false;

  void fields(FieldVisitor& v);
};

struct OptimConfig {
  std::string name = "adamw";
  double lr = 3e-4;
  std::string schedule = "cosine";
  double warmup = 0;  // steps, or below 1 a share of them
  double decay_fraction = 0.2;
  double min_lr = 0;  // as a share of lr
  double weight_decay = 0.1;
  double clip = 1;
  std::vector<double> betas;
  double eps = 1e-8;
  bool decay_embeddings = true;
  std::vector<std::string> no_decay;
  MuonConfig muon;
  AdafactorConfig adafactor;

  void fields(FieldVisitor& v);
  // Throws UsageError for what single fields cannot see.
  void check() const;
  // betas, or what is usual for the optimiser where none are given.
  std::pair<double, double> betas_or_default() const;
};

}  // namespace hearth::optim
