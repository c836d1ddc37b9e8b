#include "hearth/infer/engine/prefix_store.h"

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/base/json.h"
#include "hearth/base/temp_folder_test.h"
#include "hearth/base/temporary_name.h"
#include "hearth/infer/engine/make_runner.h"

namespace hearth::infer {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<std::int32_t>;

constexpr int kPage = 16;
constexpr std::size_t kMuch = std::size_t{1} << 30;

Ids text(int tokens, int salt = 0) {
  Ids out;
  for (int i = 0; i < tokens; ++i) out.push_back((i * 11 + salt * 3 + 1) % 40);
  return out;
}

class StoredPrefix : public testing::Test {
 protected:
  const TempFolder temp;
  const fs::path folder = temp / "prefixes";
  models::LoadedModel model = load("llama3-gqa");
  std::unique_ptr<Runner> runner = make_runner(model, {.page_tokens = kPage});

  static models::LoadedModel load(const std::string& name) {
    return models::load_model(
        HEARTH_SOURCE_DIR "/tests/golden/models/" + name,
        {.compute = mx::float32}
    );
  }
  PrefixStore store(std::size_t most = kMuch) {
    return {*runner, folder.string(), most};
  }
  SequenceId fed(const Ids& ids) {
    const SequenceId s = runner->open();
    runner->step({{{s, ids, LogitsOf::none}}});
    return s;
  }
  std::vector<float> after(SequenceId s, const Ids& ids) {
    const auto row = runner->step({{{s, ids, LogitsOf::last}}});
    return {row.begin(), row.end()};
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> out;
    for (const auto& f : fs::directory_iterator(folder))
      out.push_back(f.path());
    return out;
  }
};

TEST_F(StoredPrefix, ComesBackAsItWas) {
  const Ids ids = text(40), rest{ids.begin() + 32, ids.end()};
  {
    PrefixStore first = store();
    EXPECT_EQ(first.find(ids, -1), 0);
    first.write(fed(ids), ids, -1);
    EXPECT_EQ(first.find(ids, -1), 32);
  }
  PrefixStore later = store();  // as the next process has it
  Ids longer = ids;
  longer.push_back(7);
  ASSERT_EQ(later.find(longer, -1), 32);
  const SequenceId back = later.read(longer, 32, -1);
  ASSERT_GE(back, 0);
  EXPECT_EQ(runner->length(back), 32);
  const SequenceId whole = fed(Ids(ids.begin(), ids.begin() + 32));
  EXPECT_EQ(after(back, rest), after(whole, rest));
}

TEST_F(StoredPrefix, PartOfItServesATextThatGoesAnotherWay) {
  PrefixStore s = store();
  const Ids ids = text(64);
  s.write(fed(ids), ids, -1);
  Ids other = ids;
  other[40] = 39 - other[40];
  ASSERT_EQ(s.find(other, -1), 32);
  const SequenceId back = s.read(other, 32, -1);
  ASSERT_GE(back, 0);
  EXPECT_EQ(runner->length(back), 32);
}

TEST_F(StoredPrefix, IsFoundOnlyByTheModelItIsOf) {
  const Ids ids = text(40);
  PrefixStore mine = store();
  mine.write(fed(ids), ids, -1);
  const auto other = load("llama2");
  const auto its_runner = make_runner(other, {.page_tokens = kPage});
  PrefixStore its(*its_runner, folder.string(), kMuch);
  EXPECT_EQ(its.find(ids, -1), 0);
}

// A copy of a golden model to change something of.
class ChangedModel : public StoredPrefix {
 protected:
  const fs::path copy = temp / "model";

  void take(const std::string& name) {
    fs::copy(HEARTH_SOURCE_DIR "/tests/golden/models/" + name, copy);
  }
  // Writes a text's pages with the copy as it is, changes it, and returns what
  // the changed one finds of them.
  template <typename Change>
  int found_after(const Change& change) {
    const Ids ids = text(64);
    const auto with = [&](auto&& use) {
      const auto mine =
          models::load_model(copy.string(), {.compute = mx::float32});
      const auto its = make_runner(mine, {.page_tokens = kPage});
      PrefixStore kept(*its, folder.string(), kMuch);
      return use(*its, kept);
    };
    with([&](Runner& r, PrefixStore& kept) {
      const SequenceId s = r.open();
      r.step({{{s, ids, LogitsOf::none}}});
      kept.write(s, ids, -1);
      EXPECT_EQ(kept.find(ids, -1), 64);
      return 0;
    });
    change();
    return with([&](Runner&, PrefixStore& kept) { return kept.find(ids, -1); });
  }
};

TEST_F(ChangedModel, TheSameIsFoundAgain) {
  take("mistral");
  EXPECT_EQ(found_after([] {}), 64);
}

// Neither shows in the first page of any text that leaves the row out.
TEST_F(ChangedModel, OneRowOfTheEmbeddingIsEnough) {
  take("mistral");
  const auto change = [&] {
    const auto source = io::open_model(copy.string());
    const auto* table = source->find("model.embed_tokens.weight");
    ASSERT_NE(table, nullptr);
    const std::size_t row = table->bytes / 64;
    std::fstream file(
        table->file, std::ios::in | std::ios::out | std::ios::binary
    );
    file.seekp(static_cast<std::streamoff>(table->offset + 5 * row));
    file.put('\x01');
  };
  EXPECT_EQ(found_after(change), 0);
}

TEST_F(ChangedModel, ANarrowerWindowIsAnotherModel) {
  take("mistral");
  const auto config = copy / "config.json";
  const auto set_window = [&](int tokens) {
    Json all = read_json_file(config.string());
    all["sliding_window"] = tokens;
    std::ofstream(config) << all;
  };
  set_window(48);
  EXPECT_EQ(found_after([&] { set_window(40); }), 0);
}

TEST_F(StoredPrefix, OtherModelsFilesCountAndLeaveToo) {
  const auto other = load("qwen3");  // of other pages
  const auto its_runner = make_runner(other, {.page_tokens = kPage});
  ASSERT_NE(its_runner->pool().page_bytes, runner->pool().page_bytes);
  const Ids ids = text(32);
  {
    PrefixStore its(*its_runner, folder.string(), kMuch);
    const SequenceId s = its_runner->open();
    its_runner->step({{{s, ids, LogitsOf::none}}});
    its.write(s, ids, -1);
  }
  ASSERT_EQ(files().size(), 1U);
  PrefixStore mine = store();
  EXPECT_EQ(mine.bytes(), fs::file_size(files()[0]));
  PrefixStore small = store(mine.bytes() + 1000);
  small.write(fed(ids), ids, -1);
  ASSERT_EQ(files().size(), 1U);
  EXPECT_EQ(small.find(ids, -1), 32);
}

TEST_F(StoredPrefix, DamageIsNoticedAndTheFileLeaves) {
  const Ids ids = text(40);
  store().write(fed(ids), ids, -1);
  ASSERT_EQ(files().size(), 1U);
  const fs::path path = files()[0];
  const auto size = fs::file_size(path);
  for (const bool cut : {false, true}) {
    if (cut) {
      store().write(fed(ids), ids, -1);
      fs::resize_file(path, size - 100);
    } else {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(size / 2));
      file.put('\x55');
    }
    PrefixStore s = store();
    ASSERT_EQ(s.find(ids, -1), 32);
    const int before = runner->pool().free_pages;
    EXPECT_EQ(s.read(ids, 32, -1), -1);
    EXPECT_EQ(runner->pool().free_pages, before);
    EXPECT_EQ(s.find(ids, -1), 0);
    EXPECT_TRUE(files().empty());
  }
}

TEST_F(StoredPrefix, FilesThatAreNoneAreLeftAlone) {
  fs::create_directories(folder);
  std::ofstream(folder / "short.kv") << "x";
  std::ofstream(folder / "other.kv") << std::string(500, 'y');
  std::ofstream(folder / "notes.txt") << "mine";
  PrefixStore s = store();
  EXPECT_EQ(s.bytes(), 0U);
  EXPECT_EQ(files().size(), 3U);
}

// Containers that share a folder may all be process 1, and one of them may
// have been killed while it wrote.
TEST_F(StoredPrefix, NothingLeftByAProcessOfThisNumberIsInTheWay) {
  const Ids ids = text(40);
  store().write(fed(ids), ids, -1);
  ASSERT_EQ(files().size(), 1U);
  const fs::path kept = files()[0];
  fs::remove(kept);
  fs::create_directory(fmt::format("{}.{}.part", kept.string(), getpid()));
  PrefixStore s = store();
  s.write(fed(ids), ids, -1);
  EXPECT_TRUE(fs::is_regular_file(kept));
  EXPECT_EQ(s.find(ids, -1), 32);
  const auto others = fs::perms::group_all | fs::perms::others_all;
  EXPECT_EQ(fs::status(kept).permissions() & others, fs::perms::none);
}

TEST_F(StoredPrefix, WhatAKilledProcessWroteIsRemoved) {
  fs::create_directories(folder);
  const std::string path = (folder / "a-b.kv").string();
  const std::string left = temporary_name(path);
  std::ofstream(left) << "half";
  const FileHandle written = create_temporary(path);
  store();
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(written.path()));
}

TEST_F(StoredPrefix, LongerOnesReplaceAndTheOldestLeave) {
  PrefixStore s = store();
  const Ids ids = text(80);
  const SequenceId all = fed(ids);
  s.write(all, std::span(ids).first(40), -1);
  const std::size_t two_pages = s.bytes();
  s.write(all, ids, -1);
  EXPECT_EQ(files().size(), 1U);
  EXPECT_EQ(s.find(ids, -1), 80);

  fs::remove_all(folder);
  PrefixStore small = store(two_pages * 2);
  for (int i = 0; i < 3; ++i) small.write(fed(text(40, i)), text(40, i), -1);
  EXPECT_EQ(small.find(text(40, 0), -1), 0);
  EXPECT_EQ(small.find(text(40, 2), -1), 32);
  EXPECT_LE(small.bytes(), two_pages * 2);
}

TEST_F(StoredPrefix, IsFoundOnlyInItsScope) {
  const Ids ids = text(40);
  const PrefixGroup mine{-1, {1, 2}}, its{-1, {1, 3}};
  store().write(fed(ids), ids, mine);
  PrefixStore later = store();
  EXPECT_EQ(later.find(ids, mine), 32);
  EXPECT_EQ(later.find(ids, its), 0);
  EXPECT_EQ(later.find(ids, -1), 0);
  EXPECT_EQ(later.read(ids, 32, its), -1);
  // Nor does one scope's text stand in the way of another's.
  later.write(fed(ids), ids, its);
  EXPECT_EQ(files().size(), 2U);
}

TEST_F(StoredPrefix, ShortTextsAreNotKept) {
  PrefixStore s = store();
  s.write(fed(text(31)), text(31), -1);
  EXPECT_TRUE(files().empty());
}

TEST_F(StoredPrefix, IsRefusedWherePagesAreNoBytes) {
  const auto graph = make_runner(model, {.page_tokens = kPage, .graph = true});
  EXPECT_THROW(PrefixStore(*graph, folder.string(), kMuch), UsageError);
  EXPECT_THROW(PrefixStore(*runner, "/proc/nowhere/folder", kMuch), IoError);
}

}  // namespace
}  // namespace hearth::infer
