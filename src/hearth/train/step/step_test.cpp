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
      for (nn::Parameter* p : session.model->parameters().trainable()) {
        const auto* w = p->value.data<float>();
        all.insert(all.end(), w, w + p->value.size());
      }
      return all;
    }
  };
};

TEST_F(StepTest, WhatIsNotAcceptedLeavesTheWeightsAlone) {
  One one(open({}));
  const auto before = one.weights();
  StepResult seen;
  const auto refuse = [&](const StepResult& r) {
    seen = r;
    return false;
  };
  auto made = one.step->run(one.batch, {.rows = 4, .lr = 1, .accept = refuse});
  EXPECT_EQ(made.outcome, StepOutcome::refused);
  EXPECT_EQ(one.weights(), before);
  EXPECT_GT(seen.norm, 0);
  EXPECT_EQ(seen.loss, made.loss);
  EXPECT_EQ(seen.weight, static_cast<double>(one.batch.trained));
  made = one.step->run(one.batch, {.rows = 4, .lr = 1e-3});
  EXPECT_EQ(made.outcome, StepOutcome::applied);
  EXPECT_EQ(made.loss, seen.loss);
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

TEST_F(StepTest, AnOverflowScalesTheLossLessAndAsksNobody) {
  bool asked = false;
  One one(open({"train.precision=fp16", "train.loss_scale=4294967296"}));
  const auto before = one.weights();
  const double scale = one.step->loss_scale().scale();
  const auto made = one.step->run(
      one.batch, {.rows = 4, .lr = 1, .accept = [&](const StepResult&) {
                    asked = true;
                    return true;
                  }}
  );
  EXPECT_EQ(made.outcome, StepOutcome::overflowed);
  EXPECT_TRUE(std::isfinite(made.loss));
  EXPECT_EQ(one.step->loss_scale().scale(), scale / 2);
  EXPECT_EQ(one.weights(), before);
  EXPECT_FALSE(asked);
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
