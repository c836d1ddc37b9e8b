// A run as a GPU makes it, on a CPU: the compiled step's functions without the
// compiler, steps sent ahead of their numbers included, held against the run
// that a CPU makes with its own kernels.
#include "hearth/train/step/device_step.h"

#include <gtest/gtest.h>

#include "hearth/ops/op.h"
#include "hearth/train/loop/session_step.h"
#include "hearth/train/loop/trainer_case_test.h"
#include "hearth/train/plan/trial.h"

namespace hearth::train {
namespace {

class DeviceStepTest : public TrainerCase {
 protected:
  // The losses of the steps, and whether each was skipped.
  struct Run {
    std::vector<double> losses;
    std::vector<bool> skipped;
    std::vector<float> weights;
  };
  Run run(ops::Face face, Words words, Watched::See see = {}) {
    const ops::ScopedFace as(face);
    const std::string name = "run" + std::to_string(runs_++);
    Session session = open(words, std::move(see));
    RunDirectory folder(path(name), RunMode::fresh);
    folder.describe({});
    Run out;
    TrainHooks hooks;
    hooks.on_step = [&](const StepMetrics& m) {
      out.losses.push_back(m.loss);
      out.skipped.push_back(m.skipped);
    };
    Trainer(session, folder, hooks).run();
    for (nn::Weight* p : session.model->parameters().trainable()) {
      const auto* w = p->value().data<float>();
      out.weights.insert(out.weights.end(), w, w + p->value().size());
    }
    return out;
  }
  void expect_alike(const Words& words, double tolerance = 2e-4) {
    const Run cpu = run(ops::Face::kernels, words);
    const Run gpu = run(ops::Face::gpu, words);
    ASSERT_EQ(cpu.losses.size(), gpu.losses.size());
    for (std::size_t i = 0; i < cpu.losses.size(); ++i) {
      EXPECT_NEAR(gpu.losses[i], cpu.losses[i], tolerance) << "step " << i;
    }
    double worst = 0;
    for (std::size_t i = 0; i < cpu.weights.size(); ++i) {
      worst =
          std::max<double>(worst, std::abs(cpu.weights[i] - gpu.weights[i]));
    }
    EXPECT_LT(worst, 10 * tolerance);
  }

 private:
  int runs_ = 0;
};

TEST_F(DeviceStepTest, ARunIsWhatACpuMakesOfIt) {
  expect_alike({});
}

TEST_F(DeviceStepTest, SoIsEveryOptimiser) {
  for (const char* name : {"lion", "adafactor", "adamw8bit", "muon"}) {
    SCOPED_TRACE(name);
    expect_alike({std::string("optim.name=") + name, "train.steps=8"}, 2e-3);
  }
}

TEST_F(DeviceStepTest, SoAreMicroBatchesNoiseGatesAndClipping) {
  expect_alike({"train.micro_batch_size=1", "train.steps=6"});
  expect_alike({"train.neftune=5", "train.steps=6"});
  // AdamW does not mind a gradient's size, but for what eps makes of it.
  expect_alike(
      {"optim.clip=0.05", "optim.eps=1", "optim.lr=0.5", "train.steps=6"}
  );
  expect_alike(
      {"model.gate={unit: swish, alpha: cosine, steps: 6}", "train.steps=6"}
  );
}

// What a device decides by itself: nothing moves where a step is unfit, and the
// one sent after it is made of the weights as they were.
TEST_F(DeviceStepTest, AnUnfitStepIsLeftOutOnTheDevice) {
  int seen = 0;
  const Run broken =
      run(ops::Face::gpu, {"train.steps=6", "data.valid=off"},
          [&](const MicroBatch&) { return ++seen == 3 ? NAN : 1.0f; });
  ASSERT_EQ(broken.skipped.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(broken.skipped[i], i == 2);
  for (const float w : broken.weights) ASSERT_TRUE(std::isfinite(w));
}

TEST_F(DeviceStepTest, WhatIsBeyondTheLimitsIsNotCounted) {
  const ops::ScopedFace gpu(ops::Face::gpu);
  Session session = open({});
  const auto optimizer = make_optimizer(session);
  const auto step = make_step(session, *optimizer);
  data::Batch batch;
  data::Loader(session.cache, session.train_loader()).next(batch);
  const StepLimits narrow{.loss = 0.01};
  auto made = step->run(batch, {.rows = 4, .lr = 1e-3, .limits = narrow});
  EXPECT_EQ(made.outcome, StepOutcome::refused);
  EXPECT_EQ(optimizer->steps(), 0);
  made = step->run(batch, {.rows = 4, .lr = 1e-3});
  EXPECT_EQ(made.outcome, StepOutcome::applied);
  EXPECT_EQ(optimizer->steps(), 1);
}

// What `hearth tune` measures is sent ahead as the loop's steps are, and none
// is lost at the end.
TEST_F(DeviceStepTest, ATrialSendsItsStepsAheadAndTakesThemAll) {
  const Words words{"train.steps=5", "data.valid=off"};
  const Run whole = run(ops::Face::gpu, words);
  const ops::ScopedFace gpu(ops::Face::gpu);
  Session session = open(words);
  const auto trial = run_trial(session, {.rows = 4, .steps = 4, .warm_up = 1});
  EXPECT_EQ(trial.steps, 5);
  EXPECT_EQ(trial.rates.size(), 4u);
  EXPECT_NEAR(trial.train_loss, whole.losses.back(), 1e-6);
}

}  // namespace
}  // namespace hearth::train
