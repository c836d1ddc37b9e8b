// A whole step of plain training against numpy: documents are packed into rows
// by the loader, rows go through the model in two micro-batches, gradients are
// summed, divided, clipped and applied. tools/make_step_golden.py knows nothing
// of rows: it sends each document through the model alone.
#include <algorithm>

#include <gtest/gtest.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/temp_folder_test.h"
#include "hearth/data/read/dataset_test_impl.h"
#include "hearth/models/load.h"
#include "hearth/ops/leaf.h"
#include "hearth/train/loop/trainer.h"
#include "hearth/train/objectives/language_model.h"

namespace hearth::train {
namespace {

constexpr std::uint32_t kLength = 16, kRows = 4;

// Letters from 3 on: a vocabulary as small as the model's.
class Letters : public data::testing::ByteEncoder {
 public:
  void encode(
      std::string_view text,
      std::vector<std::int32_t>& out
  ) const override {
    for (const char c : text) out.push_back(c - 'a' + 3);
  }
  std::uint32_t vocabulary() const override { return 16; }
};

class StepGolden : public testing::Test {
 protected:
  StepGolden()
      : golden_(
            read_json_file(HEARTH_SOURCE_DIR "/tests/golden/train_step.json")
        ) {
    mx::set_default_device(mx::Device::cpu);
  }

  std::vector<data::DataSource> sources() const {
    std::string text;
    for (const Json& d : golden_.at("documents")) {
      text +=
          to_json_line(
              {{"prompt", d.at("prompt")}, {"completion", d.at("completion")}}
          ) +
          "\n";
    }
    const std::string file = folder_.path() + "/documents.jsonl";
    write_file_atomically(file, text);
    return data::find_sources({file});
  }

  std::unique_ptr<models::Decoder> model() const {
    const Json& m = golden_.at("model");
    models::DecoderConfig c;
    c.family = "llama";
    c.vocab = m.at("vocab"), c.dim = m.at("dim"), c.layers = m.at("layers");
    c.heads = m.at("heads"), c.kv_heads = m.at("kv_heads");
    c.head_dim = m.at("head_dim"), c.ffn = m.at("ffn");
    c.max_length = static_cast<int>(kLength);
    c.windows = {0, 0};
    c.norm.eps = m.at("eps").get<float>();
    c.rope = ops::RopeConfig{
        .dims = c.head_dim, .base = m.at("theta").get<double>()
    };
    auto model = std::make_unique<models::Decoder>(c);
    for (nn::Weight* p : model->parameters().all()) {
      auto leaf =
          ops::make_leaf(p->shape, mx::float32, MemoryZone::named("step test"));
      const auto start =
          golden_.at("start").at(p->name).get<std::vector<float>>();
      EXPECT_EQ(start.size(), leaf.size()) << p->name;
      std::copy(start.begin(), start.end(), leaf.data<float>());
      p->set(leaf);
      p->trainable = true;
    }
    models::prepare(*model, mx::float32, models::Use::training);
    return model;
  }

  Session open(double clip, const std::vector<std::string>& words) const {
    const Json& o = golden_.at("optim");
    Session s;
    ConfigReader reader(s.recipe);
    for (const auto& word : words) reader.apply_override(word);
    s.recipe.data.length = kLength;
    s.recipe.data.workers = 0;
    auto& t = s.recipe.train;
    // One epoch is one batch.
    t.epochs = 1, t.tokens_per_step = kRows * kLength;
    t.precision = "fp32";
    auto& optim = s.recipe.optim;
    optim.lr = o.at("lr"), optim.schedule = "constant";
    optim.weight_decay = o.at("weight_decay"), optim.eps = o.at("eps");
    optim.betas = {o.at("beta1"), o.at("beta2")};
    optim.clip = clip;
    s.data.sources = sources();
    data::PrepareOptions options;
    options.folder = folder_.path() + "/cache";
    options.threads = 1;
    const data::ExampleEncoder encoder(
        std::make_shared<Letters>(), nullptr, {}
    );
    prepare_cache(s.data.sources, {}, encoder, options);
    s.cache = std::make_shared<data::TokenCache>(options.folder);
    s.compute = mx::float32;
    s.model = model();
    s.objective = std::make_unique<LanguageModel>();
    return s;
  }

  // The loader gives what numpy had: every document once, whole, with company.
  void expect_all_documents(const Session& s) const {
    data::LoaderConfig config = s.train_loader();
    config.epochs = 1;
    data::Loader loader(s.cache, config);
    data::Batch b;
    ASSERT_TRUE(loader.next(b));
    ASSERT_EQ(b.rows, kRows);
    ASSERT_EQ(b.samples.size(), golden_.at("documents").size());
    std::vector<bool> seen(b.samples.size());
    for (const auto& sample : b.samples) {
      const Json& d = golden_.at("documents").at(sample.document);
      const auto ids = d.at("ids").get<std::vector<std::int32_t>>();
      const auto learnt = d.at("learnt").get<std::vector<float>>();
      ASSERT_EQ(sample.length + 1, ids.size());
      ASSERT_FALSE(seen[sample.document]);
      seen[sample.document] = true;
      const auto at =
          static_cast<std::ptrdiff_t>(sample.row * kLength + sample.column);
      ASSERT_TRUE(std::equal(ids.begin(), ids.end() - 1, b.ids.begin() + at));
      ASSERT_TRUE(
          std::equal(ids.begin() + 1, ids.end(), b.targets.begin() + at)
      );
      ASSERT_TRUE(
          std::equal(learnt.begin() + 1, learnt.end(), b.weights.begin() + at)
      );
    }
    EXPECT_FALSE(loader.next(b));
  }

  void expect_run(const Json& want, const std::vector<std::string>& words) {
    Session s = open(want.at("clip").get<double>(), words);
    expect_all_documents(s);
    RunDirectory run(
        folder_.path() + "/run" + std::to_string(runs_++), RunMode::fresh
    );
    run.describe({});
    std::vector<StepMetrics> steps;
    TrainHooks hooks;
    hooks.on_step = [&](const StepMetrics& m) { steps.push_back(m); };
    Trainer(s, run, hooks).run();
    ASSERT_EQ(steps.size(), 1u);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      EXPECT_NEAR(steps[i].loss, want.at("losses").at(i).get<double>(), 2e-5);
      EXPECT_NEAR(
          steps[i].grad_norm, want.at("norms").at(i).get<double>(), 1e-4
      );
      EXPECT_FALSE(steps[i].skipped);
    }
    for (const nn::Weight* p : s.model->parameters().all()) {
      const auto end = want.at("end").at(p->name).get<std::vector<double>>();
      double worst = 0;
      for (std::size_t i = 0; i < end.size(); ++i) {
        const double got = p->value().data<float>()[i];
        worst = std::max(worst, std::abs(got - end[i]));
      }
      EXPECT_LT(worst, 1e-4) << p->name;
    }
  }

  Json golden_;
  TempFolder folder_;
  int runs_ = 0;
};

TEST_F(StepGolden, APlainRunIsNumpys) {
  expect_run(golden_.at("runs").at(0), {"train.micro_batch_size=2"});
}

TEST_F(StepGolden, SoIsAClippedOne) {
  expect_run(golden_.at("runs").at(1), {"train.micro_batch_size=2"});
}

// However rows are cut, put together, computed twice or packed.
TEST_F(StepGolden, SoIsEveryWayToRunTheSameStep) {
  using Words = std::vector<std::string>;
  for (const Words& words :
       {Words{"train.micro_batch_size=4"}, Words{"train.micro_batch_size=1"},
        Words{"train.micro_batch_size=1", "train.eval_interval=4"},
        Words{"train.micro_batch_size=3"}}) {
    SCOPED_TRACE(words.front());
    expect_run(golden_.at("runs").at(1), words);
  }
}

}  // namespace
}  // namespace hearth::train
