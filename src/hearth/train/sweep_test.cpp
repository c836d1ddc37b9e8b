#include "hearth/train/sweep.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth::train {
namespace {

SweepConfig read(const std::string& text) {
  SweepConfig config;
  ConfigReader(config).apply(parse_yaml(text, "sweep.yaml"));
  return config;
}

TEST(Sweep, EveryCombinationIsNamedByItsValues) {
  const auto runs = expand(read(
      "{base: r.yaml, grid: {optim.lr: [1e-3, 1e-4], model.gate.value: "
      "[0, 0.5, 1]}}"
  ));
  ASSERT_EQ(runs.size(), 6u);
  EXPECT_EQ(runs[0].name, "lr=1e-3,gate.value=0");
  EXPECT_EQ(runs[4].name, "lr=1e-4,gate.value=0.5");
  EXPECT_EQ(runs[4].values[1].first, "model.gate.value");
}

TEST(Sweep, NamesAreFitForFolders) {
  const auto runs =
      expand(read("{base: r.yaml, grid: {data.train: [a/b.jsonl]}}"));
  EXPECT_EQ(runs[0].name, "train=a_b.jsonl");
}

TEST(Sweep, RefusesWhatIsNoGrid) {
  EXPECT_THROW(expand(read("{base: r.yaml}")), UsageError);
  EXPECT_THROW(expand(read("{base: r, grid: {a.b: 3}}")), UsageError);
  EXPECT_THROW(expand(read("{base: r, grid: {a.b: []}}")), UsageError);
  EXPECT_THROW(expand(read("{base: r, grid: {a.b: [1, 1]}}")), UsageError);
}

TEST(Sweep, TheBestHasTheLowestLossAndFailedRunsAreShown) {
  std::vector<SweepResult> results(3);
  results[0].run.name = "a", results[0].valid_loss = 2;
  results[1].run.name = "b", results[1].error = "no, \"really\"";
  results[2].run.name = "c", results[2].valid_loss = 1;
  EXPECT_EQ(best_of(results), 2u);
  EXPECT_EQ(to_json(results)["best"], "c");
  EXPECT_NE(to_csv(results).find("\"no, \"\"really\"\"\""), std::string::npos);
  EXPECT_NE(to_svg(results).find("failed"), std::string::npos);
  EXPECT_NE(to_text(results).find("failed: no"), std::string::npos);
  EXPECT_FALSE(best_of({results[1]}));
}

}  // namespace
}  // namespace hearth::train
