// Documents that share rows train as if each were alone: from the loader's
// batch to the gradients, for every kind of position a model has. What they
// are compared with are rows of one document, made here from the cache.
#include <gtest/gtest.h>

#include "hearth/data/read/dataset_test_impl.h"
#include "hearth/train/objectives/language_model.h"
#include "hearth/train/step/accumulator.h"
#include "hearth/train/step/small_models_test.h"

namespace hearth::train {
namespace {

constexpr std::uint32_t kLength = 48;

models::DecoderConfig llama() {
  return small_llama(260, kLength);
}

models::DecoderConfig gpt2() {
  return small_gpt2(260, kLength);
}

models::DecoderConfig windowed() {
  auto c = llama();
  c.windows = {5, 0};
  c.attention_softcap = 5;
  return c;
}

std::unique_ptr<models::Decoder> make(const models::DecoderConfig& config) {
  auto model = made_large(config);
  models::prepare(*model, mx::float32, models::Use::training);
  return model;
}

class PackedPath : public testing::Test {
 protected:
  PackedPath() {
    mx::set_default_device(mx::Device::cpu);
    RandomStream random{RandomKey(11)};
    std::string text;
    for (int i = 0; i < 12; ++i) {
      const auto word = [&] {
        std::string w(2 + random.below(12), ' ');
        for (char& c : w) c = static_cast<char>('a' + random.below(26));
        return w;
      };
      text += R"({"prompt": ")" + word() + R"(", "completion": ")" + word() +
              "\"}\n";
    }
    data::PrepareOptions options;
    options.folder = folder_ / "cache";
    options.threads = 1;
    prepare_cache(
        data::find_sources({folder_.write("d.jsonl", text)}), {},
        data::testing::byte_encoder(), options
    );
    cache_ = std::make_shared<data::TokenCache>(options.folder);
  }

  data::Batch drawn(data::Arrange arrange) const {
    data::LoaderConfig c;
    c.arrange = arrange;
    c.shapes = {{kLength, 1}};
    c.tokens_per_batch = 4 * kLength;
    c.epochs = 1, c.workers = 0, c.seed = 5;
    data::Loader loader(cache_, c);
    data::Batch b;
    EXPECT_TRUE(loader.next(b));
    return b;
  }

  // A row that holds one stretch of a document and nothing else.
  data::Batch alone(const data::Sample& s) const {
    const auto place = cache_->sets(data::Split::kTrain)[0].place(s.document);
    std::vector<std::int32_t> ids(s.length + 1);
    place.shard->read(place.index, s.begin, ids);
    std::vector<float> learnt(s.begin + s.length + 1, 0);
    for (const auto& span : place.shard->spans(place.index)) {
      for (std::size_t i = span.begin; i < span.end && i < learnt.size(); ++i) {
        learnt[i] = 1;
      }
    }
    data::Batch b;
    b.rows = 1, b.length = s.length;
    for (std::uint32_t i = 0; i < s.length; ++i) {
      b.ids.push_back(ids[i]);
      b.targets.push_back(ids[i + 1]);
      b.weights.push_back(learnt[s.begin + i + 1]);
      b.segments.push_back(1);
      b.positions.push_back(static_cast<std::int32_t>(i));
    }
    return b;
  }

  void expect_as_alone(
      const models::DecoderConfig& config,
      const data::Batch& batch
  ) const {
    const auto model = make(config);
    const LanguageModel objective;
    double loss = 0, weight = 0;
    std::vector<mx::array> sums;
    for (const auto& s : batch.samples) {
      const auto g = gradients_of(
          *model, objective, make_micro_batch(alone(s), 0, 1), mx::float32
      );
      loss += g.loss_sum, weight += g.weight_sum;
      for (std::size_t i = 0; i < g.arrays.size(); ++i) {
        if (sums.size() == i) {
          sums.push_back(g.arrays[i]);
        } else {
          sums[i] = mx::add(sums[i], g.arrays[i]);
        }
      }
    }
    mx::eval(sums);
    for (const std::uint32_t asked : {1U, 4U}) {
      std::uint32_t rows = asked;
      const auto g =
          accumulate(*model, objective, batch, rows, {.compute = mx::float32});
      EXPECT_NEAR(g.loss_sum, loss, 1e-4 * loss);
      EXPECT_EQ(g.weight_sum, weight);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        auto apart = mx::max(mx::abs(mx::subtract(g.arrays[i], sums[i])));
        auto size = mx::max(mx::abs(sums[i]));
        EXPECT_LT(apart.item<float>(), 1e-3f * (size.item<float>() + 0.01f))
            << model->parameters().trainable()[i]->name;
      }
    }
    auto scored = loss_of(
        *model, objective, make_micro_batch(batch, 0, batch.rows), mx::float32
    );
    EXPECT_NEAR(scored.loss_sum, loss, 1e-4 * loss);
  }

  data::testing::TempFolder folder_;
  std::shared_ptr<const data::TokenCache> cache_;
};

TEST_F(PackedPath, DocumentsThatShareARowTrainAsIfAlone) {
  const auto batch = drawn(data::Arrange::kPack);
  ASSERT_GT(batch.samples.size(), batch.rows) << "no row is shared";
  for (const auto& config : {llama(), gpt2(), windowed()}) {
    SCOPED_TRACE(
        config.gpt2_layout  ? "gpt2"
        : config.windows[0] ? "window"
                            : ""
    );
    expect_as_alone(config, batch);
  }
}

TEST_F(PackedPath, SoDoStretchesOfAStream) {
  const auto batch = drawn(data::Arrange::kStream);
  ASSERT_GT(batch.samples.size(), batch.rows);
  for (const auto& config : {llama(), gpt2()}) expect_as_alone(config, batch);
}

TEST_F(PackedPath, SoDoPaddedRows) {
  const auto batch = drawn(data::Arrange::kPad);
  for (const auto& config : {llama(), gpt2()}) expect_as_alone(config, batch);
}

}  // namespace
}  // namespace hearth::train
