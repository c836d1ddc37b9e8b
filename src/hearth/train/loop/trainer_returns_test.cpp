// What comes back when a run goes on, or back: rows of a micro-batch, the
// place in the data. And what a validation is the loss of.
#include <limits>

#include "hearth/base/error.h"
#include "hearth/base/memory.h"
#include "hearth/train/loop/trainer_case_test.h"
#include "hearth/train/loop/validation.h"
#include "hearth/train/step/gradient.h"

namespace hearth::train {
namespace {

class TrainerReturns : public TrainerCase {};

// Memory runs out once, in the second step, and rows are halved. The run that
// goes on later has learnt that too.
TEST_F(TrainerReturns, RowsThatRanOutOfMemoryStayFewer) {
  const Words words = {"train.steps=8", "train.eval_every=0"};
  long seen = 0;
  bool stop = false;
  TrainHooks hooks;
  hooks.stop = [&] { return stop; };
  hooks.on_step = [&](const StepMetrics& m) { stop = m.step == 3; };
  const auto fail_once = [&](const MicroBatch&) {
    if (++seen == 2) fail_memory_charge(1);
    return 1.0f;
  };
  EXPECT_THROW(train("less", words, fail_once, hooks), Interrupted);
  fail_memory_charge(0);
  resume("less", words);
  const auto lines = metrics("less");
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_EQ(lines[0].at("micro_batch"), 4);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].at("micro_batch"), 2) << "step " << i + 1;
  }
}

// One that is cut in another way from here on begins with what the plan says.
TEST_F(TrainerReturns, ARunThatIsCutInAnotherWayTriesTheRowsAgain) {
  long seen = 0;
  train("cut", {"train.steps=3"}, [&](const MicroBatch&) {
    if (++seen == 2) fail_memory_charge(1);
    return 1.0f;
  });
  fail_memory_charge(0);
  resume("cut", {"train.steps=5", "train.checkpointing=all"});
  const auto lines = metrics("cut");
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[2].at("micro_batch"), 2);
  EXPECT_EQ(lines[3].at("micro_batch"), 4);
}

// Batches 1, 2, 3, ... as they were drawn: after a roll-back the next one, none
// of those that went wrong.
TEST_F(TrainerReturns, ARollBackGoesOnWithBatchesNotSeenYet) {
  std::vector<std::vector<std::int32_t>> drawn;
  std::string said;
  TrainHooks hooks;
  hooks.note = [&](const std::string& text) { said += text; };
  train(
      "back", {"train.save_every=1", "train.keep=99", "data.valid=off"},
      [&](const MicroBatch& m) {
        drawn.push_back(ids_of(m));
        const bool bad = drawn.size() >= 12 && drawn.size() <= 14;
        return bad ? std::numeric_limits<float>::quiet_NaN() : 1.0f;
      },
      hooks
  );
  ASSERT_NE(said.find("rolled back"), std::string::npos) << said;
  ASSERT_GT(drawn.size(), 20u);
  const Session s = open({"data.valid=off"});
  data::Loader loader(s.cache, s.train_loader());
  data::Batch b;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    ASSERT_TRUE(loader.next(b));
    ASSERT_EQ(drawn[i], b.ids) << "batch " << i + 1;
  }
}

// Rows one at a time, until there is no room: the loss of these, and of no
// other.
TEST_F(TrainerReturns, AValidationIsTheLossOfItsOwnTokens) {
  for (const std::int64_t most : {40, 90, 150, 100000}) {
    SCOPED_TRACE(most);
    const Session s = open({"train.eval_tokens=" + std::to_string(most)});
    data::Loader loader(s.cache, s.valid_loader());
    data::Batch b;
    double loss = 0;
    std::int64_t tokens = 0;
    bool full = false;
    while (!full && loader.next(b)) {
      for (std::uint32_t row = 0; row < b.rows && !full; ++row) {
        const auto* w = b.weights.data() + row * b.length;
        const auto more = std::count(w, w + b.length, 1.0f);
        full = tokens > 0 && tokens + more > most;
        if (full) break;
        loss += loss_of(
                    *s.model, *s.objective, make_micro_batch(b, row, row + 1),
                    mx::float32
        )
                    .loss_sum;
        tokens += more;
      }
    }
    const Validation v = validate(s, 4);
    EXPECT_EQ(static_cast<std::int64_t>(v.tokens), tokens);
    EXPECT_NEAR(v.loss, loss / static_cast<double>(tokens), 1e-5);
    // However many rows go through the model together.
    EXPECT_NEAR(validate(s, 3).loss, v.loss, 1e-5);
  }
}

}  // namespace
}  // namespace hearth::train
