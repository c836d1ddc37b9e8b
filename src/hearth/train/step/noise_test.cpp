// Noise belongs to a token of a document at a step, and to nothing else; how
// large it is, its papers say.
#include <cmath>
#include <map>
#include <set>

#include "hearth/data/read/dataset_test_impl.h"
#include "hearth/train/loop/trainer_case_test.h"

namespace hearth::train {
namespace {

using Place = std::pair<std::uint64_t, std::uint32_t>;  // document, token
using Keys = std::map<Place, std::uint64_t>;

class Noise : public TrainerCase {};

// Every batch of an epoch.
std::vector<data::Batch> batches_of(const Session& s, const char* arrange) {
  Recipe recipe = s.recipe;
  recipe.data.arrange = arrange;
  auto config = train_loader(recipe, s.data.sources);
  config.epochs = 1;
  data::Loader loader(s.cache, config);
  std::vector<data::Batch> out;
  data::Batch b;
  while (loader.next(b)) out.push_back(b);
  return out;
}

Keys keys_of(const std::vector<data::Batch>& batches, RandomKey step) {
  Keys keys;
  for (const auto& b : batches) {
    const auto m = make_micro_batch(b, 0, b.rows, step);
    const auto* key = m.noise->data<std::uint64_t>();
    for (const auto& s : b.samples) {
      for (std::uint32_t i = 0; i < s.length; ++i) {
        keys[{s.document, s.begin + i}] = key[s.row * b.length + s.column + i];
      }
    }
  }
  return keys;
}

TEST_F(Noise, ATokensKeyIsTheSameWhereverItLies) {
  const Session s = open({});
  const auto packed = batches_of(s, "pack"), padded = batches_of(s, "pad");
  const RandomKey step(3);
  const Keys a = keys_of(packed, step), b = keys_of(padded, step);
  std::size_t both = 0;
  std::set<std::uint64_t> different;
  for (const auto& [place, key] : a) {
    different.insert(key);
    const auto at = b.find(place);
    if (at == b.end()) continue;
    ++both;
    EXPECT_EQ(at->second, key) << place.first << ", " << place.second;
  }
  EXPECT_GT(both, 200u);
  EXPECT_EQ(different.size(), a.size()) << "two tokens share a key";
  for (const auto& [place, key] : keys_of(packed, RandomKey(4))) {
    EXPECT_NE(a.at(place), key) << "another step, the same noise";
  }
}

// Cut at any row, the keys are those of the whole batch.
TEST_F(Noise, RowsThatAreCutKeepTheirKeys) {
  const Session s = open({});
  const auto b = batches_of(s, "pack").front();
  const RandomKey step(3);
  const auto whole = make_micro_batch(b, 0, b.rows, step);
  const auto part = make_micro_batch(b, 1, 3, step);
  const auto* all = whole.noise->data<std::uint64_t>();
  const auto* some = part.noise->data<std::uint64_t>();
  EXPECT_TRUE(std::equal(some, some + 2 * b.length, all + b.length));
}

// The loop itself: the same documents come again with other noise each time,
// and a run that goes on has the noise of one that never stopped.
TEST_F(Noise, EveryStepHasItsOwn) {
  std::vector<std::vector<std::uint64_t>> steps;
  const Words words = {
      "train.neftune=5", "train.steps=40", "optim.lr=1e-30", "data.limit=4",
      "data.valid=off"
  };
  std::size_t tokens = 0;
  {
    const Session session = open(words);
    for (const auto& set : session.cache->sets(data::Split::kTrain)) {
      tokens += set.tokens();
    }
  }
  train("noisy", words, [&](const MicroBatch& m) {
    const auto* key = m.noise->data<std::uint64_t>();
    steps.emplace_back(key, key + m.noise->size());
    return 1.0f;
  });
  ASSERT_EQ(steps.size(), 40u);
  std::set<std::uint64_t> different;
  std::size_t all = 0;
  for (const auto& keys : steps) {
    std::set<std::uint64_t> own(keys.begin(), keys.end());
    own.erase(0);  // padding
    all += own.size();
    different.insert(own.begin(), own.end());
  }
  ASSERT_GT(all, 2 * tokens) << "no document came again";
  EXPECT_EQ(different.size(), all) << "steps share noise";
}

// alpha / sqrt(L d), uniform in both directions.
TEST_F(Noise, NeftuneHasTheSizeOfItsPaper) {
  const Session s = open({});
  const auto b = batches_of(s, "pack").front();
  const auto m = make_micro_batch(b, 0, b.rows, RandomKey(9));
  nn::Pass pass;
  pass.dtype = mx::float32;
  pass.positions = m.positions, pass.segments = m.segments;
  pass.length = m.length;
  const auto embedded = [&] {
    std::vector<mx::array> states;
    s.model->hidden(m.ids, pass, &states);
    return states.front();
  };
  const auto plain = embedded();
  pass.noise = m.noise, pass.embedding_noise = 5, pass.training = true;
  auto noise = mx::subtract(embedded(), plain);
  noise.eval();
  const double limit = 5 / std::sqrt(32.0 * 16.0);
  double most = 0, square = 0, sum = 0;
  std::size_t counted = 0;
  for (const auto& sample : b.samples) {
    for (std::uint32_t i = 0; i < sample.length * 16; ++i) {
      const double x =
          noise.data<float>()[(sample.row * b.length + sample.column) * 16 + i];
      most = std::max(most, std::abs(x));
      square += x * x, sum += x, ++counted;
    }
  }
  ASSERT_GT(counted, 1000u);
  const auto n = static_cast<double>(counted);
  EXPECT_LE(most, limit * 1.0001);
  EXPECT_GT(most, 0.95 * limit);
  EXPECT_NEAR(square / n, limit * limit / 3, 0.1 * limit * limit);
  EXPECT_NEAR(sum / n, 0, 0.1 * limit);
}

// And the recipe's number is what reaches the model.
TEST_F(Noise, TheRecipeSaysHowMuch) {
  const auto loss = [&](const char* neftune) {
    double first = 0;
    TrainHooks hooks;
    hooks.on_step = [&](const StepMetrics& m) { first = m.loss; };
    train(
        std::string("n") + neftune,
        {std::string("train.neftune=") + neftune, "train.steps=1"}, {}, hooks
    );
    return first;
  };
  const double none = loss("0"), small = loss("0.001"), large = loss("500");
  EXPECT_NEAR(none, small, 1e-4);
  EXPECT_GT(std::abs(large - none), 5e-3);
}

}  // namespace
}  // namespace hearth::train
