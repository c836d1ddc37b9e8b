#include "hearth/train/loop/health.h"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth::train {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A step as the loop makes it, one after the other: held against the limits,
// then told of.
HealthVerdict judged(
    Health& health,
    long step,
    double loss,
    double norm,
    std::uint32_t length = 0
) {
  const bool fits = health.limits(length).hold(loss, norm);
  return health.note(step, loss, norm, length, fits);
}

// A falling loss with noise and norms around 1.
class Trial {
 public:
  explicit Trial(HealthConfig config = {}) : health(config) {}

  HealthAction good() {
    const double trend = 3 + 4 * std::exp(-0.01 * static_cast<double>(step));
    return judge(trend + 0.1 * noise_(random_), std::exp(0.2 * noise_(random_)))
        .action;
  }
  HealthVerdict judge(double loss, double norm) {
    return judged(health, step++, loss, norm);
  }
  void warm(int steps = 100) {
    for (int i = 0; i < steps; ++i) ASSERT_EQ(good(), HealthAction::apply) << i;
  }

  Health health;
  long step = 1;

 private:
  std::mt19937 random_{11};
  std::normal_distribution<double> noise_;
};

TEST(Health, AnOrdinaryRunIsLeftAlone) {
  Trial run;
  run.warm(5000);
  EXPECT_EQ(run.health.lr_factor(), 1);
}

TEST(Health, WhatIsNotFiniteIsSkippedFromTheFirstStep) {
  for (const double bad : {kNaN, kInfinity, -kInfinity}) {
    Trial run;
    EXPECT_EQ(run.judge(bad, 1).action, HealthAction::skip);
    EXPECT_EQ(run.judge(1, std::abs(bad)).action, HealthAction::skip);
    EXPECT_EQ(run.good(), HealthAction::apply);
  }
  HealthConfig off;
  off.enabled = false;
  Trial run(off);
  run.warm();
  EXPECT_EQ(run.judge(1e6, 1e6).action, HealthAction::apply);
  EXPECT_EQ(run.judge(kNaN, 1).action, HealthAction::skip);
}

TEST(Health, SpikesAreSkippedAndExplained) {
  Trial run;
  run.warm();
  const auto loss = run.judge(12, 1);
  EXPECT_EQ(loss.action, HealthAction::skip);
  EXPECT_NE(loss.reason.find("step 101"), std::string::npos) << loss.reason;
  EXPECT_NE(loss.reason.find("loss 12"), std::string::npos) << loss.reason;
  EXPECT_EQ(run.good(), HealthAction::apply);
  const auto norm = run.judge(4, 50);
  EXPECT_EQ(norm.action, HealthAction::skip);
  EXPECT_NE(norm.reason.find("norm 50"), std::string::npos) << norm.reason;
  // A loss or norm that is low is no spike.
  EXPECT_EQ(run.judge(0.01, 1e-4).action, HealthAction::apply);
}

// A flat window would make any ripple many deviations.
TEST(Health, ANormThatStaysHighBesideAnOrdinaryLossIsTheNewUsual) {
  Trial run;
  run.warm();
  EXPECT_EQ(run.judge(4, 50).action, HealthAction::skip);
  EXPECT_EQ(run.judge(4, 60).action, HealthAction::skip);
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(run.judge(4, 55).action, HealthAction::apply) << i;
  }
  EXPECT_EQ(run.judge(4, 5000).action, HealthAction::skip);
}

TEST(Health, ANormIsUsualOnlyAfterAsManyOfItsOwn) {
  Trial run;
  run.warm();
  EXPECT_EQ(run.judge(40, 1).action, HealthAction::skip);
  EXPECT_EQ(run.judge(40, 1).action, HealthAction::skip);
  EXPECT_EQ(run.judge(4, 50).action, HealthAction::roll_back);
}

TEST(Health, LossesAreJudgedOnBesideANewUsualNorm) {
  Trial run;
  run.warm();
  for (const auto wanted :
       {HealthAction::skip, HealthAction::skip, HealthAction::apply}) {
    EXPECT_EQ(run.judge(4.4, 50).action, wanted);
  }
  EXPECT_EQ(run.judge(8.8, 50).action, HealthAction::skip);
  EXPECT_EQ(run.judge(12.7, 50).action, HealthAction::skip);
  EXPECT_EQ(run.judge(4.4, 50).action, HealthAction::apply);
}

TEST(Health, TroubleBeginsWithTheFirstBadStepAndEndsWithAGoodOne) {
  Trial run;
  run.warm(100);
  EXPECT_EQ(run.health.trouble(), 0);
  EXPECT_EQ(run.judge(kNaN, 1).since, 101);
  EXPECT_EQ(run.judge(kNaN, 1).since, 101);
  EXPECT_EQ(run.health.trouble(), 101);
  Health again{HealthConfig{}};
  again.restore(parse_json(to_json_line(run.health.state()), "state"));
  EXPECT_EQ(again.trouble(), 101);
  EXPECT_EQ(judged(again, 103, kNaN, 1).since, 101);
  EXPECT_EQ(run.good(), HealthAction::apply);
  EXPECT_EQ(run.health.trouble(), 0);
  EXPECT_EQ(run.judge(kNaN, 1).since, 104);
  // After a roll-back the next bad step begins another row.
  EXPECT_EQ(again.trouble(), 0);
  EXPECT_EQ(judged(again, 96, kNaN, 1).since, 96);
}

TEST(Health, NotANumberIsSpelledPlainly) {
  Trial run;
  EXPECT_EQ(run.judge(-kNaN, 1).reason, "step 1: the loss is nan");
  EXPECT_EQ(
      run.judge(1, kInfinity).reason, "step 2: the gradient norm is infinite"
  );
}

TEST(Health, ARippleOnAFlatLossIsNoSpike) {
  Trial run;
  for (int i = 0; i < 80; ++i) run.judge(2.0, 1.0);
  EXPECT_EQ(run.judge(2.1, 1.5).action, HealthAction::apply);
  EXPECT_EQ(run.judge(3.0, 1.0).action, HealthAction::skip);
}

TEST(Health, NothingIsJudgedBeforeEnoughIsKnown) {
  Trial run;
  for (const double loss : {9.0, 3.0, 8.0, 2.0, 30.0}) {
    EXPECT_EQ(run.judge(loss, 1).action, HealthAction::apply);
  }
}

TEST(Health, ThreeInARowRollBackAndThreeMoreStop) {
  Trial run;
  run.warm();
  EXPECT_EQ(run.judge(kNaN, 1).action, HealthAction::skip);
  EXPECT_EQ(run.judge(20, 1).action, HealthAction::skip);
  EXPECT_EQ(run.health.lr_factor(), 1);
  EXPECT_EQ(run.judge(kNaN, kNaN).action, HealthAction::roll_back);
  EXPECT_EQ(run.health.lr_factor(), 0.5);
  run.warm(10);
  EXPECT_EQ(run.judge(kNaN, 1).action, HealthAction::skip);
  EXPECT_EQ(run.judge(kNaN, 1).action, HealthAction::skip);
  const auto last = run.judge(kNaN, 1);
  EXPECT_EQ(last.action, HealthAction::stop);
  EXPECT_NE(last.reason.find("optim.lr"), std::string::npos) << last.reason;
}

TEST(Health, AGoodStepStartsTheCountAnew) {
  Trial run;
  run.warm();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(run.judge(kNaN, 1).action, HealthAction::skip);
    EXPECT_EQ(run.judge(kNaN, 1).action, HealthAction::skip);
    EXPECT_EQ(run.good(), HealthAction::apply);
  }
}

TEST(Health, ARollBackLongPastIsForgotten) {
  Trial run;
  const auto three = [&] {
    run.judge(kNaN, 1);
    run.judge(kNaN, 1);
    return run.judge(kNaN, 1).action;
  };
  run.warm();
  EXPECT_EQ(three(), HealthAction::roll_back);
  run.warm(256);
  EXPECT_EQ(three(), HealthAction::roll_back);
  EXPECT_EQ(run.health.lr_factor(), 0.25);
  run.warm(255);
  EXPECT_EQ(three(), HealthAction::stop);
}

TEST(Health, ContinuesFromItsState) {
  Trial a, b;
  a.warm();
  b.warm();
  a.judge(kNaN, 1);
  b.judge(kNaN, 1);
  Health again{HealthConfig{}};
  again.restore(parse_json(to_json_line(a.health.state()), "state"));
  a.health = again;
  for (int i = 0; i < 30; ++i) {
    const double loss = i % 7 == 3 ? 5.0 : 4.4;
    const auto x = a.judge(loss, 1.0 + i), y = b.judge(loss, 1.0 + i);
    EXPECT_EQ(x.action, y.action);
    EXPECT_EQ(x.reason, y.reason);
  }
  EXPECT_EQ(to_json_line(a.health.state()), to_json_line(b.health.state()));
  EXPECT_THROW(again.restore(Json::object()), FormatError);
  auto uneven = a.health.state();
  uneven["windows"][0]["losses"] = Json::array();
  EXPECT_THROW(again.restore(uneven), FormatError);
  uneven["windows"][0]["norms"] = "x";
  EXPECT_THROW(again.restore(uneven), FormatError);
}

// Rows of three lengths: the shorter, the larger loss and norm.
class MixedTrial {
 public:
  // Of the next step, times what the caller makes of it.
  HealthVerdict step(double loss_factor = 1, double norm_factor = 1) {
    const std::uint32_t length = 64U << (2 * (number_ % 3));
    const double factor = 4.0 / static_cast<double>(1 + number_ % 3);
    return judged(
        health, ++number_, factor * (1 + 0.02 * noise_(random_)) * loss_factor,
        factor * factor * std::exp(0.1 * noise_(random_)) * norm_factor, length
    );
  }
  void warm(int steps) {
    for (int i = 0; i < steps; ++i) {
      ASSERT_EQ(step().action, HealthAction::apply) << i;
    }
  }

  Health health{HealthConfig{}};

 private:
  long number_ = 0;
  std::mt19937 random_{5};
  std::normal_distribution<double> noise_;
};

TEST(Health, RowsOfEachLengthAreHeldAgainstTheirOwn) {
  MixedTrial run;
  run.warm(900);
  // Twice the loss of its own length is a spike, of the shortest rows and of
  // the longest, though the shortest ones' is larger every time.
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(run.step(2).action, HealthAction::skip) << i;
    run.warm(3);
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(run.step(1, 20).action, HealthAction::skip) << i;
    run.warm(3);
  }
}

TEST(Health, ALengthThatWasNotSeenOftenIsNotJudged) {
  Trial run;
  run.warm();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(
        judged(run.health, run.step++, 40 - i, 50, 8).action,
        HealthAction::apply
    );
  }
  EXPECT_EQ(
      judged(run.health, run.step++, 400, 50, 8).action, HealthAction::skip
  );
  EXPECT_EQ(run.judge(12, 1).action, HealthAction::skip);
}

// Good steps of other lengths between them do not let it go on for ever.
TEST(Health, ThreeInARowOfOneLengthRollBack) {
  MixedTrial run;
  run.warm(90);
  EXPECT_EQ(run.step(5).action, HealthAction::skip);
  EXPECT_EQ(run.health.trouble(), 91);
  run.warm(2);
  EXPECT_EQ(run.health.trouble(), 0) << "the last step was good";
  EXPECT_EQ(run.health.first_trouble(), 91) << "but not of that length";
  EXPECT_EQ(run.step(5).action, HealthAction::skip);
  run.warm(2);
  const auto third = run.step(5);
  EXPECT_EQ(third.action, HealthAction::roll_back);
  EXPECT_EQ(third.since, 91);
  EXPECT_EQ(run.health.first_trouble(), 0);
}

TEST(Health, ANormThatStaysHighInOneLengthIsItsNewUsual) {
  MixedTrial run;
  run.warm(90);
  for (int i = 0; i < 9; ++i) {
    const auto wanted =
        i == 0 || i == 3 ? HealthAction::skip : HealthAction::apply;
    EXPECT_EQ(run.step(1, i % 3 == 0 ? 30 : 1).action, wanted) << i;
  }
  // In the other lengths nothing else is usual.
  run.step(1, 30);
  EXPECT_EQ(run.step(1, 30).action, HealthAction::skip);
}

TEST(Health, AfterARollBackItsWindowsAreTheCheckpoints) {
  Trial run;
  run.warm();
  const Json then = run.health.state();
  // The loss falls far, then steps are bad.
  for (double loss = 3.3; loss > 0.5; loss *= 0.99) run.judge(loss, 1);
  run.judge(kNaN, 1), run.judge(kNaN, 1);
  ASSERT_EQ(run.judge(kNaN, 1).action, HealthAction::roll_back);
  Health back{HealthConfig{}};
  back.restore(then);
  back.rolled_back_from(run.health);
  EXPECT_EQ(back.lr_factor(), 0.5);
  EXPECT_EQ(back.trouble(), 0);
  EXPECT_EQ(judged(back, 101, 4.4, 1).action, HealthAction::apply);
  // What happened is not forgotten: three more stop.
  judged(back, 102, kNaN, 1), judged(back, 103, kNaN, 1);
  EXPECT_EQ(judged(back, 104, kNaN, 1).action, HealthAction::stop);
}

}  // namespace
}  // namespace hearth::train
