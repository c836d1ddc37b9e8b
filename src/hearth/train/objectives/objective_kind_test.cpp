// An objective that this area does not know, added as an area above it would:
// its keys, checks and needs hold, and the loop trains by it.
#include "hearth/train/objectives/objective_kind.h"

#include "hearth/base/error.h"
#include "hearth/ops/op.h"
#include "hearth/train/loop/trainer_case_test.h"
#include "hearth/train/objectives/language_model.h"
#include "hearth/train/plan/planner.h"
#include "hearth/train/recipe/recipe_changes.h"

namespace hearth::train {
namespace {

struct TaughtSection {
  double strength = 1;
  void fields(FieldVisitor& v) {
    v("strength", strength, "of what the rows are multiplied by", positive());
  }
};
struct TaughtConfig {
  TaughtSection taught;
  void fields(FieldVisitor& v) { v("taught", taught, "taught's own"); }
};

// The loss of a language model, each token multiplied by what a teacher (here:
// the token itself) says of it.
class Taught : public Objective {
 public:
  explicit Taught(float strength) : strength_(strength) {}
  ObjectiveValue operator()(
      const models::Decoder& model,
      const MicroBatch& batch,
      const nn::Pass& pass
  ) const override {
    const auto weights = mx::multiply(batch.weights, batch.extra.at(0));
    nn::Pass plain = pass;
    plain.plain_loss = true;
    const auto loss = model.loss(batch.ids, batch.targets, weights, plain, {});
    const auto counted = mx::sum(batch.weights);
    return {
        loss.loss_sum, counted, {{"taught", mx::sum(weights)}, {"one", counted}}
    };
  }
  std::uint32_t row_group() const override { return 2; }
  void attach(
      const data::Batch& batch,
      std::uint32_t begin,
      std::uint32_t end,
      MicroBatch& rows
  ) const override {
    const auto length = static_cast<std::size_t>(batch.length);
    std::vector<float> of;
    for (std::size_t i = begin * length; i < end * length; ++i) {
      of.push_back(strength_ * static_cast<float>(1 + batch.ids[i] % 2));
    }
    rows.extra = {mx::array(of.data(), {rows.rows, rows.length})};
  }

 private:
  float strength_;
};

// Once for all tests of the program.
void add_taught() {
  static const bool once = [] {
    add_objective({
        .name = "taught",
        .needs = {.row_group = 2},
        .config = [] { return ObjectiveConfig(TaughtConfig()); },
        .check =
            [](const Recipe& r) {
              if (r.optim.clip > 0) return;
              throw UsageError("optim.clip must be above 0 with taught");
            },
        .make = [](const Session& s) -> std::unique_ptr<Objective> {
          const auto& own = s.recipe.train.objectives.get<TaughtConfig>();
          return std::make_unique<Taught>(
              static_cast<float>(own.taught.strength)
          );
        },
    });
    return true;
  }();
  EXPECT_TRUE(once);
}

class ObjectiveKinds : public TrainerCase {
 protected:
  ObjectiveKinds() { add_taught(); }

  static std::string refusal(const Words& words) {
    Recipe recipe;
    ConfigReader reader(recipe);
    try {
      for (const auto& word : words) reader.apply_override(word);
      recipe.check();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
  static bool names(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
};

TEST_F(ObjectiveKinds, AreFoundByTheirNames) {
  EXPECT_EQ(objective_kind("lm").name, "lm");
  EXPECT_TRUE(objective_kind("dpo").needs.pairs);
  EXPECT_EQ(objective_kind("taught").needs.row_group, 2u);
  EXPECT_THROW(objective_kind("taut"), UsageError);
  EXPECT_THROW(add_objective({.name = "lm"}), UsageError);
  EXPECT_TRUE(names(refusal({"train.objective=taut"}), "taught"));
}

TEST_F(ObjectiveKinds, TheirNeedsAndChecksHoldForARecipe) {
  EXPECT_EQ(refusal({"train.objective=taught"}), "");
  EXPECT_TRUE(names(
      refusal({"train.objective=taught", "optim.clip=0"}),
      "optim.clip must be above 0 with taught"
  ));
  EXPECT_TRUE(names(
      refusal(
          {"train.objective=taught", "train.tokens_per_step=96",
           "data.length=32"}
      ),
      "an even number of rows with train.objective taught"
  ));
  EXPECT_TRUE(
      names(refusal({"train.taught.strength=-1"}), "train.taught.strength")
  );
}

TEST_F(ObjectiveKinds, AKeyOfAnotherOneIsRemarkedOn) {
  Recipe recipe;
  ConfigReader reader(recipe);
  reader.apply_override("train.taught.strength=3");
  reader.apply_override("train.z_loss=0.1");
  EXPECT_EQ(
      recipe.remarks(),
      Words{"train.taught.strength is not used with train.objective lm"}
  );
}

TEST_F(ObjectiveKinds, AKeyMayNotChangeUnlessItSaysSo) {
  Recipe before, now;
  now.train.objectives.get<TaughtConfig>().taught.strength = 3;
  EXPECT_THROW(check_resumable(before, now), UsageError);
  now = before;
  now.train.objectives.get<LanguageModelConfig>().z_loss = 3;
  EXPECT_NO_THROW(check_resumable(before, now));
}

TEST_F(ObjectiveKinds, TheLoopTrainsByOneItDoesNotKnow) {
  const auto run = [&](const std::string& name, const char* strength,
                       const char* rows) {
    const auto result = train(
        name,
        {"train.objective=taught",
         std::string("train.taught.strength=") + strength, "train.steps=2",
         "optim.lr=1e-30", std::string("train.micro_batch_size=") + rows}
    );
    EXPECT_EQ(result.steps, 2);
    return metrics(name).back();
  };
  const Json one = run("one", "1", "4");
  EXPECT_EQ(one.at("valid_one"), 1.0);
  EXPECT_GT(one.at("valid_taught"), 1.0);
  EXPECT_LT(one.at("valid_taught"), 2.0);
  // However rows are cut, they get what is theirs.
  const Json cut = run("cut", "1", "2");
  EXPECT_EQ(cut.at("micro_batch"), 2);
  EXPECT_NEAR(cut.at("loss"), one.at("loss"), 1e-5);
  EXPECT_NEAR(cut.at("valid_loss"), one.at("valid_loss"), 1e-5);
  {
    const ops::ScopedFace gpu(ops::Face::gpu);
    const Json there = run("there", "1", "2");
    EXPECT_NEAR(there.at("loss"), one.at("loss"), 1e-4);
    EXPECT_NEAR(there.at("valid_loss"), one.at("valid_loss"), 1e-4);
  }
  const Json twice = run("twice", "2", "4");
  for (const char* key : {"loss", "valid_loss", "valid_taught"}) {
    EXPECT_NEAR(twice.at(key), 2 * one.at(key).get<double>(), 1e-4) << key;
  }
}

// Two passes over the model in place of one, of pairs of rows. One that looks
// at its numbers on the way cannot be planned.
class Twofold : public Objective {
 public:
  explicit Twofold(bool looks) : looks_(looks) {}
  ObjectiveValue operator()(
      const models::Decoder& model,
      const MicroBatch& batch,
      const nn::Pass& pass
  ) const override {
    if (batch.rows % 2 != 0) throw Error("half a pair");
    const auto once = model.log_probs(batch.ids, batch.targets, pass);
    const auto again = model.log_probs(batch.targets, batch.ids, pass);
    auto sum = mx::negative(mx::sum(mx::multiply(once, again)));
    if (looks_) sum = mx::multiply(sum, mx::array(mx::abs(sum).item<float>()));
    return {sum, mx::sum(batch.weights)};
  }
  std::uint32_t row_group() const override { return 2; }

 private:
  bool looks_;
};

TEST_F(ObjectiveKinds, ThePlannerGoesThroughItsGraph) {
  static const bool once = [] {
    for (const bool looks : {false, true}) {
      add_objective({
          .name = looks ? "looks" : "twofold",
          .needs = {.row_group = 2},
          .make = [looks](const Session&) -> std::unique_ptr<Objective> {
            return std::make_unique<Twofold>(looks);
          },
      });
    }
    return true;
  }();
  EXPECT_TRUE(once);
  const auto plan = [](const std::string& name, std::int64_t rows = 8,
                       std::vector<std::int64_t> lengths = {}) {
    Recipe r;
    r.train.objective = name;
    r.model.dim = 64, r.model.layers = 4, r.model.heads = 2;
    r.model.ffn = 128, r.model.vocab = 256;
    r.data.length = 128;
    r.train.tokens_per_step = 3840, r.train.micro_batch_size = rows;
    r.train.seq_lengths = std::move(lengths);
    return make_plan(r, planned_model(r), {});
  };
  const auto remarked = [](const Plan& p) {
    return names(p.reasons.back(), "planned as a language model");
  };
  const Plan plain = plan("lm"), twofold = plan("twofold");
  const auto share = static_cast<double>(twofold.memory.activations) /
                     static_cast<double>(plain.memory.activations);
  EXPECT_GT(share, 1.7);
  EXPECT_LT(share, 2.3);
  EXPECT_FALSE(remarked(twofold)) << twofold.reasons.back();
  // With arrays beside the tokens.
  EXPECT_FALSE(remarked(plan("taught")));
  EXPECT_GT(plan("taught").memory.total(), plain.memory.total());
  // Rows stay together: of 96 tokens five would have as many as four of 128.
  EXPECT_FALSE(remarked(plan("twofold", 4, {96, 128})));
  EXPECT_FALSE(remarked(plan("dpo", 3)));
  EXPECT_EQ(plan("dpo", 3).memory.total(), plan("dpo", 2).memory.total());
  const Plan looks = plan("looks");
  EXPECT_TRUE(remarked(looks)) << looks.reasons.back();
  EXPECT_EQ(looks.memory.total(), plain.memory.total());
}

// What it was checked and planned as is what it must be.
TEST_F(ObjectiveKinds, OneThatIsNotAsItsKindSaysIsRefused) {
  static const bool once = [] {
    add_objective({
        .name = "torn",
        .make = [](const Session&) -> std::unique_ptr<Objective> {
          return std::make_unique<Taught>(1.0f);
        },
    });
    return true;
  }();
  EXPECT_TRUE(once);
  EXPECT_THROW(open({"train.objective=torn"}), Error);
}

}  // namespace
}  // namespace hearth::train
