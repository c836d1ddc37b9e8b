#include "hearth/train/plan/presets.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth::train {
namespace {

Recipe stories() {
  Recipe r;
  r.model.vocab = 2048;
  return r;
}

PlanMachine machine(double gib, double gflops) {
  PlanMachine m;
  m.budget = static_cast<std::size_t>(gib * (1 << 30));
  m.peak_gflops = gflops;
  return m;
}

std::size_t size_of(const char* name, const PlanMachine& m) {
  return choose_size(stories(), preset_named(name), m).size;
}

TEST(Presets, EachIsLargerThanTheOneBeforeIt) {
  const auto m = machine(16, 400);
  EXPECT_LT(size_of("conservative", m), size_of("balanced", m));
  EXPECT_LT(size_of("balanced", m), size_of("aggressive", m));
}

TEST(Presets, HoldToTheirShareOfMemoryAndTime) {
  for (const auto& p : presets()) {
    // Little memory and a fast machine; much memory and a slow one.
    for (const auto& m : {machine(0.5, 1e6), machine(64, 50)}) {
      const auto choice = choose_size(stories(), p, m);
      const double seconds =
          *choice.plan.step_seconds * static_cast<double>(choice.plan.steps);
      EXPECT_LE(seconds, p.hours * 3600) << p.name;
      EXPECT_LE(
          static_cast<double>(choice.plan.memory.total()),
          p.memory_share * static_cast<double>(m.budget)
      ) << p.name;
    }
  }
}

TEST(Presets, AFasterMachineGetsALargerModelAndMoreMemoryToo) {
  EXPECT_LT(
      size_of("balanced", machine(16, 50)),
      size_of("balanced", machine(16, 5e3))
  );
  EXPECT_LT(
      size_of("balanced", machine(0.25, 1e6)),
      size_of("balanced", machine(8, 1e6))
  );
}

TEST(Presets, TrainOnTwentyTokensAParameter) {
  const auto choice =
      choose_size(stories(), preset_named("balanced"), machine(16, 400));
  const double tokens = static_cast<double>(choice.recipe.train.steps) *
                        static_cast<double>(choice.recipe.step_tokens());
  EXPECT_NEAR(
      tokens / static_cast<double>(choice.plan.parameters.all), 20, 0.5
  );
}

TEST(Presets, RefuseOtherNamesAndModelsThatHaveASize) {
  EXPECT_THROW(preset_named("bold"), UsageError);
  Recipe r = stories();
  r.model.from = "model";
  EXPECT_THROW(
      choose_size(r, preset_named("balanced"), machine(16, 400)), UsageError
  );
}

}  // namespace
}  // namespace hearth::train
