// The loss of preference pairs against its formula, written out in double from
// log probabilities of single tokens.
#include <cmath>
#include <map>
#include <set>

#include "hearth/base/atomic_file.h"
#include "hearth/models/adapters.h"
#include "hearth/models/load.h"
#include "hearth/train/loop/run_model.h"
#include "hearth/train/loop/trainer_case_test.h"
#include "hearth/train/objectives/preference.h"
#include "hearth/train/step/accumulator.h"

namespace hearth::train {
namespace {

const std::string kBase = HEARTH_SOURCE_DIR "/tests/golden/models/llama3-gqa";
constexpr int kRowLength = 7;

models::LoadedModel adapted(float dropout) {
  auto model = models::load_model(
      kBase, {.use = models::Use::frozen_base, .compute = mx::float32}
  );
  nn::LoraConfig config;
  config.rank = 3, config.alpha = 6, config.dropout = dropout;
  config.targets = {"q_proj", "v_proj", "down_proj"};
  models::attach_adapters(*model.decoder, *model.source, config);
  for (nn::Weight* p : model.decoder->parameters().trainable()) {
    RandomStream random{RandomKey(5).fold(p->name)};
    for (std::size_t i = 0; i < p->value().size(); ++i) {
      p->value().data<float>()[i] = static_cast<float>(0.3 * random.normal());
    }
  }
  return model;
}

// Two pairs; the last two tokens of a row carry no loss.
MicroBatch two_pairs() {
  data::Batch b;
  b.rows = 4, b.length = kRowLength;
  RandomStream random{RandomKey(9)};
  for (std::uint32_t i = 0; i < b.rows * b.length; ++i) {
    b.ids.push_back(static_cast<std::int32_t>(random.below(60)));
    b.targets.push_back(static_cast<std::int32_t>(random.below(60)));
    b.segments.push_back(1);
    b.positions.push_back(static_cast<std::int32_t>(i % b.length));
    b.weights.push_back(i % b.length >= 5 ? 0.0f : 1.0f);
  }
  for (std::uint32_t row = 0; row < b.rows; ++row) {
    b.samples.push_back({.row = row, .length = b.length, .document = row});
  }
  return make_micro_batch(b, 0, b.rows, RandomKey(4));
}

nn::Pass pass_over(const MicroBatch& m, bool adapters, bool noise) {
  nn::Pass pass;
  pass.dtype = mx::float32;
  pass.quantized = ops::QuantCompute::kExact;
  pass.positions = m.positions, pass.length = m.length;
  pass.adapters = adapters, pass.training = noise;
  if (noise) pass.noise = m.noise;
  return pass;
}

// Chosen minus rejected of each pair, from logits and in double.
std::vector<double> margins_of(
    const models::Decoder& model,
    const MicroBatch& m,
    const nn::Pass& pass
) {
  auto logits = model.logits(model.hidden(m.ids, pass), pass);
  logits.eval();
  const int vocabulary = logits.shape(-1);
  std::vector<double> rows(static_cast<std::size_t>(m.rows));
  for (std::size_t at = 0; at < m.ids.size(); ++at) {
    if (m.weights.data<float>()[at] == 0) continue;
    const float* y =
        logits.data<float>() + at * static_cast<std::size_t>(vocabulary);
    double sum = 0;
    for (int i = 0; i < vocabulary; ++i) sum += std::exp(double{y[i]});
    rows[at / kRowLength] +=
        y[m.targets.data<std::int32_t>()[at]] - std::log(sum);
  }
  std::vector<double> out;
  for (std::size_t r = 0; r < rows.size(); r += 2) {
    out.push_back(rows[r] - rows[r + 1]);
  }
  return out;
}

double loss_at(
    double beta,
    const std::vector<double>& policy,
    const std::vector<double>& start
) {
  double loss = 0;
  for (std::size_t i = 0; i < policy.size(); ++i) {
    loss += std::log1p(std::exp(-beta * (policy[i] - start[i])));
  }
  return loss;
}

TEST(PreferenceArithmetic, BetaMultipliesWhatTheModelGained) {
  mx::set_default_device(mx::Device::cpu);
  const auto model = adapted(0);
  const auto m = two_pairs();
  const auto policy = margins_of(*model.decoder, m, pass_over(m, true, false));
  const auto start = margins_of(*model.decoder, m, pass_over(m, false, false));
  ASSERT_GT(std::abs(policy[0] - start[0]), 0.1);
  for (const float beta : {0.05f, 0.3f, 2.0f}) {
    const auto got =
        loss_of(*model.decoder, Preference(beta), m, mx::float32).loss_sum;
    EXPECT_NEAR(got, loss_at(double{beta}, policy, start), 1e-4) << beta;
  }
}

// How often each kind of op stands in what must be computed for an array.
void count_ops(
    const mx::array& a,
    std::map<std::string, int>& ops,
    std::set<const void*>& seen
) {
  if (!a.has_primitive() || !seen.insert(&a.primitive()).second) return;
  ++ops[a.primitive().name()];
  for (const auto& input : a.inputs()) count_ops(input, ops, seen);
}

std::map<std::string, int> ops_of(const mx::array& a) {
  std::map<std::string, int> ops;
  std::set<const void*> seen;
  count_ops(a, ops, seen);
  return ops;
}

// The start is a measure: it is evaluated, as a validation is, while the model
// beside it trains and drops what it is told to.
TEST(PreferenceArithmetic, TheStartIsEvaluatedWhileTheModelTrains) {
  mx::set_default_device(mx::Device::cpu);
  const auto model = adapted(0.5f);
  const auto m = two_pairs();
  const TempFolder folder;
  const std::string saved = folder.path() + "/start";
  models::save_adapter(*model.decoder, kBase, saved, false);
  const auto set =
      models::read_adapter(*model.decoder, *model.source, mx::float32, saved);
  const Preference objective(0.3f, set);
  const auto start = margins_of(*model.decoder, m, pass_over(m, true, false));
  const auto policy = margins_of(*model.decoder, m, pass_over(m, true, true));
  ASSERT_GT(std::abs(policy[0] - start[0]), 0.05) << "dropout did nothing";
  const auto got = gradients_of(*model.decoder, objective, m, mx::float32);
  EXPECT_NEAR(got.loss_sum, loss_at(double{0.3f}, policy, start), 1e-4);

  const auto scored = [&](const nn::Pass& pass) {
    return ops_of(model.decoder->log_probs(m.ids, m.targets, pass));
  };
  auto evaluation = pass_over(m, true, false);
  evaluation.lora = set.get();
  auto evaluated = scored(evaluation);
  auto trained = scored(pass_over(m, true, true));
  auto all =
      ops_of(objective(*model.decoder, m, pass_over(m, true, true)).loss_sum);
  ASSERT_NE(evaluated["Linears"], 0);
  for (const char* op : {"Linears", "Linear", "Fork", "HeadLogProbs"}) {
    EXPECT_EQ(all[op], evaluated[op] + trained[op]) << op;
  }
}

// A micro-batch of three rows would tear a pair.
TEST(PairRows, StayTogetherHoweverManyRowsFit) {
  mx::set_default_device(mx::Device::cpu);
  const auto model = adapted(0);
  data::Batch b;
  b.rows = 8, b.length = kRowLength;
  RandomStream random{RandomKey(9)};
  for (std::uint32_t i = 0; i < b.rows * b.length; ++i) {
    b.ids.push_back(static_cast<std::int32_t>(random.below(60)));
    b.targets.push_back(static_cast<std::int32_t>(random.below(60)));
    b.segments.push_back(1);
    b.positions.push_back(static_cast<std::int32_t>(i % b.length));
    b.weights.push_back(1);
  }
  const AccumulateOptions options{.compute = mx::float32};
  const Preference objective(0.3f);
  double want = 0;
  for (std::uint32_t row = 0; row < b.rows; row += 2) {
    want += loss_of(
                *model.decoder, objective, make_micro_batch(b, row, row + 2),
                mx::float32
    )
                .loss_sum;
  }
  for (std::uint32_t rows : {1U, 3U, 5U, 8U}) {
    const auto g = accumulate(*model.decoder, objective, b, rows, options);
    EXPECT_EQ(rows % 2, 0u);
    EXPECT_EQ(g.weight_sum, 4);
    EXPECT_NEAR(g.loss_sum, want, 1e-4);
  }
}

// From the recipe on: dpo_beta is that beta.
class PreferenceRecipe : public TrainerCase {};

TEST_F(PreferenceRecipe, DpoBetaIsTheRecipes) {
  {
    Session session = open({"train.steps=1", "data.valid=off"});
    RunDirectory run(path("base"), RunMode::fresh);
    run.describe({});
    describe_model(session, run.path());
    Trainer(session, run, {}).run();
    write_model(session, run.path());
  }
  std::string pairs;
  for (int i = 0; i < 8; ++i) {
    pairs += R"({"prompt": "Once )" + std::to_string(i) +
             R"(", "chosen": " there was", "rejected": " no no"})" + "\n";
  }
  const std::string file = path("pairs.jsonl");
  write_file_atomically(file, pairs);
  const auto loss = [&](const char* beta, bool lora) {
    Recipe recipe;
    ConfigReader reader(recipe);
    reader.apply(parse_yaml(
        "model: {from: " + path("base") + "/model}\ndata: {train: " + file +
            ", length: 32, workers: 0}\ntrain: {objective: dpo, "
            "tokens_per_step: 256, precision: fp32, dpo_beta: " +
            beta + "}\n" + (lora ? "lora: {rank: 4}\n" : ""),
        "recipe"
    ));
    Session s = opened(std::move(recipe));
    // As if training had moved it.
    for (nn::Weight* p : s.model->parameters().trainable()) {
      RandomStream random{RandomKey(6).fold(p->name)};
      for (std::size_t i = 0; i < p->value().size(); ++i) {
        p->value().data<float>()[i] +=
            static_cast<float>(0.1 * random.normal());
      }
      if (p->packed()) nn::pack(*p, mx::float32, ops::PackedOrders::both);
    }
    data::Loader loader(s.cache, s.train_loader());
    data::Batch b;
    EXPECT_TRUE(loader.next(b));
    const auto got =
        loss_of(*s.model, *s.objective, make_micro_batch(b, 0, 2), mx::float32);
    EXPECT_EQ(got.weight_sum, 1);
    return got.loss_sum;
  };
  for (const bool lora : {true, false}) {
    SCOPED_TRACE(lora);
    // The margin that one beta shows is the one that another one shows.
    const auto margin = [&](const char* beta) {
      return -std::log(std::expm1(loss(beta, lora))) / std::stod(beta);
    };
    const double small = margin("0.05"), large = margin("0.7");
    EXPECT_GT(std::abs(large), 0.01);
    EXPECT_NEAR(small, large, 0.02 * std::abs(large) + 1e-4);
  }
}

}  // namespace
}  // namespace hearth::train
