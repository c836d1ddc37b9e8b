#include "hearth/train/loop/checkpoint.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/base/temp_folder_test.h"
#include "hearth/ops/leaf.h"
#include "hearth/ops/op_case.h"
#include "hearth/optim/optimizer.h"
#include "hearth/optim/optimizer_kind.h"

namespace hearth::train {
namespace {

namespace fs = std::filesystem;

mx::array leaf_of(const mx::Shape& shape, float value) {
  auto a = ops::make_leaf(shape, mx::float32, MemoryZone::named("test"));
  std::fill_n(a.data<float>(), a.size(), value);
  return a;
}

// Numbers that say which step they are of.
class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }

  CheckpointContent content(long step) {
    std::fill_n(w_.data<float>(), w_.size(), static_cast<float>(step));
    std::fill_n(m_.data<float>(), m_.size(), static_cast<float>(-step));
    return {step, {{"w", w_}}, {{"w/m", m_}}, {{"tokens", step * 100}}};
  }
  void save(long step) { save_checkpoint(run(), content(step)); }
  using Steps = std::vector<long>;
  Steps prune(const KeptCheckpoints& kept) const {
    return prune_checkpoints(run(), kept);
  }
  const std::string& run() const { return folder_.path(); }
  std::string file(long step, const char* name) const {
    return checkpoint_path(run(), step) + "/" + name;
  }
  void expect_whole(const Checkpoint& c, long step) {
    EXPECT_EQ(c.step(), step);
    EXPECT_EQ(c.state().at("tokens"), step * 100);
    nn::ParameterSet set;
    auto& p = set.add({.name = "w", .shape = w_.shape()});
    p.set(leaf_of(w_.shape(), 0.5f));
    c.copy_weights(set.all());
    const auto state = c.optimizer_state();
    ASSERT_EQ(state.size(), 1u);
    const auto value = static_cast<float>(step);
    std::vector<float> m(w_.size());
    ASSERT_EQ(state[0].bytes.size(), w_.nbytes());
    std::memcpy(m.data(), state[0].bytes.data(), w_.nbytes());
    for (std::size_t i = 0; i < w_.size(); ++i) {
      ASSERT_EQ(p.value().data<float>()[i], value);
      ASSERT_EQ(m[i], -value);
    }
  }

  TempFolder folder_;
  mx::array w_ = leaf_of({64, 100}, 0), m_ = leaf_of({64, 100}, 0);
};

TEST_F(CheckpointTest, ComesBackAsItWas) {
  save(7);
  EXPECT_TRUE(fs::exists(run() + "/checkpoints/step-000007/checksums.json"));
  const auto latest = latest_valid(run());
  ASSERT_TRUE(latest.checkpoint);
  EXPECT_TRUE(latest.skipped.empty());
  expect_whole(*latest.checkpoint, 7);
}

// Masters, packed companions and every kind of optimiser state, bit for bit.
TEST_F(CheckpointTest, HoldsModelAndOptimizerExactly) {
  for (const std::string& name : optim::optimizer_names()) {
    SCOPED_TRACE(name);
    nn::ParameterSet set, other;
    for (auto* s : {&set, &other}) {
      for (const mx::Shape& shape : {mx::Shape{70, 80}, mx::Shape{33}}) {
        auto& p = s->add(
            {.name = "p" + std::to_string(shape.size()), .shape = shape}
        );
        p.set(leaf_of(shape, 1));
        if (shape.size() == 2) {
          nn::pack(p, mx::bfloat16, ops::PackedOrders::both);
        }
      }
    }
    const auto gradients = [&](std::uint64_t seed) {
      std::vector<mx::array> out;
      for (const auto* p : set.all()) {
        out.push_back(ops::normal_input(p->shape, mx::float32, seed++));
        out.back().eval();
      }
      return out;
    };
    auto a = optim::Optimizer::make({.name = name}, set.all());
    auto b = optim::Optimizer::make({.name = name}, other.all());
    a->step(gradients(1), 1, 0.01);
    a->step(gradients(3), 1, 0.01);
    const auto path =
        save_checkpoint(run(), {2, weights_of(set.all()), a->state(), {}});
    const auto c = Checkpoint::load(path);
    c.copy_weights(other.all());
    const std::size_t held = memory_usage().total;
    reset_memory_peak();
    c.copy_optimizer(*b);
    EXPECT_LT(memory_usage().peak - held, 4096u) << "no copy beside the state";
    EXPECT_EQ(b->steps(), 2);
    a->step(gradients(5), 1, 0.01);
    b->step(gradients(5), 1, 0.01);
    for (std::size_t i = 0; i < 2; ++i) {
      const auto *x = set.all()[i], *y = other.all()[i];
      EXPECT_EQ(
          std::memcmp(
              x->value().data<void>(), y->value().data<void>(),
              x->value().nbytes()
          ),
          0
      );
    }
    const auto *x = set.all()[0]->packed().get(),
               *y = other.all()[0]->packed().get();
    EXPECT_EQ(
        std::memcmp(
            x->forward(), y->forward(), x->family().packed_bytes(70, 80)
        ),
        0
    );
  }
}

TEST_F(CheckpointTest, BrokenOnesAreNamedAndPassedOver) {
  for (const long step : {1, 2, 3, 4, 5}) save(step);
  {
    std::fstream f(
        file(5, "weights.safetensors"), std::ios::in | std::ios::out
    );
    f.seekp(2000);
    f.put('!');
  }
  fs::resize_file(file(4, "optimizer.safetensors"), 50);
  fs::remove(file(3, "state.json"));
  write_file_atomically(file(2, "checksums.json"), "{\"files\": 3}");
  const auto latest = latest_valid(run());
  ASSERT_TRUE(latest.checkpoint);
  expect_whole(*latest.checkpoint, 1);
  ASSERT_EQ(latest.skipped.size(), 4u);
  const char* named[] = {
      "weights.safetensors", "optimizer.safetensors", "state.json",
      "checksums.json"
  };
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NE(latest.skipped[i].find(named[i]), std::string::npos)
        << latest.skipped[i];
    EXPECT_EQ(latest.skipped[i].find('\n'), std::string::npos);
  }
}

TEST_F(CheckpointTest, AFolderUnderAnotherNameIsRefused) {
  save(1);
  fs::rename(checkpoint_path(run(), 1), checkpoint_path(run(), 9));
  const auto latest = latest_valid(run());
  EXPECT_FALSE(latest.checkpoint);
  EXPECT_EQ(latest.skipped.size(), 1u);
}

TEST_F(CheckpointTest, NothingThereIsNothing) {
  EXPECT_FALSE(latest_valid(run()).checkpoint);
  EXPECT_TRUE(checkpoint_steps(run()).empty());
  EXPECT_FALSE(best_checkpoint(run()));
  EXPECT_THROW(Checkpoint::load(run() + "/none"), Error);
}

TEST_F(CheckpointTest, TheLastOnesAndTheBestAreKept) {
  for (long step = 1; step <= 3; ++step) save(step);
  set_best(run(), {2, 1.5});
  for (long step = 4; step <= 6; ++step) save(step);
  // The first is the next that will have proven healthy.
  EXPECT_EQ(prune({.last = 2, .best = 2, .settled = 6}), (Steps{3, 4}));
  EXPECT_EQ(checkpoint_steps(run()), (Steps{1, 2, 5, 6}));
  EXPECT_EQ(best_checkpoint(run())->step, 2);
  EXPECT_EQ(best_checkpoint(run())->loss, 1.5);
  EXPECT_THROW(set_best(run(), {3, 1.0}), UsageError);
  EXPECT_THROW(prune({.last = 0}), UsageError);
  write_file_atomically(run() + "/best.json", "{}");
  EXPECT_THROW(best_checkpoint(run()), FormatError);
  clear_best(run());
  EXPECT_FALSE(best_checkpoint(run()));
  clear_best(run());
}

// Training may go back to any of those that stay, and the best is then what
// that one knew of.
TEST_F(CheckpointTest, TheBestOfWhatStaysIsKeptToo) {
  const auto save_with = [&](long step, long best) {
    auto c = content(step);
    c.state["best_step"] = best;
    save_checkpoint(run(), c);
  };
  save_with(70, 70), save_with(80, 80), save_with(90, 80);
  save_with(100, 100);
  EXPECT_EQ(prune({.last = 2, .best = 100, .settled = 100}), (Steps{70}));
  // Nobody names the 80th any more.
  save_with(110, 100), save_with(120, 100);
  EXPECT_EQ(prune({.last = 2, .best = 100, .settled = 120}), (Steps{80, 90}));
  EXPECT_EQ(checkpoint_steps(run()), (Steps{100, 110, 120}));
}

TEST_F(CheckpointTest, WhatIsNotWholeTakesNoPlace) {
  for (const long step : {10, 15, 20, 22}) save(step);
  fs::create_directories(checkpoint_path(run(), 21));
  fs::resize_file(file(15, "weights.safetensors"), 9);
  EXPECT_EQ(prune({.last = 2, .settled = 0}), (Steps{15}));
  EXPECT_EQ(checkpoint_steps(run()), (Steps{10, 20, 21, 22}));
  save(23);
  EXPECT_EQ(prune({.last = 2, .settled = 0}), (Steps{20, 21}));
}

// A run that saves every step: at each there is one that some good steps have
// followed, and trouble stops the clock.
TEST_F(CheckpointTest, TheLastHealthyOneIsNeverPruned) {
  for (long step = 1; step <= 40; ++step) {
    save(step);
    prune({.last = 1, .settled = step});
    const auto steps = checkpoint_steps(run());
    ASSERT_LE(steps.size(), 3u);
    ASSERT_EQ(steps.back(), step);
    if (step > kProvingSteps) {
      ASSERT_LE(steps.front(), step - kProvingSteps) << step;
    }
    ASSERT_GE(steps.front(), step - 2 * kProvingSteps) << step;
  }
  const long healthy = checkpoint_steps(run()).front();
  for (long step = 41; step <= 60; ++step) {
    save(step);
    prune({.last = 1, .settled = 40});
    ASSERT_EQ(checkpoint_steps(run()).front(), healthy);
  }
}

TEST_F(CheckpointTest, LooksForTheNewestUpToAStepAndForgetsLaterOnes) {
  for (const long step : {3, 6, 9}) save(step);
  EXPECT_EQ(latest_valid(run(), 8).checkpoint->step(), 6);
  EXPECT_EQ(latest_valid(run(), 6).checkpoint->step(), 6);
  EXPECT_FALSE(latest_valid(run(), 2).checkpoint);
  remove_checkpoints_after(run(), 6);
  EXPECT_EQ(checkpoint_steps(run()), (Steps{3, 6}));
}

TEST_F(CheckpointTest, AStepMayBeSavedAgain) {
  save(3);
  auto again = content(3);
  again.state["tokens"] = 1;
  save_checkpoint(run(), again);
  EXPECT_EQ(latest_valid(run()).checkpoint->state().at("tokens"), 1);
  EXPECT_EQ(checkpoint_steps(run()), (Steps{3}));
}

TEST_F(CheckpointTest, LeftoversOfAnInterruptedSaveAreCleared) {
  save(1);
  save(2);
  const std::string folder = run() + "/checkpoints/";
  fs::create_directory(folder + ".new-step-000003");
  // Interrupted between the two renames, and after them.
  fs::rename(folder + "step-000002", folder + ".old-step-000002");
  fs::create_directory(folder + ".old-step-000001");
  clear_leftovers(run());
  EXPECT_EQ(checkpoint_steps(run()), (Steps{1, 2}));
  expect_whole(*latest_valid(run()).checkpoint, 2);
  EXPECT_EQ(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 2
  );
}

TEST_F(CheckpointTest, RefusesAnotherModelsWeights) {
  save(1);
  const auto c = Checkpoint::load(checkpoint_path(run(), 1));
  const auto refuse = [&](const char* name, mx::Shape shape, bool more) {
    nn::ParameterSet set;
    set.add({.name = name, .shape = shape}).set(leaf_of(shape, 3));
    if (more) set.add({.name = "x", .shape = {2}}).set(leaf_of({2}, 3));
    EXPECT_THROW(c.copy_weights(set.all()), FormatError);
    EXPECT_EQ(set.all()[0]->value().data<float>()[0], 3);
  };
  refuse("v", {64, 100}, false);
  refuse("w", {100, 64}, false);
  refuse("w", {64, 100}, true);
}

// In a child process, where files may not pass a size: as a full disk does, a
// write fails halfway.
TEST_F(CheckpointTest, AFailedWriteLeavesTheOldOnes) {
  save(1);
  const auto next = content(2);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{10000, 10000};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      save_checkpoint(run(), next);
    } catch (const IoError& e) {
      const std::string what = e.what();
      const bool clear = what.find("step 2 was not saved") != what.npos &&
                         what.find("weights.safetensors") != what.npos &&
                         !e.hint().empty();
      _exit(clear ? 0 : 2);
    }
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(
      std::distance(
          fs::directory_iterator(run() + "/checkpoints"),
          fs::directory_iterator()
      ),
      1
  );
  expect_whole(*latest_valid(run()).checkpoint, 1);
}

// A child saves, marks the best and prunes without end and is killed at 50
// random moments. Whenever it was, the newest whole checkpoint is at least the
// last one whose save had returned. The moment is some saves that the child has
// reported, then a part of one more: a slow or busy machine waits longer, but
// it interrupts as many.
TEST_F(CheckpointTest, SurvivesKillAtRandomMoments) {
  using Micros = std::chrono::microseconds;
  const auto start = Clock::now();
  save(1);
  const auto one_save =
      std::chrono::duration_cast<Micros>(std::clamp<Clock::duration>(
          Clock::now() - start, Micros(100), std::chrono::milliseconds(100)
      ));
  std::mt19937 random(5);
  std::uniform_int_distribution<int> saves(0, 2);
  std::uniform_int_distribution<long> moment(0, one_save.count());
  long least = 1;
  for (int kill_number = 0; kill_number < 50; ++kill_number) {
    int told[2];
    ASSERT_EQ(pipe(told), 0);
    const long first = least + 1;
    const pid_t child = fork();
    if (child == 0) {
      // As the loop does: best.json follows what it knows.
      if (least > 2) set_best(run(), {least / 3 * 3, 1.0});
      for (long step = first;; ++step) {
        save_checkpoint(run(), content(step));
        if (write(told[1], &step, sizeof step) != sizeof step) _exit(1);
        if (step % 3 == 0) set_best(run(), {step, 1.0});
        prune({.last = 2, .best = step / 3 * 3, .settled = step});
        if (step % 2 == 0) save_checkpoint(run(), content(step));
      }
    }
    close(told[1]);
    for (int left = saves(random); left > 0; --left) {
      ASSERT_EQ(read(told[0], &least, sizeof least), long{sizeof least});
    }
    std::this_thread::sleep_for(Micros(moment(random)));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (long step = 0; read(told[0], &step, sizeof step) == sizeof step;) {
      least = step;
    }
    close(told[0]);
    // What the next start does first.
    clear_leftovers(run());
    const auto latest = latest_valid(run());
    ASSERT_TRUE(latest.checkpoint) << kill_number;
    EXPECT_TRUE(latest.skipped.empty()) << latest.skipped[0];
    ASSERT_GE(latest.checkpoint->step(), least);
    least = latest.checkpoint->step();
    expect_whole(*latest.checkpoint, least);
    if (const auto best = best_checkpoint(run())) {
      EXPECT_NO_THROW(Checkpoint::load(checkpoint_path(run(), best->step)));
    }
  }
  EXPECT_GT(least, 10) << "too few saves to have been interrupted";
}

}  // namespace
}  // namespace hearth::train
