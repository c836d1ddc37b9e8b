// The folder we share with Hugging Face's tools.
#include "hearth/hub/cache.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/temp_folder_test.h"
#include "hearth/hub/cached_model.h"
#include "hearth/hub/checksum.h"
#include "hearth/hub/file_lock.h"

namespace hearth::hub {
namespace {

namespace fs = std::filesystem;

class Cache : public testing::Test {
 protected:
  Cache() { cache_.prepare(); }

  // A blob under that name in the snapshot of kCommit.
  void put(const std::string& file, const std::string& text = "x") {
    const std::string oid = fmt::format("{:040x}", ++count_);
    write_file_atomically(cache_.blob(oid), text);
    cache_.place(kCommit, file, oid);
  }
  CachedModel find(const std::string& name = "o/n") const {
    return find_cached_model(root_, parse_repo_name(name));
  }

  const std::string kCommit = std::string(40, 'a');
  const TempFolder temp_;
  const std::string root_ = temp_ / "hub";
  RepoCache cache_{root_, parse_repo_name("o/n")};
  int count_ = 0;
};

TEST_F(Cache, PlacesRelativeLinks) {
  put("a/b/c.txt", "deep");
  const std::string at = cache_.pointer(kCommit, "a/b/c.txt");
  EXPECT_EQ(read_text_file(at), "deep");
  EXPECT_TRUE(fs::read_symlink(at).is_relative());
  fs::rename(root_, root_ + "-moved");
  EXPECT_EQ(read_text_file(root_ + "-moved" + at.substr(root_.size())), "deep");
  fs::rename(root_ + "-moved", root_);
  EXPECT_TRUE(fs::exists(root_ + "/CACHEDIR.TAG"));
}

TEST_F(Cache, DoesNotFollowAFolderThatIsALink) {
  fs::create_directories(cache_.snapshot(kCommit));
  fs::create_directories(root_ + "/outside");
  fs::create_symlink(root_ + "/outside", cache_.snapshot(kCommit) + "/d");
  EXPECT_THROW(put("d/x"), Error);
  EXPECT_TRUE(fs::is_empty(root_ + "/outside"));
}

TEST_F(Cache, RemembersCommits) {
  EXPECT_FALSE(cache_.commit_of("main"));
  EXPECT_EQ(cache_.commit_of(kCommit), kCommit);
  cache_.remember_commit("refs/pr/1", kCommit);
  EXPECT_EQ(cache_.commit_of("refs/pr/1"), kCommit);
  write_file_atomically(cache_.folder() + "/refs/main", "../../../etc");
  EXPECT_THROW(cache_.commit_of("main"), FormatError);
}

TEST_F(Cache, FindsAWholeModelOnly) {
  EXPECT_EQ(find().missing, "every file");
  cache_.remember_commit("main", kCommit);
  put("tokenizer.json");
  EXPECT_EQ(find().missing, "config.json");
  put("config.json", "{}");
  EXPECT_EQ(find().missing, "a file of weights");
  put(
      "model.safetensors.index.json",
      R"({"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}})"
  );
  put("model-1.safetensors");
  EXPECT_EQ(find().missing, "model-2.safetensors");
  put("model-2.safetensors");
  EXPECT_TRUE(find().whole());
  EXPECT_EQ(find().path, cache_.snapshot(kCommit));
  EXPECT_EQ(find("o/n@" + kCommit).path, cache_.snapshot(kCommit));
  EXPECT_EQ(find("o/n@other").missing, "every file");
  // A link whose blob is gone is not there.
  fs::remove(fs::canonical(cache_.pointer(kCommit, "model-1.safetensors")));
  EXPECT_EQ(find().missing, "model-1.safetensors");
}

TEST_F(Cache, FindsOneGgufOrTheOneNamed) {
  cache_.remember_commit("main", kCommit);
  put("a.gguf");
  EXPECT_EQ(find().path, cache_.pointer(kCommit, "a.gguf"));
  put("d/b.gguf");
  EXPECT_THROW(find(), UsageError);
  EXPECT_EQ(find("o/n/d/b.gguf").path, cache_.pointer(kCommit, "d/b.gguf"));
  EXPECT_EQ(find("o/n/c.gguf").missing, "c.gguf");
}

TEST_F(Cache, ChecksumsAreGitsAndSha256) {
  const std::string path = root_ + "/f";
  write_file_atomically(path, "hello\n");
  // git hash-object, and sha256sum.
  const std::string git = "ce013625030ba8dba906f756967f9e9ca394464a";
  EXPECT_EQ(checksum_of_file(path, git, 6), git);
  const std::string sha =
      "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
  EXPECT_EQ(checksum_of_file(path, sha, 6), sha);
}

TEST_F(Cache, ALockIsHeldByOne) {
  const std::string path = cache_.lock("x");
  std::atomic<bool> held{true};
  std::atomic<int> waits{0};
  std::optional<FileLock> first(std::in_place, path, [] {});
  std::thread second([&] {
    const FileLock lock(path, [&] { ++waits; });
    EXPECT_FALSE(held);
  });
  while (waits < 2) std::this_thread::yield();
  held = false;
  first.reset();
  second.join();
  // What the wait throws ends it.
  const FileLock again(path, [] {});
  EXPECT_THROW(FileLock(path, [] { throw Interrupted("stop"); }), Interrupted);
}

}  // namespace
}  // namespace hearth::hub
