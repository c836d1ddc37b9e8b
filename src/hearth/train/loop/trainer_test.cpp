// The loop on a tiny model, with steps that go wrong when a test says so.
#include "hearth/train/loop/trainer.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/memory.h"
#include "hearth/train/loop/trainer_case_test.h"
#include "hearth/train/loop/validation.h"

namespace hearth::train {
namespace {

namespace fs = std::filesystem;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// The session's objective, its loss times what `factor` says of the batch, the
// first being 1, and more by what `addend` says.
class Tampered : public Objective {
 public:
  using Factor = std::function<float(long batch)>;
  Tampered(std::unique_ptr<Objective> inner, Factor factor, Factor addend)
      : inner_(std::move(inner)),
        factor_(std::move(factor)),
        addend_(std::move(addend)) {}
  ObjectiveValue operator()(
      const models::Decoder& model,
      const MicroBatch& batch,
      const nn::Pass& pass
  ) const override {
    auto v = (*inner_)(model, batch, pass);
    if (!pass.training) return v;
    auto sum = mx::multiply(v.loss_sum, mx::array(factor_(++*batches_)));
    if (addend_) sum = mx::add(sum, mx::array(addend_(*batches_)));
    return {sum, v.weight_sum};
  }

 private:
  std::unique_ptr<Objective> inner_;
  Factor factor_, addend_;
  std::shared_ptr<long> batches_ = std::make_shared<long>(0);
};

class TrainerTest : public TrainerCase {
 protected:
  TrainHooks hooks() {
    TrainHooks h;
    h.note = [this](const std::string& text) { notes_ += text + "\n"; };
    return h;
  }
  TrainResult train(
      const std::string& name,
      const std::vector<std::string>& words,
      const Tampered::Factor& factor = {},
      const Tampered::Factor& addend = {}
  ) {
    Session session = open(words);
    if (factor) {
      session.objective = std::make_unique<Tampered>(
          std::move(session.objective), factor, addend
      );
    }
    RunDirectory run(path(name), RunMode::fresh);
    run.describe({});
    return Trainer(session, run, hooks()).run();
  }
  TrainResult resume(
      const std::string& name,
      const std::vector<std::string>& words = {}
  ) {
    Session session = open(words);
    RunDirectory run(path(name), RunMode::resume);
    Trainer trainer(session, run, hooks());
    EXPECT_TRUE(trainer.resume());
    return trainer.run();
  }

  std::string weights(const std::string& run, long step) const {
    return read_text_file(
        checkpoint_path(path(run), step) + "/weights.safetensors"
    );
  }
  void expect_steps(const std::string& run, long last) const {
    const auto all = metrics(run);
    ASSERT_EQ(static_cast<long>(all.size()), last);
    for (long i = 0; i < last; ++i) {
      EXPECT_EQ(all[static_cast<std::size_t>(i)].at("step"), i + 1);
    }
  }
  bool said(const std::string& part) const {
    return notes_.find(part) != std::string::npos;
  }

  std::string notes_;
};

// NaN from one batch to another.
Tampered::Factor broken(long first, long last) {
  return [=](long b) { return b >= first && b <= last ? kNaN : 1.0f; };
}

const std::vector<std::string> kSaveAll = {
    "train.save_every=1", "train.keep=99"
};

TEST_F(TrainerTest, ARollBackGoesToWeightsFromBeforeTheTrouble) {
  train("plain", kSaveAll);
  train("bad", kSaveAll, broken(15, 17));
  EXPECT_TRUE(said("rolled back from step 17 to 6")) << notes_;
  EXPECT_EQ(weights("bad", 6), weights("plain", 6));
  EXPECT_NE(weights("bad", 7), weights("plain", 7));
  expect_steps("bad", 20);
  const auto rate = [&](const char* run) {
    return metrics(run)[6].at("lr").get<double>();
  };
  EXPECT_DOUBLE_EQ(rate("bad"), 0.5 * rate("plain"));
  EXPECT_EQ(lines("bad", "events.jsonl").size(), 3u);
  for (const Json& line : lines("bad", "metrics.jsonl")) {
    EXPECT_FALSE(line.contains("skipped"));
  }
}

// Losses that fell after the checkpoint are not what its weights must reach.
TEST_F(TrainerTest, ARollBackJudgesByTheCheckpointsLosses) {
  auto words = kSaveAll;
  words.insert(words.end(), {"train.health.window=4", "train.health.least=4"});
  // Told 500 less in 128 tokens, without a change of the gradient.
  const auto result = train("fallen", words, broken(15, 17), [](long b) {
    return b > 6 && b < 15 ? -500.0f : 0.0f;
  });
  EXPECT_TRUE(said("rolled back from step 17 to 6")) << notes_;
  EXPECT_EQ(result.steps, 20);
  EXPECT_EQ(lines("fallen", "events.jsonl").size(), 3u);
}

TEST_F(TrainerTest, ARunThatStopsKeepsWeightsToGoOnFrom) {
  const std::vector<std::string> words = {"train.save_every=1", "train.keep=1"};
  EXPECT_THROW(train("dead", words, broken(15, 1000)), Error);
  const auto steps = checkpoint_steps(path("dead"));
  ASSERT_FALSE(steps.empty());
  EXPECT_LE(steps.back(), 6);
  train("plain", kSaveAll);
  EXPECT_EQ(weights("dead", steps.back()), weights("plain", steps.back()));
  EXPECT_EQ(lines("dead", "events.jsonl").size(), 6u);
  EXPECT_EQ(resume("dead").steps, 20);
  EXPECT_TRUE(said("0.5 of the schedule's")) << notes_;
  expect_steps("dead", 20);
  EXPECT_EQ(lines("dead", "events.jsonl").size(), 6u);
}

TEST_F(TrainerTest, WithoutACheckpointTheFirstWeightsComeBack) {
  const Session first = open();
  save_checkpoint(
      path("first"),
      {0, weights_of(first.model->parameters().trainable()), {}, {}}
  );
  train("early", {"train.save_every=1000", "train.keep=9"}, broken(5, 7));
  EXPECT_TRUE(said("rolled back from step 7 to 0")) << notes_;
  EXPECT_EQ(weights("early", 0), weights("first", 0));
  expect_steps("early", 20);
}

TEST_F(TrainerTest, NothingIsSavedWhileStepsAreBad) {
  train("skipped", kSaveAll, broken(10, 11));
  const auto steps = checkpoint_steps(path("skipped"));
  EXPECT_EQ(steps.size(), 18u);
  EXPECT_EQ(std::ranges::count(steps, 10) + std::ranges::count(steps, 11), 0);
  expect_steps("skipped", 20);
}

TEST_F(TrainerTest, AnInterruptedValidationIsMadeUpFor) {
  const std::vector<std::string> words = {
      "train.eval_every=5", "train.eval_tokens=100000", "train.keep=9"
  };
  train("plain", words);
  {
    Session session = open(words);
    RunDirectory run(path("cut"), RunMode::fresh);
    run.describe({});
    auto h = hooks();
    bool asked = false;
    h.on_validation = [&](double, auto step, auto) { asked = step == 10; };
    h.stop = [&] { return asked; };
    EXPECT_THROW(Trainer(session, run, h).run(), Interrupted);
  }
  expect_steps("cut", 10);
  EXPECT_FALSE(lines("cut", "metrics.jsonl")[9].contains("valid_loss"));
  const auto result = resume("cut", words);
  expect_steps("cut", 20);
  const auto plain = lines("plain", "metrics.jsonl");
  const auto cut = lines("cut", "metrics.jsonl");
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(
        cut[i].value("valid_loss", 0.0), plain[i].value("valid_loss", 0.0)
    );
  }
  EXPECT_EQ(result.valid_loss, plain[19].at("valid_loss").get<double>());
  EXPECT_EQ(weights("cut", 20), weights("plain", 20));
}

TEST_F(TrainerTest, AValidationThatScoresNothingIsNone) {
  const std::string file = path("held.jsonl");
  write_file_atomically(
      file, R"({"prompt": ")" + std::string(400, 'x') +
                R"(", "completion": "y"})" + "\n"
  );
  const auto result =
      train("unscored", {"data.valid=" + file, "train.eval_every=10"});
  EXPECT_FALSE(result.valid_loss);
  EXPECT_FALSE(result.best_valid_loss);
  EXPECT_TRUE(said("no validation loss")) << notes_;
  EXPECT_FALSE(fs::exists(path("unscored") + "/best.json"));
}

// A rate of nothing never gains.
const std::vector<std::string> kNoGain = {
    "optim.lr=1e-30", "train.eval_every=2", "train.early_stop=2", "train.keep=1"
};

TEST_F(TrainerTest, AnEarlyStopStays) {
  auto result = train("early", kNoGain);
  EXPECT_TRUE(result.stopped_early);
  EXPECT_EQ(result.steps, 6);
  EXPECT_EQ(result.best_step, 2);
  result = resume("early", kNoGain);
  EXPECT_EQ(result.steps, 6);
  EXPECT_TRUE(result.stopped_early);
  EXPECT_FALSE(result.tokens_per_s) << "no step was made";
  result = resume("early", {"optim.lr=1e-30", "train.keep=1"});
  EXPECT_EQ(result.steps, 20);
  EXPECT_FALSE(result.stopped_early);
}

// Losses of other tokens are not to be compared with the best so far.
TEST_F(TrainerTest, AnotherMeasureLooksForTheBestAnew) {
  train("measure", {"train.steps=4", "train.eval_tokens=60"});
  const auto result = resume(
      "measure", {"train.steps=8", "train.eval_every=2", "train.early_stop=1",
                  "train.eval_tokens=200", "train.keep=9", "optim.lr=1e-2"}
  );
  EXPECT_TRUE(said("the best is looked for anew")) << notes_;
  EXPECT_GT(result.best_step, 4);
  EXPECT_EQ(best_checkpoint(path("measure"))->step, result.best_step);
  notes_.clear();
  // More than all there is, or a run that is through, is no other measure.
  train("all", {"train.steps=4", "train.eval_tokens=100000"});
  EXPECT_EQ(resume("all", {"train.steps=4", "train.eval_tokens=9"}).steps, 4);
  EXPECT_EQ(best_checkpoint(path("all"))->step, 4);
  resume("all", {"train.steps=5", "train.eval_tokens=200000"});
  EXPECT_FALSE(said("anew")) << notes_;
}

TEST_F(TrainerTest, AValidationScoresAtMostSoManyTokens) {
  std::uint64_t before = 0;
  for (const std::uint64_t most : {33u, 64u, 100u, 200u, 1u << 30}) {
    const Session s = open({"train.eval_tokens=" + std::to_string(most)});
    const auto tokens = validate(s, 4).tokens;
    EXPECT_LE(tokens, most);
    EXPECT_GT(tokens, before) << "of " << most;
    before = tokens;
  }
  EXPECT_GT(validate(open({"train.eval_tokens=1"}), 4).tokens, 0u) << "a row";
}

TEST_F(TrainerTest, ABrokenBestIsPutRightOrDoneWithout) {
  train("best", kNoGain);
  const auto finish = [&](const std::function<void()>& before_its_end = {}) {
    Session session = open(kNoGain);
    RunDirectory run(path("best"), RunMode::resume);
    Trainer trainer(session, run, hooks());
    EXPECT_TRUE(trainer.resume());
    trainer.run();
    if (before_its_end) before_its_end();
    return trainer.restore_best();
  };
  write_file_atomically(path("best") + "/best.json", "garbage");
  EXPECT_TRUE(finish());
  EXPECT_EQ(best_checkpoint(path("best"))->step, 2);
  const std::string file =
      checkpoint_path(path("best"), 2) + "/weights.safetensors";
  const auto damage = [&] {
    std::string bytes = read_text_file(file);
    bytes[bytes.size() - 5] ^= 1;
    write_file_atomically(file, bytes);
  };
  EXPECT_FALSE(finish(damage));
  EXPECT_TRUE(said("so the model is that of step 6")) << notes_;
  EXPECT_FALSE(best_checkpoint(path("best")));
  EXPECT_TRUE(finish());
  EXPECT_TRUE(said("the best is looked for anew")) << notes_;
  EXPECT_GT(best_checkpoint(path("best"))->step, 2);
}

TEST_F(TrainerTest, ARunWithoutAWholeCheckpointIsNotStartedAnew) {
  train("torn", {"train.steps=3"});
  for (const long step : checkpoint_steps(path("torn"))) {
    fs::resize_file(checkpoint_path(path("torn"), step) + "/state.json", 3);
  }
  Session session = open();
  RunDirectory run(path("torn"), RunMode::resume);
  Trainer trainer(session, run, hooks());
  EXPECT_THROW(trainer.resume(), Error);
}

TEST_F(TrainerTest, ARunCannotEndBeforeWhereItIs) {
  train("long", {"train.steps=6"});
  Session session = open({"train.steps=5"});
  RunDirectory run(path("long"), RunMode::resume);
  Trainer trainer(session, run, hooks());
  EXPECT_THROW(trainer.resume(), UsageError);
}

// Every document counts as often as there are epochs, whatever rows hold.
TEST_F(TrainerTest, AnEpochIsOnePassOverTheData) {
  for (const std::string arrange : {"pack", "stream", "pad"}) {
    SCOPED_TRACE(arrange);
    const auto words = [&](const char* epochs) {
      return std::vector<std::string>{
          "data.arrange=" + arrange, std::string("train.epochs=") + epochs,
          "train.tokens_per_step=512", "train.micro_batch_size=16"
      };
    };
    const auto one = train(arrange + "1", words("1"));
    const auto two = train(arrange + "2", words("2"));
    EXPECT_EQ(two.tokens, 2 * one.tokens);
    EXPECT_EQ(resume(arrange + "1", words("2")).tokens, two.tokens);
    const auto half = train(arrange + "0", words("0.5"));
    EXPECT_NEAR(static_cast<double>(half.steps), 0.5 * one.steps, 1);
  }
}

TEST_F(TrainerTest, AnEndThatIsNotFiniteIsSaid) {
  const std::vector<std::string> words = {"data.valid=off", "train.steps=3"};
  const auto result = train("nan", words, broken(3, 3));
  EXPECT_NE(result.diverged.find("step 3"), std::string::npos);
  EXPECT_EQ(resume("nan", words).diverged, result.diverged);
  EXPECT_EQ(train("fine", words).diverged, "");
}

// Two thirds of what such a run holds are weights and the optimiser's state.
const std::vector<std::string> kHeavy = {
    "model.dim=192",
    "model.ffn=512",
    "data.valid=off",
    "train.tokens_per_step=64",
    "train.micro_batch_size=1",
    "train.save_every=1",
    "train.keep=99",
    "optim.schedule=constant"
};

class Budget {
 public:
  explicit Budget(std::size_t bytes) { set_memory_budget(bytes); }
  ~Budget() { set_memory_budget(0); }
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;
};

TEST_F(TrainerTest, ARunGoesOnAndBackWithinTheMemoryOfItsSteps) {
  const auto with = [](std::vector<std::string> words, const char* last) {
    words.emplace_back(last);
    return words;
  };
  const auto first = train("heavy", with(kHeavy, "train.steps=4"));
  mx::clear_cache();
  reset_memory_peak();
  const Budget budget(first.peak_bytes / 100 * 105);
  EXPECT_EQ(resume("heavy", with(kHeavy, "train.steps=6")).steps, 6);
  EXPECT_LE(memory_usage().peak, memory_budget());
  mx::clear_cache();
  // Two micro-batches a step.
  train("back", with(kHeavy, "train.steps=20"), broken(29, 34));
  EXPECT_TRUE(said("rolled back from step 17 to 6")) << notes_;
  EXPECT_TRUE(weights("back", 6) == weights("heavy", 6));
  EXPECT_FALSE(said("out of memory")) << notes_;
}

TEST_F(TrainerTest, ARunThatGoesOnMayBeCutInAnotherWay) {
  const std::vector<std::string> plain = {"train.steps=4"};
  const auto rows = [&](std::size_t step) {
    return lines("cut", "metrics.jsonl")[step - 1].at("micro_batch").get<int>();
  };
  train("cut", plain);
  resume("cut", {"train.steps=6", "train.micro_batch_size=2"});
  EXPECT_EQ(rows(4), 4);
  EXPECT_EQ(rows(5), 2);
  EXPECT_TRUE(said("cut anew: 2 rows")) << notes_;
  notes_.clear();
  resume("cut", {"train.steps=8", "train.micro_batch_size=2"});
  EXPECT_EQ(rows(8), 2);
  EXPECT_FALSE(said("cut anew")) << notes_;
}

// The update is the same however many rows are taken at a time.
TEST_F(TrainerTest, MicroBatchesOfShortRowsHaveAsManyTokens) {
  const auto words = [](const char* rows) {
    return std::vector<std::string>{
        "train.seq_lengths=[8, 32]", "train.shape_guarantee=3",
        "train.tokens_per_step=256",
        std::string("train.micro_batch_size=") + rows
    };
  };
  train("two", words("2"));
  train("eight", words("8"));
  const auto two = lines("two", "metrics.jsonl");
  const auto eight = lines("eight", "metrics.jsonl");
  std::set<int> lengths;
  for (std::size_t i = 0; i < 20; ++i) {
    const int length = two[i].at("length");
    lengths.insert(length);
    EXPECT_EQ(two[i].at("micro_batch").get<int>(), 64 / length);
    EXPECT_EQ(eight[i].at("micro_batch").get<int>(), 256 / length);
    EXPECT_NEAR(
        two[i].at("loss").get<double>(), eight[i].at("loss").get<double>(), 1e-3
    );
  }
  EXPECT_EQ(lengths.size(), 2u);
}

// What rows of one length have left does not stay beside those of another.
TEST_F(TrainerTest, LengthsTakeWhatTheLargestTakes) {
  const auto kept = [&](const std::string& name, const char* lengths) {
    mx::clear_cache();
    train(
        name,
        {"model.dim=256", "model.ffn=512", "data.valid=off", "train.steps=8",
         "train.tokens_per_step=320", "train.micro_batch_size=1",
         std::string("train.seq_lengths=") + lengths}
    );
    return static_cast<double>(mx::get_cache_memory());
  };
  const double one = kept("one", "[40]"), other = kept("other", "[64]");
  EXPECT_LT(kept("both", "[40, 64]"), 1.1 * std::max(one, other));
}

TEST_F(TrainerTest, OneStepHasASpeed) {
  const auto result = train("one", {"train.steps=1"});
  ASSERT_TRUE(result.tokens_per_s);
  EXPECT_GT(*result.tokens_per_s, 0);
}

}  // namespace
}  // namespace hearth::train
