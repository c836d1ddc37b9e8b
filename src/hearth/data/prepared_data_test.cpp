#include "hearth/data/prepared_data.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/data/read/dataset_test_impl.h"
#include "hearth/data/synth/synth.h"
#include "hearth/text/tokenizer/tokenizer.h"

namespace hearth::data {
namespace {

namespace fs = std::filesystem;
using testing::TempFolder;

// A user's cache folder of the test's own.
class PreparedDataTest : public ::testing::Test {
 protected:
  PreparedDataTest() { ::setenv("HEARTH_CACHE", (folder_ / "c").c_str(), 1); }
  ~PreparedDataTest() override { ::unsetenv("HEARTH_CACHE"); }

  static DataConfig config(const std::string& yaml) {
    struct Recipe {
      DataConfig data;
      void fields(FieldVisitor& v) { v("data", data, ""); }
    } recipe;
    ConfigReader(recipe).apply(parse_yaml("data: {" + yaml + "}", "r.yaml"));
    return recipe.data;
  }
  static std::string message(const std::string& yaml) {
    try {
      prepare_data(config(yaml), {});
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }

  TempFolder folder_;
};

std::string first_story(std::uint64_t seed) {
  std::string line;
  append_synth_record(SynthKind::kStories, seed, 0, line);
  return parse_json(line, "record").at("text").get<std::string>();
}

TEST_F(PreparedDataTest, ARecipeStartsFromNothing) {
  const auto c = config(
      "synth: {kind: stories, n: 300, seed: 3}, valid: 10%, "
      "tokenizer: {train: {vocab: 600, special: [<|end|>]}}"
  );
  const PreparedData made = prepare_data(c, {});
  EXPECT_TRUE(made.tokenizer_trained);
  EXPECT_TRUE(made.has_valid());
  EXPECT_FALSE(made.result.reused);
  const auto tokenizer = text::Tokenizer::load(made.tokenizer);
  ASSERT_TRUE(tokenizer->eos_id());
  EXPECT_EQ(tokenizer->id_to_token(*tokenizer->eos_id()), "<|end|>");
  EXPECT_EQ(tokenizer->vocab_size(), 600u);

  const TokenCache cache(made.cache);
  std::uint64_t documents = 0;
  bool found = false;
  for (const auto split : {Split::kTrain, Split::kValid}) {
    const DocumentSet& set = cache.sets(split)[0];
    documents += set.documents();
    for (std::uint64_t d = 0; d < set.documents(); ++d) {
      const auto place = set.place(d);
      std::vector<std::int32_t> ids(set.length(d));
      place.shard->read(place.index, 0, ids);
      ASSERT_EQ(ids.back(), tokenizer->eos_id());
      found = found || tokenizer->decode(ids, true) == first_story(3);
    }
  }
  EXPECT_EQ(documents, 300u);
  EXPECT_TRUE(found) << "the first record must be in one of the splits";
}

TEST_F(PreparedDataTest, ASecondCallMakesNothing) {
  const auto c =
      config("synth: {kind: arith, n: 50}, tokenizer: {train: {vocab: 300}}");
  int steps = 0;
  PrepareDataOptions options;
  options.progress = [&](const DataStep&) { ++steps; };
  const PreparedData first = prepare_data(c, options);
  EXPECT_GT(steps, 0);
  steps = 0;
  const PreparedData second = prepare_data(c, options);
  EXPECT_EQ(steps, 0) << "nothing is generated, trained or tokenised again";
  EXPECT_TRUE(second.result.reused);
  EXPECT_EQ(first.cache, second.cache);
  EXPECT_EQ(first.tokenizer, second.tokenizer);
}

TEST_F(PreparedDataTest, HeldOutRecordsTeachTheTokenizerNothing) {
  // The trainer over the records that the split leaves, by hand.
  std::string all;
  std::vector<std::string> kept;
  for (int i = 0; i < 200; ++i) {
    Record record;
    record.text = "word" + std::to_string(i % 7) + " and other " +
                  std::to_string(i) + " things";
    all += to_json_line({{"text", record.text}}) + "\n";
    if (split_of(record.content_hash(), 0.5) == Split::kTrain) {
      kept.push_back(record.text);
    }
  }
  ASSERT_GT(kept.size(), 50u);
  ASSERT_LT(kept.size(), 150u);
  write_file_atomically(folder_ / "d.jsonl", all);
  write_file_atomically(folder_ / "v.jsonl", R"({"text": "zebra zebra"})");
  text::BpeTrainer trainer(
      {.vocab_size = 280, .special_tokens = {"<|endoftext|>"}}
  );
  trainer.add(std::vector<std::string_view>(kept.begin(), kept.end()));
  const PreparedData made = prepare_data(
      config(
          "train: " + (folder_ / "d.jsonl") +
          ", valid: 50%, tokenizer: {train: {vocab: 280}}"
      ),
      {}
  );
  const auto text =
      read_text_file((fs::path(made.tokenizer) / "tokenizer.json").string());
  EXPECT_EQ(text, trainer.train());

  const PreparedData apart = prepare_data(
      config(
          "train: " + (folder_ / "d.jsonl") + ", valid: " +
          (folder_ / "v.jsonl") + ", tokenizer: {train: {vocab: 400}}"
      ),
      {}
  );
  const auto tokenizer = text::Tokenizer::load(apart.tokenizer);
  EXPECT_FALSE(tokenizer->token_to_id("ze"));
  EXPECT_TRUE(tokenizer->token_to_id("word"));
  EXPECT_EQ(apart.result.report.valid_documents, 1u);
}

TEST_F(PreparedDataTest, ChatsAreRenderedForATokenizerFromNothing) {
  const PreparedData made = prepare_data(
      config(
          "synth: {kind: tools, n: 60}, template: chatml, "
          "tokenizer: {train: {vocab: 500}}"
      ),
      {}
  );
  EXPECT_EQ(made.result.report.bad_lines, 0u);
  EXPECT_EQ(made.result.report.untrained, 0u);
  const auto tokenizer = text::Tokenizer::load(made.tokenizer);
  EXPECT_EQ(tokenizer->id_to_token(*tokenizer->eos_id()), "<|im_end|>");
  // Special tokens are never counted as words.
  EXPECT_FALSE(tokenizer->token_to_id("im"));
  const auto files = tokenizer_files(made.tokenizer);
  EXPECT_EQ(files.size(), 3u);
  EXPECT_TRUE(fs::exists(fs::path(made.tokenizer) / "chat_template.jinja"));
}

TEST_F(PreparedDataTest, AnUnfinishedStepIsDoneAgain) {
  const auto c = config(
      "synth: {kind: stories, n: 5000}, tokenizer: {train: {vocab: 400}}"
  );
  // Stops at the first question, then at the second, and so on.
  int calls = 0, stops = 0;
  PrepareDataOptions stopping;
  stopping.stop = [&] { return ++calls > stops; };
  for (bool done = false; !done && stops < 1000;) {
    calls = 0;
    try {
      prepare_data(c, stopping);
      done = true;
    } catch (const Interrupted&) {
      ++stops;
    }
  }
  EXPECT_GT(stops, 0);
  const PreparedData whole = prepare_data(c, {});
  EXPECT_EQ(whole.result.report.documents, 5000u);
}

TEST_F(PreparedDataTest, SaysWhatASectionLacks) {
  EXPECT_NE(
      message("synth: {n: 5}").find("data.tokenizer must name"),
      std::string::npos
  );
  EXPECT_NE(
      message("tokenizer: {train: {vocab: 400}}").find("got none"),
      std::string::npos
  );
  EXPECT_NE(
      message("synth: {n: 5}, tokenizer: {train: {vocap: 4}}")
          .find("r.yaml:1: there is no key 'data.tokenizer.train.vocap'"),
      std::string::npos
  );
  EXPECT_NE(
      message("synth: {n: 5}, tokenizer: {train: {eos: x}}")
          .find("eos must be one of the special tokens, got 'x'"),
      std::string::npos
  );
}

}  // namespace
}  // namespace hearth::data
