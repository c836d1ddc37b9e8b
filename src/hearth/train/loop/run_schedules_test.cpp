// What moves with the steps of a run: the rate, a scheduled gate. And what does
// not: documents that are held out, blocks that are checkpointed.
#include "hearth/train/loop/trainer_case_test.h"
#include "hearth/train/loop/validation.h"

namespace hearth::train {
namespace {

class RatesOfARun : public TrainerCase {};

TEST_F(RatesOfARun, AreTheSchedulesFromItsFirstStepOn) {
  train(
      "linear", {"train.steps=4", "optim.schedule=linear", "optim.lr=0.004",
                 "data.valid=off"}
  );
  const auto lines = metrics("linear");
  ASSERT_EQ(lines.size(), 4u);
  const double rates[] = {0.004, 0.003, 0.002, 0.001};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(lines[i].at("lr").get<double>(), rates[i], 1e-12);
  }
}

class GatedRun : public TrainerCase {};

// From 1 to 0 in ten steps: one tenth less at each.
TEST_F(GatedRun, AScheduledGateMovesWithEveryStep) {
  Session session = open(
      {"train.steps=5", "data.valid=off", "model.gate.alpha=linear",
       "model.gate.steps=10"}
  );
  std::vector<double> alphas;
  session.objective = std::make_unique<Watched>(
      std::move(session.objective), [&](const MicroBatch&) {
        auto alpha = session.model->gates().front()->alpha(mx::array(0.0f));
        alphas.push_back(alpha.item<float>());
        return 1.0f;
      }
  );
  RunDirectory run(path("gated"), RunMode::fresh);
  run.describe({});
  Trainer(session, run, {}).run();
  ASSERT_EQ(alphas.size(), 5u);
  const double begin = alphas.front(), step = alphas[1] - alphas[0];
  EXPECT_NEAR(std::abs(step), 0.1, 1e-6);
  for (std::size_t i = 0; i < alphas.size(); ++i) {
    EXPECT_NEAR(alphas[i], begin + step * static_cast<double>(i), 1e-5);
  }
}

class ValidationRows : public TrainerCase {};

// All that is held out and carries loss, and nothing else.
TEST_F(ValidationRows, AreTheHeldOutDocuments) {
  const Session s = open({"train.eval_tokens=1000000"});
  std::uint64_t learnt = 0;
  for (const auto& set : s.cache->sets(data::Split::kValid)) {
    for (std::uint64_t d = 0; d < set.documents(); ++d) {
      learnt += set.length(d) - 1;
    }
  }
  ASSERT_GT(learnt, 0u);
  EXPECT_EQ(validate(s, 4).tokens, learnt);
}

TEST(CheckpointedLayers, EveryNthFromTheNthOn) {
  using Flags = std::vector<bool>;
  EXPECT_EQ(
      checkpointed_layers("2", 5), (Flags{false, true, false, true, false})
  );
  EXPECT_EQ(checkpointed_layers("3", 3), (Flags{false, false, true}));
  EXPECT_EQ(checkpointed_layers("all", 2), (Flags{true, true}));
  EXPECT_EQ(checkpointed_layers("none", 2), Flags{});
}

}  // namespace
}  // namespace hearth::train
