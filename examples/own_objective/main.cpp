// An objective of your own, trained by Hearth's loop: the focal loss, which
// counts a token less the surer the model is of it already.
//
//   own_objective RUN_FOLDER
//
// The class says what is minimised; its kind says how a recipe names it and
// which keys it has. The loop, checkpoints, validation and `metrics.jsonl` are
// those of `hearth train`.
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "hearth/data/prepared_data.h"
#include "hearth/train/loop/run_model.h"
#include "hearth/train/loop/trainer.h"
#include "hearth/train/objectives/objective_kind.h"
#include "hearth/train/plan/planner.h"

using namespace hearth;
namespace mx = mlx::core;

namespace {

// What a recipe may say of it: train.focal_gamma.
struct FocalConfig {
  double focal_gamma = 2;

  void fields(FieldVisitor& v) {
    v("focal_gamma", focal_gamma, "0: plain cross-entropy", at_least(0));
  }
};

class Focal : public train::Objective {
 public:
  explicit Focal(float gamma) : gamma_(gamma) {}

  train::ObjectiveValue operator()(
      const models::Decoder& model,
      const train::MicroBatch& batch,
      const nn::Pass& pass
  ) const override {
    const auto log_p = model.log_probs(batch.ids, batch.targets, pass);
    const auto p = mx::exp(log_p);
    const auto missed = mx::subtract(mx::array(1.0f), p);
    // A validation measures plain cross-entropy, whatever training adds to it.
    const auto focus =
        pass.training ? mx::power(missed, mx::array(gamma_)) : mx::array(1.0f);
    const auto loss = mx::negative(mx::multiply(focus, log_p));
    const auto sure = mx::astype(mx::greater(p, mx::array(0.5f)), mx::float32);
    // Sums over the tokens that count; the loop divides them by weight_sum.
    return {
        mx::sum(mx::multiply(loss, batch.weights)),
        mx::sum(batch.weights),
        {{"sure", mx::sum(mx::multiply(sure, batch.weights))}}
    };
  }

 private:
  float gamma_;
};

train::ObjectiveKind focal_kind() {
  train::ObjectiveKind kind;
  kind.name = "focal";
  kind.config = [] { return train::ObjectiveConfig(FocalConfig()); };
  kind.make = [](const train::Session& s) -> std::unique_ptr<train::Objective> {
    const auto& own = s.recipe.train.objectives.get<FocalConfig>();
    return std::make_unique<Focal>(static_cast<float>(own.focal_gamma));
  };
  return kind;
}

constexpr const char* kRecipe =
    "model: {dim: 64, layers: 2, heads: 2, ffn: 128}\n"
    "data: {synth: {kind: stories, n: 200, seed: 1}, valid: 10%, length: 64,\n"
    "       tokenizer: {train: {vocab: 300}}}\n"
    "train: {objective: focal, focal_gamma: 1.5, steps: 60, eval_every: 20,\n"
    "        tokens_per_step: 1024}\n"
    "optim: {name: muon, lr: 2.0e-2, warmup: 5}\n";

// Told of every step; here the losses are printed.
class Print : public train::MetricSink {
 public:
  void step(const Json& line) override {
    if (!line.contains("valid_loss")) return;
    std::printf(
        "step %2d  loss %.3f  valid %.3f  sure of %.1f %%\n",
        line.at("step").get<int>(), line.at("loss").get<double>(),
        line.at("valid_loss").get<double>(),
        100 * line.at("valid_sure").get<double>()
    );
  }
};

void train_in(const std::string& folder) {
  // Before a recipe is made, so that the recipe has its keys.
  train::add_objective(focal_kind());
  train::Recipe recipe;
  ConfigReader reader(recipe);
  reader.apply(parse_yaml(kRecipe, "the recipe"));
  // The planner goes through the graph of the class above.
  const train::Plan plan =
      train::make_plan(recipe, train::planned_model(recipe), {});
  std::printf(
      "planned: %zu MiB; %s\n", plan.memory.total() >> 20,
      plan.reasons.back().c_str()
  );
  train::Session session =
      train::open_session(recipe, [](const data::DataConfig& d) {
        return data::prepare_data(d, {});
      });
  train::RunDirectory run(folder, train::RunMode::fresh);
  run.describe({.config = reader.to_yaml()});
  train::describe_model(session, folder);
  train::LoopEnds ends = train::loop_ends(session, run);
  ends.sinks.push_back(std::make_unique<Print>());
  train::Trainer trainer(session, run, {}, std::move(ends));
  trainer.run();
  trainer.restore_best();
  train::write_model(session, folder);
  std::printf("%s/model is the model\n", folder.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: own_objective RUN_FOLDER\n");
    return 2;
  }
  try {
    train_in(argv[1]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "own_objective: %s\n", e.what());
    return 1;
  }
}
