// The one step: what it is told before, what it leaves out, and that a trial
// makes the very steps that the loop makes.
#include "hearth/train/step/step.h"

#include <limits>

#include "hearth/train/loop/session_step.h"
#include "hearth/train/loop/trainer_case_test.h"
#include "hearth/train/plan/trial.h"

namespace hearth::train {
namespace {

class StepTest : public TrainerCase {
 protected:
  struct One {
    Session session;
    std::unique_ptr<optim::Optimizer> optimizer = make_optimizer(session);
    std::unique_ptr<Step> step = make_step(session, *optimizer);
    data::Batch batch;

    explicit One(Session s) : session(std::move(s)) {
      data::Loader(session.cache, session.train_loader()).next(batch);
    }
    std::vector<float> weights() const {
      std::vector<float> all;
      for (nn::Weight* p : session.model->parameters().trainable()) {
        const auto* w = p->value().data<float>();
        all.insert(all.end(), w, w + p->value().size());
      }
      return all;
    }
  };
};

TEST_F(StepTest, WhatIsBeyondTheLimitsLeavesTheWeightsAlone) {
  One one(open({}));
  const auto before = one.weights();
  const auto run = [&](StepLimits limits) {
    return one.step->run(one.batch, {.rows = 4, .lr = 1e-3, .limits = limits});
  };
  const auto refused = run({.loss = 0.01});
  EXPECT_EQ(refused.outcome, StepOutcome::refused);
  EXPECT_GT(refused.norm, 0);
  EXPECT_EQ(refused.weight, static_cast<double>(one.batch.trained));
  EXPECT_EQ(run({.norm = refused.norm / 2}).outcome, StepOutcome::refused);
  EXPECT_EQ(one.weights(), before);
  const auto made = run({.loss = refused.loss, .norm = refused.norm});
  EXPECT_EQ(made.outcome, StepOutcome::applied);
  EXPECT_EQ(made.loss, refused.loss);
  EXPECT_NE(one.weights(), before);
}

TEST_F(StepTest, ABatchOfNothingIsNoUpdate) {
  One one(open({}));
  const auto before = one.weights();
  std::fill(one.batch.weights.begin(), one.batch.weights.end(), 0.0f);
  const auto made = one.step->run(one.batch, {.rows = 4, .lr = 1});
  EXPECT_EQ(made.outcome, StepOutcome::weightless);
  EXPECT_EQ(one.weights(), before);
}

TEST_F(StepTest, AnOverflowScalesTheLossLess) {
  One one(open({"train.precision=fp16", "train.loss_scale=4294967296"}));
  const auto before = one.weights();
  const double scale = one.step->loss_scale().scale();
  const auto made =
      one.step->run(one.batch, {.rows = 4, .lr = 1, .limits = {.norm = 0.01}});
  EXPECT_EQ(made.outcome, StepOutcome::overflowed);
  EXPECT_TRUE(std::isfinite(made.loss));
  EXPECT_EQ(one.step->loss_scale().scale(), scale / 2);
  EXPECT_EQ(one.weights(), before);
}

TEST_F(StepTest, ItsNumberChoosesTheNoise) {
  const auto loss = [&](std::int64_t number) {
    One one(open({"train.neftune=5"}));
    return one.step->run(one.batch, {.number = number, .rows = 4}).loss;
  };
  EXPECT_EQ(loss(3), loss(3));
  EXPECT_NE(loss(3), loss(4));
}

// What `hearth tune` and the ablations measure is what trains: noise, gates
// that move and a scaled loss included.
TEST_F(StepTest, ATrialMakesTheLoopsSteps) {
  const std::vector<Words> recipes = {
      {"train.neftune=5"},
      {"model.gate={unit: swish, alpha: cosine}"},
      {"train.precision=fp16", "train.loss_scale=4294967296",
       "train.health.enabled=false"},
  };
  int name = 0;
  for (Words words : recipes) {
    SCOPED_TRACE(words.front());
    words.insert(words.end(), {"train.steps=4", "data.valid=off"});
    const std::string run = "run" + std::to_string(++name);
    train(run, words);
    Session session = open(words);
    const auto trial =
        run_trial(session, {.rows = 4, .steps = 4, .warm_up = 0});
    EXPECT_EQ(trial.steps, 4);
    EXPECT_EQ(trial.train_loss, metrics(run).back().at("loss").get<double>());
  }
}

}  // namespace
}  // namespace hearth::train
