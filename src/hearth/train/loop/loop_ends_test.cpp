// What comes into the loop and what goes out of it, when a caller says so.
#include "hearth/base/error.h"
#include "hearth/train/loop/run_log.h"
#include "hearth/train/loop/trainer_case_test.h"

namespace hearth::train {
namespace {

// The same batch again and again, or so many times.
class Again : public BatchSource {
 public:
  explicit Again(data::Batch batch, std::optional<std::uint64_t> most = {})
      : batch_(std::move(batch)), most_(most) {}
  bool next(data::Batch& batch) override {
    batch = batch_;
    ++drawn_;
    return true;
  }
  Json state() const override { return {{"drawn", drawn_}}; }
  void restore(const Json& state) override { drawn_ = state.at("drawn"); }
  std::optional<std::uint64_t> left() const override {
    if (!most_) return {};
    return *most_ - drawn_;
  }

 private:
  data::Batch batch_;
  std::optional<std::uint64_t> most_;
  std::uint64_t drawn_ = 0;
};

struct Heard {
  std::vector<std::int64_t> begins, backs;
  std::vector<Json> steps, events;
};

class Listener : public MetricSink {
 public:
  explicit Listener(Heard& heard) : heard_(heard) {}
  void begin(std::int64_t step, std::optional<long>) override {
    heard_.begins.push_back(step);
  }
  void go_back(std::int64_t step) override { heard_.backs.push_back(step); }
  void step(const Json& line) override { heard_.steps.push_back(line); }
  void event(const Json& line) override { heard_.events.push_back(line); }

 private:
  Heard& heard_;
};

class LoopEndsTest : public TrainerCase {
 protected:
  static data::Batch first(const Session& s) {
    data::Batch batch;
    data::Loader(s.cache, s.train_loader()).next(batch);
    return batch;
  }
};

TEST_F(LoopEndsTest, BatchesAreTheCallersOwn) {
  const Words words = {"train.steps=6", "data.valid=off", "train.keep=9"};
  Heard heard;
  std::vector<std::vector<std::int32_t>> seen;
  const auto go = [&](const Words& now, RunMode mode) {
    Session session = open(now, [&](const MicroBatch& b) {
      seen.push_back(ids_of(b));
      return 1.0f;
    });
    RunDirectory run(path("own"), mode);
    run.describe({});
    LoopEnds ends = loop_ends(session, run);
    ends.batches = std::make_unique<Again>(first(session));
    ends.sinks.push_back(std::make_unique<Listener>(heard));
    Trainer trainer(session, run, {}, std::move(ends));
    EXPECT_EQ(
        mode == RunMode::resume && trainer.resume(), mode == RunMode::resume
    );
    return trainer.run();
  };
  EXPECT_EQ(go(words, RunMode::fresh).steps, 6);
  ASSERT_EQ(seen.size(), 6u);
  for (const auto& ids : seen) EXPECT_EQ(ids, seen.front());
  Words more = words;
  more[0] = "train.steps=8";
  EXPECT_EQ(go(more, RunMode::resume).steps, 8);
  EXPECT_EQ(heard.begins, (std::vector<std::int64_t>{0, 6}));
  ASSERT_EQ(heard.steps.size(), 8u);
  EXPECT_EQ(heard.steps, metrics("own"));
}

TEST_F(LoopEndsTest, EpochsAreTheSourcesToCount) {
  const auto steps = [&](std::optional<std::uint64_t> most) {
    Session session = open({"train.epochs=2", "data.valid=off"});
    RunDirectory run(path("epochs"), RunMode::overwrite);
    LoopEnds ends = loop_ends(session, run);
    ends.batches = std::make_unique<Again>(first(session), most);
    return Trainer(session, run, {}, std::move(ends)).run().steps;
  };
  EXPECT_EQ(steps(5), 5);
  EXPECT_THROW(steps({}), UsageError);
}

TEST_F(LoopEndsTest, ARollBackIsToldToAll) {
  long batch = 0;
  Session session = open(
      {"train.save_every=1", "train.keep=99", "data.valid=off"},
      [&](const MicroBatch&) {
        ++batch;
        return batch >= 15 && batch <= 17
                   ? std::numeric_limits<float>::quiet_NaN()
                   : 1.0f;
      }
  );
  RunDirectory run(path("back"), RunMode::fresh);
  run.describe({});
  Heard heard;
  LoopEnds ends = loop_ends(session, run);
  ends.sinks.push_back(std::make_unique<Listener>(heard));
  Trainer(session, run, {}, std::move(ends)).run();
  EXPECT_EQ(heard.backs, std::vector<std::int64_t>{6});
  EXPECT_EQ(heard.events.size(), 3u);
  EXPECT_EQ(heard.steps.back(), metrics("back").back());
  EXPECT_EQ(metrics("back").size(), 20u);
}

}  // namespace
}  // namespace hearth::train
