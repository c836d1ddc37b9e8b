#include "hearth/optim/optim_config.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth::optim {
namespace {

struct Recipe {
  OptimConfig optim;
  void fields(FieldVisitor& v) { v("optim", optim, "optimiser"); }
};

OptimConfig read(const std::string& yaml) {
  Recipe r;
  ConfigReader(r).apply(parse_yaml(yaml, "r.yaml"));
  return r.optim;
}

TEST(OptimConfig, ReadsTheRecipeOfTheManual) {
  const auto c = read(
      "optim: {name: adamw, lr: 1.0e-3, schedule: cosine, warmup: 20, "
      "weight_decay: 0.1, clip: 1.0}"
  );
  EXPECT_EQ(c.name, "adamw");
  EXPECT_EQ(c.lr, 1e-3);
  EXPECT_EQ(c.warmup, 20);
  EXPECT_EQ(c.betas_or_default(), (std::pair{0.9, 0.95}));
}

TEST(OptimConfig, ReadsWhatBelongsToOneOptimiser) {
  const auto c = read(
      "optim: {name: muon, muon: {momentum: 0.9, exclude: [head]}, "
      "betas: [0.8, 0.9], no_decay: [q_proj, '*.bias']}"
  );
  EXPECT_EQ(c.muon.momentum, 0.9);
  EXPECT_EQ(c.muon.exclude, (std::vector<std::string>{"head"}));
  EXPECT_EQ(c.betas_or_default(), (std::pair{0.8, 0.9}));
  EXPECT_EQ(c.no_decay.size(), 2u);
  EXPECT_EQ(
      read("optim: {name: lion}").betas_or_default(), (std::pair{0.9, 0.99})
  );
}

TEST(OptimConfig, RefusesValuesOutOfRange) {
  for (const char* wrong :
       {"{name: adam}", "{lr: 0}", "{lr: -1}", "{schedule: step}",
        "{warmup: -1}", "{min_lr: 1.5}", "{weight_decay: -0.1}", "{clip: -1}",
        "{betas: [0.9, 1.0]}", "{eps: 0}", "{muon: {steps: 0}}",
        "{learning_rate: 1}"}) {
    EXPECT_THROW(read(std::string("optim: ") + wrong), FormatError) << wrong;
  }
  EXPECT_THROW(read("optim: {betas: [0.9]}").check(), UsageError);
}

}  // namespace
}  // namespace hearth::optim
