#pragma once
// What tests of the loop share: a tiny run in a folder of its own, and an
// objective that looks at every batch on its way through.
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hearth/base/temp_folder_test.h"
#include "hearth/data/prepared_data.h"
#include "hearth/train/loop/trainer.h"

namespace hearth::train {

// The session's own objective; `see` is told of every micro-batch of training
// and says what its loss is multiplied by.
class Watched : public Objective {
 public:
  using See = std::function<float(const MicroBatch&)>;
  Watched(std::unique_ptr<Objective> inner, See see)
      : inner_(std::move(inner)), see_(std::move(see)) {}
  ObjectiveValue operator()(
      const models::Decoder& model,
      const MicroBatch& batch,
      const nn::Pass& pass
  ) const override {
    const float factor = pass.training ? see_(batch) : 1;
    auto v = (*inner_)(model, batch, pass);
    if (factor == 1) return v;
    return {mx::multiply(v.loss_sum, mx::array(factor)), v.weight_sum};
  }
  std::uint32_t row_group() const override { return inner_->row_group(); }
  bool draws_noise() const override { return inner_->draws_noise(); }

 private:
  std::unique_ptr<Objective> inner_;
  See see_;
};

class TrainerCase : public testing::Test {
 protected:
  TrainerCase() {
    mx::set_default_device(mx::Device::cpu);
    ::setenv("HEARTH_CACHE", (folder_.path() + "/cache").c_str(), 1);
  }
  ~TrainerCase() override { ::unsetenv("HEARTH_CACHE"); }

  // What differs from a run of 20 steps, as overrides of its recipe.
  using Words = std::vector<std::string>;

  Session open(const Words& words = {}, Watched::See see = {}) const {
    Recipe recipe;
    ConfigReader reader(recipe);
    reader.apply(parse_yaml(
        "model: {dim: 16, layers: 1, heads: 2, ffn: 32}\n"
        "data: {synth: {n: 40, seed: 1}, valid: 20%, length: 32, workers: 0, "
        "tokenizer: {train: {vocab: 280}}}\n"
        "train: {steps: 20, tokens_per_step: 128, micro_batch_size: 4, "
        "precision: fp32, eval_tokens: 200}\n"
        "optim: {lr: 1.0e-3}\n",
        "recipe"
    ));
    for (const auto& word : words) reader.apply_override(word);
    return opened(std::move(recipe), std::move(see));
  }
  static Session opened(Recipe recipe, Watched::See see = {}) {
    Session s = open_session(std::move(recipe), [](const data::DataConfig& d) {
      return data::prepare_data(d, {.threads = 1});
    });
    if (see) {
      s.objective =
          std::make_unique<Watched>(std::move(s.objective), std::move(see));
    }
    return s;
  }

  TrainResult train(
      const std::string& name,
      const Words& words,
      Watched::See see = {},
      TrainHooks hooks = {}
  ) const {
    Session session = open(words, std::move(see));
    RunDirectory run(path(name), RunMode::fresh);
    run.describe({});
    return Trainer(session, run, std::move(hooks)).run();
  }
  TrainResult resume(const std::string& name, const Words& words) const {
    Session session = open(words);
    RunDirectory run(path(name), RunMode::resume);
    Trainer trainer(session, run, {});
    EXPECT_TRUE(trainer.resume());
    return trainer.run();
  }

  std::string path(const std::string& name) const {
    return folder_.path() + "/" + name;
  }
  // The objects of a file of JSON lines in a run's folder.
  std::vector<Json> lines(const std::string& run, const char* file) const {
    std::vector<Json> out;
    std::ifstream in(path(run) + "/" + file);
    for (std::string line; std::getline(in, line);) {
      out.push_back(parse_json(line, file));
    }
    return out;
  }
  std::vector<Json> metrics(const std::string& run) const {
    return lines(run, "metrics.jsonl");
  }

  TempFolder folder_;
};

inline std::vector<std::int32_t> ids_of(const MicroBatch& batch) {
  const auto* ids = batch.ids.data<std::int32_t>();
  return {ids, ids + batch.ids.size()};
}

}  // namespace hearth::train
