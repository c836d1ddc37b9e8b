// What a cache's report says of the forms its records had, and the mistakes
// that are no data.
#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/data/cache/cache.h"
#include "hearth/data/cache/cache_builder_impl.h"
#include "hearth/data/cache/cache_impl.h"
#include "hearth/data/read/dataset_test_impl.h"

namespace hearth::data {
namespace {

using testing::byte_encoder;
using testing::TempFolder;

PrepareResult prepare(const std::string& file, const std::string& folder) {
  PrepareOptions options;
  options.folder = folder;
  options.threads = 2;
  return prepare_cache(find_sources({file}), {}, byte_encoder(), options);
}

std::string mixed_forms(int rounds) {
  std::string text;
  for (int i = 0; i < rounds; ++i) {
    const auto n = std::to_string(i);
    text += R"({"instruction":"i","input":"x","output":"o)" + n + "\"}\n";
    text += R"({"question":"q","answer":"a)" + n + R"(","id":"7"})" + "\n";
    text += R"({"prompt":"p","completion":"c)" + n + R"(","context":"k"})";
    text += "\n";
  }
  return text;
}

TEST(CacheForms, AreCountedWithWhatIsNotUsed) {
  TempFolder t;
  const auto made = prepare(t.write("a.jsonl", mixed_forms(40)), t / "c");
  using Counts = std::map<std::string, std::uint64_t>;
  const Counts forms = {
      {"Alpaca: instruction + input → prompt, output → completion", 40},
      {"questions and answers: question → prompt, answer → completion", 40}
  };
  EXPECT_EQ(made.report.forms, forms);
  EXPECT_EQ(made.report.unused, (Counts{{"id", 40}, {"context", 40}}));
  const auto remarks = made.report.remarks();
  ASSERT_EQ(remarks.size(), 4u);
  EXPECT_EQ(
      remarks[0].text,
      "Alpaca: instruction + input → prompt, output → completion (40 of 120 "
      "records)"
  );
  // What belongs to a prompt is a loss, an id is none.
  EXPECT_TRUE(remarks[2].loss);
  EXPECT_NE(remarks[2].text.find("\"context\" (40)"), std::string::npos);
  EXPECT_FALSE(remarks[3].loss);
  EXPECT_NE(remarks[3].text.find("\"id\" (40)"), std::string::npos);
  const auto again = prepare(t / "a.jsonl", t / "c");
  EXPECT_TRUE(again.reused);
  EXPECT_EQ(again.report.forms, forms);
  EXPECT_EQ(again.report.to_text(), made.report.to_text());
}

TEST(CacheForms, NamesWithoutEndAreCountedTogether) {
  CacheReport report;
  for (int i = 0; i < 500; ++i) report.add_unused(std::to_string(i));
  EXPECT_EQ(report.unused.size(), CacheReport::kKeptNames + 1);
  EXPECT_EQ(report.unused.at("(others)"), 500 - CacheReport::kKeptNames);
}

TEST(CacheForms, ReportsOfOlderCachesAreRead) {
  CacheReport report;
  report.empty_prompts = 3;
  report.forms["x"] = 2;
  Json json = report.to_json();
  EXPECT_EQ(CacheReport::from_json(json).empty_prompts, 3u);
  for (const char* key : {"forms", "unused", "empty_prompts", "unread_tools"}) {
    json.erase(key);
  }
  EXPECT_TRUE(CacheReport::from_json(json).forms.empty());
}

TEST(CacheForms, PromptsThatAreAllEmptyAreAMistake) {
  TempFolder t;
  const std::string none = R"({"ask":"a","chosen":"b","rejected":"c"})";
  const std::string one = R"({"prompt":"a","chosen":"b","rejected":"c"})";
  const auto file = t.write("a.jsonl", none + "\n");
  for (int i = 0; i < 2; ++i) {  // and no cache is left of it
    try {
      prepare(file, t / "c");
      FAIL();
    } catch (const UsageError& e) {
      EXPECT_NE(
          std::string(e.what()).find("empty in all 1; they also have \"ask\""),
          std::string::npos
      );
      EXPECT_NE(e.hint().find("data.fields={prompt:"), std::string::npos);
    }
  }
  const auto some = prepare(t.write("b.jsonl", none + "\n" + one), t / "d");
  EXPECT_EQ(some.report.empty_prompts, 1u);
}

// The version before this one read the same data otherwise: made anew.
TEST(CacheForms, ACacheOfTheVersionBeforeIsReplaced) {
  TempFolder t;
  const auto file = t.write("a.jsonl", mixed_forms(3));
  const auto sources = find_sources({file});
  const auto encoder = byte_encoder();
  const CacheSettings settings;
  const PrepareOptions options;
  const auto build = [&](const std::string& folder, Hash128 key) {
    std::filesystem::create_directories(folder);
    CacheBuilder(sources, settings, encoder, options, folder, key).run();
  };
  const Hash128 former = former_cache_key(sources, {}, encoder);
  EXPECT_NE(former.hex(), cache_key(sources, {}, encoder).hex());
  build(t / "c", former);
  EXPECT_FALSE(prepare(file, t / "c").reused);
  EXPECT_TRUE(prepare(file, t / "c").reused);
  build(t / "d", {});
  EXPECT_THROW(prepare(file, t / "d"), UsageError);
}

}  // namespace
}  // namespace hearth::data
