#include "hearth/data/loader/loader.h"

#include <map>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/base/random.h"
#include "hearth/data/read/dataset_test_impl.h"

namespace hearth::data {
namespace {

using testing::TempFolder;

class LoaderTest : public ::testing::Test {
 protected:
  // Documents of random text; those of JSONL files have a masked prompt.
  std::shared_ptr<const TokenCache> make(
      const std::string& name,
      const std::vector<int>& documents,
      std::uint64_t longest = 120,
      bool pairs = false
  ) {
    RandomStream random{RandomKey(hash64(name))};
    auto word = [&] {
      std::string text(1 + random.below(longest), ' ');
      for (auto& c : text) c = static_cast<char>('a' + random.below(26));
      return text;
    };
    std::vector<std::string> files;
    for (std::size_t s = 0; s < documents.size(); ++s) {
      std::string text;
      for (int i = 0; i < documents[s]; ++i) {
        const std::string prompt = R"({"prompt": ")" + word() + "\", ";
        text += pairs ? prompt + R"("chosen": ")" + word() +
                            R"(", "rejected": ")" + word() + "\"}\n"
                      : prompt + R"("completion": ")" + word() + "\"}\n";
      }
      files.push_back(t_.write(name + std::to_string(s) + ".jsonl", text));
    }
    CacheSettings settings;
    settings.shard_tokens = 20000;
    PrepareOptions options;
    options.folder = t_ / name;
    const ExampleEncoder encoder(
        std::make_shared<testing::ByteEncoder>(), nullptr, {}
    );
    prepare_cache(find_sources(files), settings, encoder, options);
    return std::make_shared<TokenCache>(t_ / name);
  }
  TempFolder t_;
};

LoaderConfig config_for(Arrange arrange) {
  LoaderConfig c;
  c.arrange = arrange;
  c.shapes = {{256, 1}};
  c.tokens_per_batch = 2048;
  c.window = 100;
  c.seed = 3;
  c.workers = 0;
  c.epochs = 1;
  return c;
}

std::vector<Batch> all_batches(Loader& loader, std::size_t most = 100000) {
  std::vector<Batch> out;
  Batch batch;
  while (out.size() < most && loader.next(batch)) out.push_back(batch);
  return out;
}

bool same(const Batch& a, const Batch& b) {
  return a.step == b.step && a.epoch == b.epoch && a.rows == b.rows &&
         a.length == b.length && a.ids == b.ids && a.targets == b.targets &&
         a.segments == b.segments && a.positions == b.positions &&
         a.weights == b.weights && a.samples == b.samples;
}

using Predicted = std::map<std::tuple<std::uint32_t, std::uint64_t, int>, int>;

// Holds every cell of a batch against the documents it claims to show.
void check_batch(const TokenCache& cache, const Batch& b, Predicted& seen) {
  std::vector<int> owner(b.ids.size(), -1);
  std::map<std::uint32_t, std::set<int>> segments;
  for (const auto& s : b.samples) {
    const auto& set = cache.sets(Split::kTrain)[s.source];
    const auto place = set.place(s.document);
    std::vector<std::int32_t> doc(set.length(s.document));
    place.shard->read(place.index, 0, doc);
    std::vector<float> mask(doc.size(), 0);
    for (const auto& span : place.shard->spans(place.index)) {
      std::fill(mask.begin() + span.begin, mask.begin() + span.end, 1.0f);
    }
    ASSERT_LE(s.column + s.length, b.length);
    ASSERT_LT(s.begin + s.length, doc.size());
    const int segment = b.segments[s.row * b.length + s.column];
    ASSERT_TRUE(segments[s.row].insert(segment).second);
    for (std::uint32_t i = 0; i < s.length; ++i) {
      const std::size_t at = s.row * b.length + s.column + i;
      ASSERT_EQ(owner[at], -1) << "two documents in one cell";
      owner[at] = 1;
      ASSERT_EQ(b.ids[at], doc[s.begin + i]);
      ASSERT_EQ(b.targets[at], doc[s.begin + i + 1]);
      ASSERT_EQ(b.weights[at], mask[s.begin + i + 1]);
      ASSERT_EQ(b.segments[at], segment);
      ASSERT_EQ(b.positions[at], static_cast<int>(i));
      ++seen[{s.source, s.document, static_cast<int>(s.begin + i)}];
    }
  }
  std::uint64_t tokens = 0;
  for (std::size_t at = 0; at < owner.size(); ++at) {
    tokens += owner[at] == 1;
    if (owner[at] == 1) continue;
    ASSERT_EQ(b.segments[at], 0);
    ASSERT_EQ(b.weights[at], 0);
  }
  ASSERT_EQ(tokens, b.tokens);
}

TEST_F(LoaderTest, AnEpochShowsEveryTokenOnceAndNoDocumentMeetsAnother) {
  const auto cache = make("a", {700, 300});
  for (auto arrange : {Arrange::kStream, Arrange::kPad, Arrange::kPack}) {
    for (std::uint32_t length : {64u, 256u}) {
      auto config = config_for(arrange);
      config.shapes = {{length, 1}};
      Loader loader(cache, config);
      Predicted seen;
      std::uint64_t want = 0, steps = 0;
      Batch batch;
      while (loader.next(batch)) {
        ASSERT_EQ(batch.step, steps++);
        ASSERT_EQ(batch.ids.size(), config.tokens_per_batch);
        check_batch(*cache, batch, seen);
        if (HasFatalFailure()) return;
      }
      for (std::uint32_t s = 0; s < 2; ++s) {
        const auto& set = cache->sets(Split::kTrain)[s];
        for (std::uint64_t d = 0; d < set.documents(); ++d) {
          want += set.length(d) - 1;
        }
      }
      // Windowed arrangements leave out pieces in which nothing is trained.
      if (arrange == Arrange::kStream || length == 256) {
        EXPECT_EQ(seen.size(), want);
      }
      for (const auto& [key, count] : seen) ASSERT_EQ(count, 1);
      EXPECT_FALSE(loader.next(batch)) << "the end stays the end";
    }
  }
}

TEST_F(LoaderTest, PackingWastesLittle) {
  const auto cache = make("a", {3000});
  auto config = config_for(Arrange::kPack);
  config.window = 1000;
  config.epochs = 0;
  for (auto overlong : {Overlong::kTruncate, Overlong::kSplit}) {
    config.overlong = overlong;
    Loader loader(cache, config);
    all_batches(loader, 100);
    const auto stats = loader.stats();
    const double used = static_cast<double>(stats.tokens) /
                        static_cast<double>(stats.tokens + stats.padding);
    if (overlong == Overlong::kSplit) {
      EXPECT_EQ(stats.padding, 0u);
    } else {
      EXPECT_GT(used, 0.98);
      EXPECT_EQ(stats.split, 0u);
    }
  }
}

TEST_F(LoaderTest, SameBatchesAtAnyWorkerCount) {
  const auto cache = make("a", {800});
  for (auto arrange : {Arrange::kStream, Arrange::kPad, Arrange::kPack}) {
    auto config = config_for(arrange);
    config.epochs = 2;
    Loader one(cache, config);
    const auto expected = all_batches(one);
    ASSERT_GT(expected.size(), 50u);
    for (int workers : {1, 2, 4}) {
      for (int prefetch : {1, 3, 8}) {
        config.workers = workers;
        config.prefetch = prefetch;
        Loader loader(cache, config);
        const auto got = all_batches(loader);
        ASSERT_EQ(got.size(), expected.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
          ASSERT_TRUE(same(got[i], expected[i])) << i;
        }
      }
    }
  }
}

TEST_F(LoaderTest, RestoresExactlyAtEveryPoint) {
  const auto cache = make("a", {260});
  for (auto arrange : {Arrange::kStream, Arrange::kPad, Arrange::kPack}) {
    auto config = config_for(arrange);
    config.epochs = 2;
    config.window = 60;
    Loader loader(cache, config);
    std::vector<Json> states = {loader.state()};
    std::vector<Batch> expected;
    Batch batch;
    while (loader.next(batch)) {
      expected.push_back(batch);
      states.push_back(loader.state());
    }
    ASSERT_GT(expected.size(), 20u);
    for (std::size_t at = 0; at < states.size(); ++at) {
      config.workers = static_cast<int>(at % 3);
      Loader other(cache, config);
      other.next(batch);
      // Through text, as a checkpoint keeps it.
      other.restore(parse_json(to_json_line(states[at]), "state"));
      ASSERT_EQ(other.state(), states[at]);
      const auto rest = all_batches(other);
      ASSERT_EQ(rest.size(), expected.size() - at);
      for (std::size_t i = 0; i < rest.size(); ++i) {
        ASSERT_TRUE(same(rest[i], expected[at + i])) << at << " + " << i;
      }
    }
  }
}

TEST_F(LoaderTest, RefusesAPositionOfSomethingElse) {
  const auto cache = make("a", {50});
  auto config = config_for(Arrange::kPack);
  Loader loader(cache, config);
  const Json state = loader.state();
  config.seed = 99;
  Loader other(cache, config);
  const auto message = [&](Loader& into) {
    try {
      into.restore(parse_json(to_json_line(state), "state"));
    } catch (const UsageError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(message(other).find("run.seed"), std::string::npos);
  EXPECT_NE(message(other).find("was 3 and is 99"), std::string::npos);
  config.seed = 3;
  Loader more(make("b", {50}), config);
  EXPECT_NE(message(more).find("the documents"), std::string::npos);
  EXPECT_THROW(loader.restore(Json::object()), UsageError);
  Json broken = state;
  broken["carried"] = Json::array({Json::array({0, 3, 0, 100000})});
  EXPECT_THROW(loader.restore(broken), UsageError);
  broken["carried"] = Json::array({Json::array({7, 3, 0, 1})});
  EXPECT_THROW(loader.restore(broken), UsageError);
  Batch batch;
  EXPECT_TRUE(loader.next(batch)) << "a refused position changes nothing";
}

TEST_F(LoaderTest, EpochsDifferAndSeedsDiffer) {
  const auto cache = make("a", {200});
  auto order = [&](std::uint64_t seed, std::uint64_t epochs) {
    auto config = config_for(Arrange::kStream);
    config.seed = seed;
    config.epochs = epochs;
    Loader loader(cache, config);
    std::vector<std::uint64_t> documents;
    for (const auto& b : all_batches(loader)) {
      for (const auto& s : b.samples) {
        if (s.begin == 0) documents.push_back(s.document);
      }
    }
    return documents;
  };
  const auto two = order(1, 2);
  ASSERT_EQ(two.size(), 400u);
  const std::vector<std::uint64_t> first(two.begin(), two.begin() + 200);
  const std::vector<std::uint64_t> second(two.begin() + 200, two.end());
  EXPECT_NE(first, second);
  EXPECT_NE(first, order(2, 1));
  EXPECT_EQ(first, order(1, 1));
  EXPECT_EQ(std::set<std::uint64_t>(second.begin(), second.end()).size(), 200u);
}

TEST_F(LoaderTest, StreamAcrossDocumentsIsOneText) {
  const auto cache = make("a", {120});
  auto config = config_for(Arrange::kStream);
  config.cross_documents = true;
  config.shuffle = false;
  config.drop_last = true;
  Loader loader(cache, config);
  std::vector<std::int32_t> text;
  const auto& set = cache->sets(Split::kTrain)[0];
  for (std::uint64_t d = 0; d < set.documents(); ++d) {
    const auto place = set.place(d);
    const std::size_t had = text.size();
    text.resize(had + set.length(d));
    place.shard->read(place.index, 0, std::span(text).subspan(had));
  }
  std::size_t at = 0;
  for (const auto& b : all_batches(loader)) {
    for (std::size_t i = 0; i < b.ids.size(); ++i, ++at) {
      ASSERT_EQ(b.ids[i], text[at]);
      ASSERT_EQ(b.segments[i], 1);
      ASSERT_EQ(b.positions[i], static_cast<int>(i % b.length));
      if (at + 1 == text.size()) break;
      ASSERT_EQ(b.targets[i], text[at + 1]);
    }
  }
  EXPECT_GT(at, text.size() - config.tokens_per_batch);
}

TEST_F(LoaderTest, EnumeratedShapesAreReachedGuaranteedAndConstantInTokens) {
  const auto cache = make("a", {3000}, 400);
  auto config = config_for(Arrange::kPack);
  config.shapes = {{64, .4}, {128, .4}, {256, .15}, {512, .05}};
  config.tokens_per_batch = 4096;
  config.window = 500;
  config.epochs = 0;
  for (auto arrange : {Arrange::kPack, Arrange::kStream}) {
    for (std::uint64_t guarantee : {0u, 9u}) {
      config.arrange = arrange;
      config.guarantee = guarantee;
      Loader loader(cache, config);
      std::map<std::uint32_t, std::uint64_t> steps, last;
      const std::uint64_t every = guarantee ? guarantee : 39;
      Predicted seen;
      std::uint64_t longest_document = 0;
      for (const auto& b : all_batches(loader, 400)) {
        check_batch(*cache, b, seen);
        if (HasFatalFailure()) return;
        ASSERT_EQ(std::uint64_t{b.rows} * b.length, 4096u);
        ASSERT_EQ(b.tokens, 4096u) << "a row of " << b.length << " is short";
        for (const auto& s : b.samples) {
          longest_document =
              std::max<std::uint64_t>(longest_document, s.length);
        }
        ++steps[b.length];
        last[b.length] = b.step;
        for (const auto& shape : config.shapes) {
          const std::uint64_t since = last.count(shape.length)
                                          ? b.step - last[shape.length]
                                          : b.step + 1;
          ASSERT_LT(since, every) << shape.length << " stays away";
        }
      }
      if (guarantee == 0) {
        EXPECT_EQ(steps[512], 20u);
        EXPECT_EQ(steps[64], 160u);
      }
      if (arrange == Arrange::kPack) {
        EXPECT_GT(longest_document, 256u) << "long documents need long rows";
      }
    }
  }
}

TEST_F(LoaderTest, MixSharesAreOfTokens) {
  const auto cache = make("a", {900, 100}, 60);
  auto config = config_for(Arrange::kStream);
  config.weights = {1, 3};
  config.epochs = 0;
  Loader loader(cache, config);
  double tokens[2] = {0, 0};
  std::set<std::uint64_t> first_documents;
  for (const auto& b : all_batches(loader, 400)) {
    for (const auto& s : b.samples) {
      tokens[s.source] += s.length;
      if (s.source == 0) first_documents.insert(s.document);
    }
  }
  EXPECT_NEAR(tokens[1] / (tokens[0] + tokens[1]), 0.75, 0.02);
  EXPECT_EQ(first_documents.size(), 900u) << "all of the larger one comes by";
}

TEST_F(LoaderTest, RanksShareTheRows) {
  const auto cache = make("a", {300});
  auto config = config_for(Arrange::kPack);
  Loader whole(cache, config);
  config.ranks = 2;
  Loader left(cache, config);
  config.rank = 1;
  Loader right(cache, config);
  Batch all, a, b;
  while (whole.next(all)) {
    ASSERT_TRUE(left.next(a) && right.next(b));
    a.ids.insert(a.ids.end(), b.ids.begin(), b.ids.end());
    a.segments.insert(a.segments.end(), b.segments.begin(), b.segments.end());
    ASSERT_EQ(a.ids, all.ids);
    ASSERT_EQ(a.segments, all.segments);
  }
  EXPECT_FALSE(left.next(a));
}

TEST_F(LoaderTest, PreferencesStayTogether) {
  const auto cache = make("p", {150}, 100, true);
  auto config = config_for(Arrange::kPad);
  Loader loader(cache, config);
  std::set<std::uint64_t> seen;
  Predicted predicted;
  for (const auto& b : all_batches(loader)) {
    check_batch(*cache, b, predicted);
    ASSERT_EQ(b.samples.size() % 2, 0u);
    for (std::size_t i = 0; i < b.samples.size(); i += 2) {
      ASSERT_EQ(b.samples[i].document % 2, 0u);
      ASSERT_EQ(b.samples[i + 1].document, b.samples[i].document + 1);
      ASSERT_EQ(b.samples[i + 1].row, b.samples[i].row + 1);
      seen.insert(b.samples[i].document / 2);
    }
  }
  EXPECT_EQ(seen.size(), 150u);
  config.arrange = Arrange::kPack;
  EXPECT_THROW(Loader(cache, config), UsageError);
}

TEST_F(LoaderTest, LongDocumentsAreSplitCutOrDropped) {
  const auto cache = make("a", {300}, 300);
  std::uint64_t long_ones = 0;
  const auto& set = cache->sets(Split::kTrain)[0];
  for (std::uint64_t d = 0; d < set.documents(); ++d) {
    long_ones += set.length(d) - 1 > 256;
  }
  ASSERT_GT(long_ones, 20u);
  auto config = config_for(Arrange::kPack);
  config.overlong = Overlong::kTruncate;
  Loader cut(cache, config);
  all_batches(cut);
  EXPECT_EQ(cut.stats().truncated, long_ones);
  config.overlong = Overlong::kDrop;
  Loader drop(cache, config);
  all_batches(drop);
  EXPECT_EQ(drop.stats().dropped, long_ones);
}

TEST_F(LoaderTest, WorkersCanBeChosenByMeasurement) {
  const auto cache = make("a", {300});
  auto config = config_for(Arrange::kPack);
  config.workers = -1;
  config.demand_tokens_per_second = 1e5;
  Loader loader(cache, config);
  ASSERT_FALSE(loader.trials().empty());
  EXPECT_EQ(loader.stats().workers, loader.trials().back().workers);
  Batch batch;
  EXPECT_TRUE(loader.next(batch));
}

TEST_F(LoaderTest, ImpossibleConfigsAreRefused) {
  const auto cache = make("a", {20});
  auto refused = [&](auto change) {
    auto config = config_for(Arrange::kPack);
    change(config);
    EXPECT_THROW(Loader(cache, config), UsageError);
  };
  refused([](auto& c) { c.tokens_per_batch = 1000; });
  refused([](auto& c) { c.shapes = {}; });
  refused([](auto& c) { c.shapes = {{64, .5}, {128, .4}}; });
  refused([](auto& c) {
    c.shapes = {{64, .5}, {128, .5}};
    c.guarantee = 2;
  });
  refused([](auto& c) { c.weights = {1, 2}; });
  refused([](auto& c) { c.split = Split::kValid; });
  refused([](auto& c) { c.cross_documents = true; });
  refused([](auto& c) { c.buckets = {64}; });
  refused([](auto& c) { c.ranks = 3; });
  refused([](auto& c) { c.rank = 1; });
  refused([](auto& c) { c.prefetch = 0; });
  refused([](auto& c) {
    c.arrange = Arrange::kPad;
    c.shapes = {{64, .5}, {128, .5}};
  });
}

TEST_F(LoaderTest, CountsTheBatchesThatItGives) {
  const auto cache = make("a", {130, 40});
  for (auto arrange : {Arrange::kStream, Arrange::kPad, Arrange::kPack}) {
    for (const std::uint64_t epochs : {1, 3}) {
      auto config = config_for(arrange);
      config.epochs = epochs;
      Loader loader(cache, config);
      const auto all = count_batches(cache, config);
      Batch batch;
      for (std::uint64_t left = all; left > 0; --left) {
        ASSERT_EQ(count_batches(cache, config, loader.state()), left);
        ASSERT_TRUE(loader.next(batch));
      }
      EXPECT_FALSE(loader.next(batch));
      EXPECT_EQ(count_batches(cache, config, loader.state()), 0u);
    }
  }
  EXPECT_THROW(count_batches(cache, {}), UsageError);
}

// What went wrong at one position is no error of another.
TEST_F(LoaderTest, AnErrorDoesNotOutliveItsPosition) {
  const auto cache = make("a", {60});
  auto config = config_for(Arrange::kPack);
  for (const int workers : {0, 1}) {
    config.workers = workers;
    Loader loader(cache, config);
    Json broken = loader.state();
    broken["emitted"] = 1000000;
    ASSERT_GT(all_batches(loader).size(), 2u);
    const Json end = loader.state();
    loader.restore(broken);
    Batch batch;
    EXPECT_THROW(loader.next(batch), UsageError);
    loader.restore(end);
    EXPECT_FALSE(loader.next(batch)) << workers;
  }
}

// Behind its last batch a loader may get another epoch; in the middle, rows
// are arranged by what is to come.
TEST_F(LoaderTest, EpochsMayBeAddedWhenTheyAreThrough) {
  const auto cache = make("a", {200});
  for (auto arrange : {Arrange::kStream, Arrange::kPad, Arrange::kPack}) {
    auto config = config_for(arrange);
    Loader one(cache, config);
    Batch batch;
    ASSERT_TRUE(one.next(batch));
    const Json middle = one.state();
    Predicted seen;
    check_batch(*cache, batch, seen);
    for (const auto& b : all_batches(one)) check_batch(*cache, b, seen);
    config.epochs = 2;
    Loader two(cache, config);
    if (arrange != Arrange::kStream) {
      EXPECT_THROW(two.restore(middle), UsageError);
    }
    two.restore(one.state());
    for (const auto& b : all_batches(two)) check_batch(*cache, b, seen);
    for (const auto& [token, times] : seen) ASSERT_EQ(times, 2);
  }
}

}  // namespace
}  // namespace hearth::data
