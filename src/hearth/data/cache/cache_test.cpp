#include "hearth/data/cache/cache.h"

#include <csignal>
#include <cstdlib>

#include <sys/wait.h>

#include <gtest/gtest.h>
#include <spawn.h>

#include "hearth/base/error.h"
#include "hearth/base/random.h"
#include "hearth/data/cache/cache_impl.h"
#include "hearth/data/read/dataset_test_impl.h"

extern char** environ;

namespace hearth::data {
namespace {

namespace fs = std::filesystem;
using testing::byte_encoder;
using testing::contents;
using testing::TempFolder;

std::string some_jsonl(int lines, std::uint64_t seed = 1) {
  RandomStream random{RandomKey(seed)};
  std::string out;
  for (int i = 0; i < lines; ++i) {
    std::string word(1 + random.below(60), 'a');
    for (auto& c : word) c = static_cast<char>('a' + random.below(26));
    switch (random.below(4)) {
      case 0:
        out += R"({"text": ")" + word + "\"}\n";
        break;
      case 1:
        out += R"({"prompt": "p", "completion": ")" + word + "\"}\n";
        break;
      case 2:
        out += "not json " + word + "\n";
        break;
      default:
        out += R"({"messages": [{"role": "user", "content": "u"}, )"
               R"({"role": "assistant", "content": ")" +
               word + "\"}]}\n";
    }
  }
  return out;
}

CacheSettings small_shards() {
  CacheSettings s;
  s.valid_share = 0.1;
  s.shard_tokens = 6000;
  return s;
}

PrepareResult prepare(
    const std::vector<DataSource>& sources,
    const std::string& folder,
    const CacheSettings& settings,
    int threads = 2
) {
  PrepareOptions options;
  options.folder = folder;
  options.threads = threads;
  return prepare_cache(sources, settings, byte_encoder(), options);
}

TEST(Cache, HoldsWhatTheDataSays) {
  TempFolder t;
  const auto sources = find_sources({t.write(
      "a.jsonl", R"({"text": "abc"})"
                 "\n"
                 R"({"prompt": "q", "completion": "zz"})"
                 "\nbroken\n\n"
                 R"({"text": "abc", "id": 7})"
                 "\n"
  )});
  const auto result = prepare(sources, t / "c", {});
  EXPECT_EQ(result.report.documents, 3u);
  EXPECT_EQ(result.report.bad_lines, 1u);
  EXPECT_EQ(result.report.duplicates, 1u);
  ASSERT_EQ(result.report.first_bad_lines.size(), 1u);
  EXPECT_EQ(result.report.first_bad_lines[0].line, 3u);
  const TokenCache cache(t / "c");
  cache.verify();
  const auto& set = cache.sets(Split::kTrain)[0];
  ASSERT_EQ(set.documents(), 3u);
  const auto place = set.place(0);
  std::vector<std::int32_t> ids(set.length(0));
  place.shard->read(place.index, 0, ids);
  EXPECT_EQ(ids, (std::vector<std::int32_t>{1, 'a' + 3, 'b' + 3, 'c' + 3, 2}));
  // The template is there, so a prompt and its completion become a dialogue:
  // "<user>q<assistant>zz", of which the last two carry loss.
  const auto chat = set.place(1);
  EXPECT_EQ(set.length(1), 20u);
  ASSERT_EQ(chat.shard->spans(chat.index).size(), 1u);
  EXPECT_EQ(chat.shard->spans(chat.index)[0], (io::TokenSpan{18, 20}));
}

TEST(Cache, SameBytesAtAnyThreadCountAndReusedWhenThere) {
  TempFolder t;
  const auto sources = find_sources(
      {t.write("a.jsonl", some_jsonl(3000)), t.write("b.txt", "one\ntwo")}
  );
  prepare(sources, t / "c1", small_shards(), 1);
  for (int threads : {2, 5}) {
    const auto folder = t / ("c" + std::to_string(threads));
    prepare(sources, folder, small_shards(), threads);
    EXPECT_EQ(contents(t / "c1"), contents(folder));
  }
  EXPECT_GT(contents(t / "c1").size(), 10u);
  EXPECT_TRUE(prepare(sources, t / "c1", small_shards()).reused);
  TokenCache(t / "c1").verify();
}

TEST(Cache, ResumesFromEveryInterruption) {
  TempFolder t;
  const auto sources = find_sources(
      {t.write("d/a.jsonl", some_jsonl(9000)),
       t.write("b.jsonl", some_jsonl(4000, 2))}
  );
  CacheSettings settings = small_shards();
  settings.shard_tokens = 20000;
  prepare(sources, t / "whole", settings);
  int resumed = 0;
  for (int after = 0; after < 8; ++after) {
    const auto folder = t / ("c" + std::to_string(after));
    PrepareOptions options;
    options.folder = folder;
    options.threads = 2;
    int calls = 0;
    options.stop = [&] { return calls++ == after; };
    try {
      prepare_cache(sources, settings, byte_encoder(), options);
    } catch (const Interrupted&) {
      EXPECT_THROW(TokenCache{folder}, UsageError) << "half a cache was read";
    }
    resumed += prepare(sources, folder, settings, 3).resumed;
    EXPECT_EQ(contents(t / "whole"), contents(folder)) << after;
  }
  EXPECT_GT(resumed, 2);
}

CacheSettings killed_settings() {
  CacheSettings s = small_shards();
  s.shard_tokens = 40000;
  return s;
}

// The child of the test below: builds the cache and is killed on the way.
TEST(CacheChild, DISABLED_Prepare) {
  const char* data = std::getenv("HEARTH_TEST_DATA");
  const char* folder = std::getenv("HEARTH_TEST_FOLDER");
  ASSERT_TRUE(data && folder);
  prepare(find_sources({data}), folder, killed_settings());
}

TEST(Cache, KilledAtRandomResumesToTheSameBytes) {
  TempFolder t;
  const std::string data = t.write("a.jsonl", some_jsonl(40000, 3));
  prepare(find_sources({data}), t / "whole", killed_settings());
  setenv("HEARTH_TEST_DATA", data.c_str(), 1);
  setenv("HEARTH_TEST_FOLDER", (t / "killed").c_str(), 1);
  std::string self = ::testing::internal::GetArgvs()[0];
  std::string filter = "--gtest_filter=CacheChild.DISABLED_Prepare";
  std::string run = "--gtest_also_run_disabled_tests";
  std::string brief = "--gtest_brief=1";
  char* argv[] = {
      self.data(), filter.data(), run.data(), brief.data(), nullptr
  };
  RandomStream random{RandomKey(4)};
  int kills = 0, status = -1;
  for (int turn = 0; turn < 200; ++turn) {
    pid_t child;
    ASSERT_EQ(posix_spawn(&child, argv[0], nullptr, nullptr, argv, environ), 0);
    usleep(static_cast<useconds_t>(5000 + random.below(80000)));
    // After enough murders the child is left to finish.
    if (kills < 20) kill(child, SIGKILL);
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) break;
    ++kills;
  }
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_GT(kills, 0);
  EXPECT_TRUE(contents(t / "whole") == contents(t / "killed"));
}

TEST(Cache, KeyFollowsEverythingThatMatters) {
  TempFolder t;
  const auto a = find_sources({t.write("a.jsonl", some_jsonl(20))});
  const auto b = find_sources({t.write("b.jsonl", some_jsonl(20, 2))});
  const auto same = find_sources({t.write("copy.jsonl", some_jsonl(20))});
  const auto key = cache_key(a, {}, byte_encoder()).hex();
  EXPECT_EQ(key, cache_key(same, {}, byte_encoder()).hex());
  EXPECT_NE(key, cache_key(b, {}, byte_encoder()).hex());
  CacheSettings settings;
  settings.valid_share = 0.5;
  EXPECT_NE(key, cache_key(a, settings, byte_encoder()).hex());
  EncodeSettings mask;
  mask.mask = MaskMode::kAll;
  EXPECT_NE(key, cache_key(a, {}, byte_encoder(mask)).hex());
  const ExampleEncoder other(
      std::make_shared<testing::ByteEncoder>(),
      std::make_shared<testing::BracketRenderer>(2), {}
  );
  EXPECT_NE(key, cache_key(a, {}, other).hex());
}

TEST(Cache, AFolderOfSomethingElseIsLeftAlone) {
  TempFolder t;
  const auto a = find_sources({t.write("a.jsonl", some_jsonl(20))});
  const auto b = find_sources({t.write("b.jsonl", some_jsonl(20, 2))});
  t.write("home/letter.txt", "dear");
  EXPECT_THROW(prepare(a, t / "home", {}), UsageError);
  prepare(a, t / "c", {});
  EXPECT_THROW(prepare(b, t / "c", {}), UsageError);
  PrepareOptions force;
  force.folder = t / "c";
  force.force = true;
  prepare_cache(b, {}, byte_encoder(), force);
  prepare(b, t / "d", {});
  EXPECT_EQ(contents(t / "c"), contents(t / "d"));
}

TEST(Cache, BadLineIsFatalWhenAsked) {
  TempFolder t;
  const auto file = t.write("a.jsonl", "{\"text\": \"x\"}\n{\"text\": 5}\n");
  CacheSettings settings;
  settings.read.on_bad_line = BadLinePolicy::kFatal;
  try {
    prepare(find_sources({file}), t / "c", settings);
    FAIL();
  } catch (const FormatError& e) {
    EXPECT_NE(std::string(e.what()).find(file + ":2: "), std::string::npos);
  }
}

// What a call that skips has made is not what a call that does not wants.
TEST(Cache, BadLineIsFatalInACacheThatIsThereToo) {
  TempFolder t;
  const auto file = t.write("a.jsonl", "{\"text\": \"x\"}\n{\"text\": 5}\n");
  CacheSettings settings;
  EXPECT_EQ(
      prepare(find_sources({file}), t / "c", settings).report.bad_lines, 1u
  );
  settings.read.on_bad_line = BadLinePolicy::kFatal;
  try {
    prepare(find_sources({file}), t / "c", settings);
    FAIL();
  } catch (const FormatError& e) {
    EXPECT_NE(std::string(e.what()).find(file + ":2: "), std::string::npos);
  }
  settings.read.on_bad_line = BadLinePolicy::kSkip;
  EXPECT_TRUE(prepare(find_sources({file}), t / "c", settings).reused);
}

TEST(Cache, LimitTakesTheFirstRecordsOfEachSource) {
  TempFolder t;
  const auto sources = find_sources(
      {t.write("a.jsonl", some_jsonl(500)),
       t.write("b.jsonl", some_jsonl(500, 2))}
  );
  CacheSettings settings;
  settings.limit = 7;
  EXPECT_EQ(prepare(sources, t / "c", settings).report.records, 14u);
  const TokenCache cache(t / "c");
  EXPECT_EQ(cache.sets(Split::kTrain)[1].documents(), 7u);
}

TEST(Cache, PreferencesStayPairs) {
  TempFolder t;
  const std::string line =
      R"({"prompt": "p", "chosen": "good", "rejected": "bad"})";
  const auto sources = find_sources(
      {t.write("a.jsonl", line + "\n" + line + "\n{\"text\": \"x\"}\n")}
  );
  const auto report = prepare(sources, t / "c", {}).report;
  EXPECT_EQ(report.documents, 4u);
  EXPECT_EQ(report.bad_lines, 1u) << "kinds must not mix";
  const TokenCache cache(t / "c");
  EXPECT_TRUE(cache.sets(Split::kTrain)[0].pairs());
}

TEST(Cache, DuplicatesAreCountedInBoundedPasses) {
  TempFolder t;
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += "{\"text\": \"" + std::to_string(i % 100) + "\"}\n";
  }
  const auto sources = find_sources({t.write("a.jsonl", text)});
  EXPECT_EQ(prepare(sources, t / "c", {}).report.duplicates, 200u);
  const auto shards = TokenCache(t / "c").manifest().shards;
  EXPECT_EQ(count_duplicates(t / "c", shards, 10), 200u);
}

TEST(Cache, BrokenFoldersAreRefusedInOneLine) {
  TempFolder t;
  const auto sources = find_sources({t.write("a.jsonl", some_jsonl(50))});
  prepare(sources, t / "c", {});
  const auto whole = contents(t / "c");
  auto refused = [&](const std::string& name, const std::string& bytes) {
    for (const auto& [file, text] : whole) t.write("c/" + file, text);
    t.write("c/" + name, bytes);
    try {
      TokenCache{t / "c"};
    } catch (const UsageError& e) {
      return std::string(e.what()).find('\n') == std::string::npos;
    }
    return false;
  };
  const std::string shard = "s000-train-00000.tok";
  const std::string manifest = whole.at("manifest.json");
  EXPECT_TRUE(refused("manifest.json", ""));
  EXPECT_TRUE(refused("manifest.json", "{}"));
  EXPECT_TRUE(refused("manifest.json", manifest.substr(0, 100)));
  EXPECT_TRUE(refused(shard, ""));
  EXPECT_TRUE(refused(shard, whole.at(shard).substr(8)));
  auto swapped = [&](std::string from, const std::string& to) {
    std::string text = manifest;
    text.replace(text.find(from), from.size(), to);
    return refused("manifest.json", text);
  };
  EXPECT_TRUE(swapped(shard, "../c/" + shard));
  EXPECT_TRUE(swapped("\"source\": 0", "\"source\": 9"));
  EXPECT_TRUE(swapped("\"source\": 0", "\"source\": -1"));
  EXPECT_TRUE(swapped("\"split\": \"train\"", "\"split\": \"test\""));
  EXPECT_TRUE(swapped("\"checksum\": \"", "\"checksum\": \"z"));
  EXPECT_TRUE(swapped("\"documents\": ", "\"documents\": 9"));
}

}  // namespace
}  // namespace hearth::data
