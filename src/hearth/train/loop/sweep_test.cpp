#include "hearth/train/loop/sweep.h"

#include <cmath>

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

TEST(Sweep, AValueCanBeSeveralKeysOfASection) {
  const auto runs = expand(read(
      "{base: r.yaml, grid: {model.gate: [{alpha: fixed, value: 0.5}, {alpha: "
      "learnable}], optim.lr: [1e-3]}}"
  ));
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].name, "gate=fixed+0.5,lr=1e-3");
  EXPECT_EQ(runs[0].values[0].second, "{alpha: fixed, value: 0.5}");
  EXPECT_EQ(runs[1].name, "gate=learnable,lr=1e-3");
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
  // Each run has a folder of its own, and all have the process's threads.
  EXPECT_THROW(expand(read("{base: r, grid: {run.dir: [a]}}")), UsageError);
  EXPECT_THROW(expand(read("{base: r, grid: {run.threads: [1]}}")), UsageError);
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

TEST(Sweep, ALossThatIsNotFiniteIsNoResult) {
  std::vector<SweepResult> results(3);
  results[0].run.name = "a", results[0].valid_loss = std::nan("");
  results[1].run.name = "b", results[1].valid_loss = 3;
  results[2].run.name = "c", results[2].train_loss = INFINITY;
  EXPECT_EQ(best_of(results), 1u);
  EXPECT_FALSE(best_of({results[0]}));
  EXPECT_EQ(to_svg(results).find("nan"), std::string::npos);
  EXPECT_EQ(to_svg(results).find("inf"), std::string::npos);
  EXPECT_EQ(to_text(results).find("nan"), std::string::npos);
}

TEST(Sweep, AResultComesBackFromItsJson) {
  SweepResult r;
  r.run.name = "a", r.valid_loss = 2.5, r.tokens_per_s = 10, r.seconds = 3;
  const Json row = to_json({r})["rows"][0];
  const auto again = result_from(r.run, row);
  EXPECT_EQ(again.valid_loss, 2.5);
  EXPECT_FALSE(again.train_loss);
  EXPECT_EQ(again.seconds, 3);
  // As a run that diverged once left it.
  const auto broken = parse_json(R"({"valid_loss": null})", "row");
  EXPECT_FALSE(result_from(r.run, broken).score());
}

}  // namespace
}  // namespace hearth::train
