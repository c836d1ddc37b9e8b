// A model from the packed cache is the model itself; what does not fit any more
// is told, not used, and made anew.
#include "hearth/models/packed_cache.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <unistd.h>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/base/temporary_name.h"
#include "hearth/models/quant_target.h"

namespace hearth::models {
namespace {

namespace fs = std::filesystem;
using State = PackedCache::Found::State;

class PackedCacheTest : public testing::Test {
 protected:
  fs::path root =
      fs::temp_directory_path() / ("hearth-pc-" + std::to_string(getpid()));
  fs::path model = root / "model";
  PackedCache cache{(root / "packed").string()};
  std::vector<std::string> notes;

  void SetUp() override {
    fs::remove_all(root);
    fs::create_directories(root);
    fs::copy(
        HEARTH_SOURCE_DIR "/tests/golden/models/llama2", model,
        fs::copy_options::recursive
    );
  }
  void TearDown() override { fs::remove_all(root); }

  LoadOptions options(const char* quant) {
    LoadOptions o;
    o.compute = mx::bfloat16;
    o.quantize = parse_quant_target(quant);
    o.packed_cache = cache.folder();
    o.note = [this](const std::string& text) { notes.push_back(text); };
    return o;
  }
  LoadedModel load(const char* quant) {
    notes.clear();
    return load_model(model.string(), options(quant));
  }
  fs::path pack(const char* quant) {
    const auto loaded = load(quant);
    const auto variant = packed_variant(loaded.options, loaded.compute);
    const auto content = content_hash(*loaded.source, io::ReadMode::mapped);
    return cache.store(loaded, variant, content);
  }
};

mx::array logits(const LoadedModel& m) {
  nn::Pass pass;
  pass.dtype = m.compute;
  pass.quantized = ops::QuantCompute::kExact;
  pass.positions = plain_positions(1, 4);
  pass.length = 4;
  const auto ids = mx::array({1, 5, 9, 2}, {1, 4}, mx::int32);
  auto y = m.decoder->logits(m.decoder->hidden(ids, pass), pass);
  y.eval();
  return y;
}

void expect_same(const LoadedModel& a, const LoadedModel& b) {
  const auto x = logits(a), y = logits(b);
  ASSERT_EQ(x.size(), y.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(x.data<float>()[i], y.data<float>()[i]) << i;
  }
}

TEST_F(PackedCacheTest, GivesTheSameModelInEveryForm) {
  for (const char* quant : {"none", "8", "4"}) {
    const auto plain = load(quant);
    EXPECT_NE(plain.report.how, "packed cache");
    pack(quant);
    const auto packed = load(quant);
    EXPECT_EQ(packed.report.how, "packed cache") << quant;
    EXPECT_TRUE(notes.empty());
    expect_same(plain, packed);
    // As many tensors of each class as a load from the files has.
    const auto& r = packed.report;
    std::map<std::string, std::size_t> classes, want;
    std::size_t bytes = 0;
    for (const auto& c : r.classes) {
      classes[c.name] = c.tensors;
      bytes += c.bytes;
      EXPECT_GT(c.seconds, 0) << c.name;
    }
    for (const auto& c : plain.report.classes) want[c.name] = c.tensors;
    EXPECT_EQ(classes, want);
    EXPECT_EQ(bytes, packed.decoder->parameters().bytes());
    EXPECT_NEAR(r.times.sum(), r.seconds, 1e-6);
  }
}

TEST_F(PackedCacheTest, IsBoundToOptionsAndContent) {
  pack("8");
  EXPECT_NE(load("4").report.how, "packed cache");
  EXPECT_TRUE(notes.empty());
  LoadOptions wide = options("8");
  wide.compute = mx::float32;
  EXPECT_NE(load_model(model.string(), wide).report.how, "packed cache");
  const auto a = load("none"), b = load("none");
  const auto hash = [](const LoadedModel& m) {
    return content_hash(*m.source, io::ReadMode::buffered).hex();
  };
  const std::string before = hash(a);
  EXPECT_EQ(before, hash(b));
  std::fstream file(
      model / "model.safetensors",
      std::ios::in | std::ios::out | std::ios::binary
  );
  file.seekp(-2, std::ios::end);
  file.put('\1');
  file.close();
  EXPECT_NE(before, hash(load("none")));
}

TEST_F(PackedCacheTest, AChangedModelIsToldAndPackedAnew) {
  pack("8");
  fs::last_write_time(
      model / "config.json",
      fs::file_time_type::clock::now() + std::chrono::seconds(5)
  );
  const auto again = load("8");
  EXPECT_NE(again.report.how, "packed cache");
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_NE(notes[0].find("config.json has changed"), std::string::npos)
      << notes[0];
  EXPECT_EQ(load("8").report.how, "packed cache");
  EXPECT_TRUE(notes.empty());
}

TEST_F(PackedCacheTest, ABrokenFileIsToldAndPackedAnew) {
  const fs::path path = pack("4");
  const auto size = fs::file_size(path);
  const auto damage = [&](int how) {
    if (how == 0) return fs::resize_file(path, size / 2);
    if (how == 1) return fs::resize_file(path, 0);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(size / 3));
    const int was = file.get();
    file.seekp(static_cast<std::streamoff>(size / 3));
    file.put(static_cast<char>(was ^ 1));
  };
  // Not over the file that is about to be damaged.
  LoadOptions without = options("4");
  without.packed_cache.clear();
  const auto good = load_model(model.string(), without);
  for (const int how : {0, 1, 2}) {
    damage(how);
    const auto again = load("4");
    EXPECT_NE(again.report.how, "packed cache") << how;
    ASSERT_EQ(notes.size(), 2u) << how;
    EXPECT_NE(notes[0].find(path.filename().string()), std::string::npos);
    expect_same(good, again);
    EXPECT_EQ(load("4").report.how, "packed cache") << how;
  }
}

TEST_F(PackedCacheTest, ABrokenModelIsRefusedThoughItIsPacked) {
  pack("4");
  std::ofstream(model / "config.json") << "{\"model_type\": \"llama\"";
  EXPECT_THROW(load("4"), FormatError);
}

TEST_F(PackedCacheTest, ListsCleansAndKeepsToItsLimit) {
  const fs::path first = pack("8");
  fs::last_write_time(
      first, fs::file_time_type::clock::now() - std::chrono::hours(1)
  );
  pack("4");
  ASSERT_EQ(cache.list().size(), 2u);
  EXPECT_EQ(cache.list()[1].path, first.string());
  EXPECT_EQ(cache.list()[0].variant.at("quant"), "q4_0");
  const auto loaded = load("none");
  cache.store(
      loaded, packed_variant(loaded.options, loaded.compute),
      content_hash(*loaded.source, io::ReadMode::mapped), 1
  );
  ASSERT_EQ(cache.list().size(), 1u);
  EXPECT_EQ(cache.list()[0].variant.at("quant"), "none");
  EXPECT_GT(cache.clean(), 0u);
  EXPECT_TRUE(cache.list().empty());
}

TEST_F(PackedCacheTest, WhatAKilledProcessLeftGoesWithTheNextStore) {
  pack("8");
  const auto plant = [&](const fs::path& path, int minutes_ago) {
    std::ofstream(path) << std::string(1000, 'x');
    fs::last_write_time(
        path,
        fs::file_time_type::clock::now() - std::chrono::minutes(minutes_ago)
    );
    return path;
  };
  const std::string kept = cache.folder() + "/abc-def.pack";
  const auto left = plant(temporary_name(kept), 5);
  const auto fresh = plant(temporary_name(kept), 0);
  const FileHandle writer = create_temporary(kept);
  const auto written = plant(writer.path(), 5);
  const auto earlier = plant(kept + ".tmp-1-0", 5);
  const auto listed = cache.list();
  EXPECT_EQ(
      std::ranges::count(listed, true, &PackedCache::Listed::unfinished), 4
  );
  pack("4");
  EXPECT_FALSE(fs::exists(left));
  EXPECT_FALSE(fs::exists(earlier));
  EXPECT_TRUE(fs::exists(fresh));
  EXPECT_TRUE(fs::exists(written));
  std::ofstream(fs::path(cache.folder()) / "notes.txt") << "not of the cache";
  std::size_t bytes = 0;
  for (const auto& one : cache.list()) bytes += one.bytes;
  EXPECT_EQ(cache.clean(), bytes);
  EXPECT_TRUE(cache.list().empty());
  EXPECT_TRUE(fs::exists(fs::path(cache.folder()) / "notes.txt"));
}

TEST_F(PackedCacheTest, GivingUpLeavesNothing) {
  const auto loaded = load("8");
  const auto variant = packed_variant(loaded.options, loaded.compute);
  const auto content = content_hash(*loaded.source, io::ReadMode::mapped);
  int asked = 0;
  const auto give_up = [&] {
    if (++asked == 4) throw Interrupted("enough");
  };
  EXPECT_THROW(cache.store(loaded, variant, content, 0, give_up), Interrupted);
  EXPECT_TRUE(cache.list().empty());
  EXPECT_TRUE(fs::is_empty(cache.folder()));
}

}  // namespace
}  // namespace hearth::models
