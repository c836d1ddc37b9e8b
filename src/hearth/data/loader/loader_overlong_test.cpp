// Documents longer than a row, and room that is left in rows.
#include <set>

#include <gtest/gtest.h>

#include "hearth/data/loader/loader.h"
#include "hearth/data/read/dataset_test_impl.h"

namespace hearth::data {
namespace {

using testing::TempFolder;

LoaderConfig config_for(Arrange arrange) {
  LoaderConfig c;
  c.arrange = arrange;
  c.shapes = {{256, 1}};
  c.tokens_per_batch = 2048;
  c.window = 100;
  c.workers = 0;
  c.epochs = 1;
  return c;
}

// Documents and the positions of their tokens that were inputs.
std::set<std::pair<std::uint64_t, std::uint32_t>> inputs_seen(Loader& loader) {
  std::set<std::pair<std::uint64_t, std::uint32_t>> seen;
  Batch b;
  while (loader.next(b)) {
    for (const auto& s : b.samples) {
      for (std::uint32_t i = 0; i < s.length; ++i) {
        EXPECT_TRUE(seen.insert({s.document, s.begin + i}).second);
      }
    }
  }
  return seen;
}

// Texts and completions of 10 and of 1,000 letters, in turn.
std::shared_ptr<const TokenCache> short_and_long(const TempFolder& t) {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    const std::string words(i % 2 ? 1000 : 10, static_cast<char>('a' + i % 26));
    text += i % 4 < 2 ? R"({"text": ")" + words + "\"}\n"
                      : R"({"prompt": "p", "completion": ")" + words + "\"}\n";
  }
  PrepareOptions options;
  options.folder = t / "both";
  prepare_cache(
      find_sources({t.write("both.jsonl", text)}), {}, testing::byte_encoder(),
      options
  );
  return std::make_shared<TokenCache>(t / "both");
}

TEST(LoaderOverlong, PlainTextOfJsonlIsSplitOverRowsAndTheRestIsCut) {
  const TempFolder t;
  const auto cache = short_and_long(t);
  for (auto arrange : {Arrange::kPack, Arrange::kPad}) {
    auto config = config_for(arrange);
    config.overlong = Overlong::kAuto;
    Loader loader(cache, config);
    const auto seen = inputs_seen(loader);
    const auto& set = cache->sets(Split::kTrain)[0];
    std::uint64_t lost = 0, cut = 0, split = 0;
    for (std::uint64_t d = 0; d < set.documents(); ++d) {
      const auto inputs = static_cast<std::uint32_t>(set.length(d) - 1);
      for (std::uint32_t i = 0; i < inputs; ++i) {
        const bool text = set.all_trained(d);
        ASSERT_EQ(seen.contains({d, i}), text || i < 256) << d << " " << i;
        lost += !text && i >= 256;
      }
      if (inputs <= 256) continue;
      ++(set.all_trained(d) ? split : cut);
    }
    EXPECT_EQ(cut, 10u);
    EXPECT_EQ(split, 10u);
    const auto report = find_overlong(*cache, config);
    EXPECT_EQ(report.cut, cut);
    EXPECT_EQ(report.split, split);
    EXPECT_EQ(report.dropped, 0u);
    EXPECT_EQ(report.lost_tokens, lost);
    EXPECT_EQ(report.documents, 40u);
  }
}

TEST(LoaderOverlong, WhatIsTooLongIsToldBeforeTheFirstBatch) {
  const TempFolder t;
  const auto cache = short_and_long(t);
  auto config = config_for(Arrange::kPack);
  config.overlong = Overlong::kAuto;
  EXPECT_EQ(
      find_overlong(*cache, config).text(256),
      "20 of 40 documents are longer than a row of 256 tokens: 10 split over "
      "rows, 10 cut; 7.61k tokens (37.0 %) are never trained on"
  );
  config.overlong = Overlong::kSplit;
  EXPECT_EQ(find_overlong(*cache, config).lost_tokens, 0u);
  config.overlong = Overlong::kDrop;
  EXPECT_EQ(find_overlong(*cache, config).dropped, 20u);
  config.arrange = Arrange::kStream;
  EXPECT_EQ(find_overlong(*cache, config).text(256), "");
  config = config_for(Arrange::kPack);
  config.shapes = {{256, .5}, {2048, .5}};
  EXPECT_EQ(find_overlong(*cache, config).text(2048), "");
}

// Rows of several lengths are full when what they hold may be split, though no
// document fits them by itself.
TEST(LoaderOverlong, TextsFillRowsOfSeveralLengths) {
  const TempFolder t;
  std::string text;
  for (int i = 0; i < 600; ++i) {
    text += R"({"text": ")" + std::string(300 + i % 40, 'x') + "\"}\n";
  }
  PrepareOptions options;
  options.folder = t / "texts";
  prepare_cache(
      find_sources({t.write("texts.jsonl", text)}), {}, testing::byte_encoder(),
      options
  );
  const auto cache = std::make_shared<TokenCache>(t / "texts");
  auto config = config_for(Arrange::kPack);
  config.overlong = Overlong::kAuto;
  config.shapes = {{512, .5}, {1024, .5}};
  config.epochs = 0;
  Loader loader(cache, config);
  Batch b;
  for (int step = 0; step < 60 && loader.next(b); ++step) {
    ASSERT_EQ(b.tokens, 2048u) << "a row of " << b.length << " is short";
  }
  EXPECT_GT(loader.stats().split, 0u);
  // Of one length, documents that fit are left whole.
  config.shapes = {{512, 1}};
  Loader whole(cache, config);
  for (int step = 0; step < 60 && whole.next(b); ++step) {
  }
  EXPECT_EQ(whole.stats().split, 0u);
}

}  // namespace
}  // namespace hearth::data
