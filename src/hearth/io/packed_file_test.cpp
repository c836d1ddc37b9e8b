// A file of packed weights comes back byte for byte, and any damage to it is
// noticed.
#include "hearth/io/packed_file.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/base/temp_folder_test.h"

namespace hearth::io {
namespace {

namespace fs = std::filesystem;

class PackedFileTest : public testing::Test {
 protected:
  const TempFolder folder;
  const std::string path = folder / "a.pack";
  std::vector<std::byte> small = std::vector<std::byte>(100);
  std::vector<std::byte> large = std::vector<std::byte>((17 << 20) + 3);
  ThreadPool pool{2};

  void SetUp() override {
    for (std::size_t i = 0; i < large.size(); ++i) {
      large[i] = static_cast<std::byte>(i * 31 + (i >> 11));
    }
    small[7] = std::byte{9};
    PackedFileWriter writer(path);
    writer.add(
        {.name = "a", .form = "value", .type = "f32", .shape = {25}}, small
    );
    writer.add(
        {.name = "b", .form = "packed", .type = "bf16", .shape = {3, 4}}, large
    );
    const std::size_t size = writer.finish({{"content", "x"}});
    ASSERT_EQ(size, fs::file_size(path));
  }

  std::string bytes() const { return read_all(path); }
  // What is said about these bytes; empty when they are taken.
  std::string complaint(const std::string& text) {
    try {
      const PackedFile file(std::as_bytes(std::span(text)), "p");
      file.verify(pool);
    } catch (const FormatError& e) {
      return e.what();
    }
    return {};
  }
};

TEST_F(PackedFileTest, ComesBackAsItWas) {
  const auto file = PackedFile::open(path);
  file->verify(pool);
  EXPECT_EQ(file->about().at("content"), "x");
  ASSERT_EQ(file->entries().size(), 2u);
  const PackedEntry& b = file->entries()[1];
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.form, "packed");
  EXPECT_EQ(b.shape, (std::vector<std::int64_t>{3, 4}));
  const auto got = file->bytes(b);
  ASSERT_EQ(got.size(), large.size());
  EXPECT_EQ(std::memcmp(got.data(), large.data(), large.size()), 0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(got.data()) % 64, 0u);
  std::uint64_t length = 0;
  std::memcpy(&length, got.data() - 8, 8);
  EXPECT_EQ(length, large.size());
}

TEST_F(PackedFileTest, AnyByteThatChangesIsNoticed) {
  const std::string good = bytes();
  ASSERT_EQ(complaint(good), "");
  std::vector<std::size_t> places{0, 8, 64, 130, 5u << 20, good.size() - 1};
  for (std::size_t at = good.size() - 900; at < good.size(); at += 13) {
    places.push_back(at);
  }
  for (const std::size_t at : places) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    EXPECT_NE(complaint(bad), "") << at;
  }
}

TEST_F(PackedFileTest, AnyLengthButItsOwnIsRefused) {
  const std::string good = bytes();
  for (const std::size_t n :
       {std::size_t{0}, std::size_t{10}, std::size_t{96}, good.size() / 2,
        good.size() - 1}) {
    EXPECT_NE(complaint(good.substr(0, n)), "") << n;
  }
  EXPECT_NE(complaint(good + "x"), "");
}

// A table that is whole and lies.
TEST_F(PackedFileTest, ATableThatPointsElsewhereIsRefused) {
  const std::string good = bytes();
  std::uint64_t begin = 0;
  std::memcpy(&begin, good.data() + good.size() - 32, 8);
  const Json table =
      parse_json(good.substr(begin, good.size() - 32 - begin), "table");
  const auto with = [&](const Json& t) {
    std::string text = to_json_line(t), out = good.substr(0, begin) + text;
    const std::uint64_t words[] = {begin, text.size(), hash64(text)};
    out.append(reinterpret_cast<const char*>(words), sizeof words);
    return out + "HEARTHPK";
  };
  EXPECT_EQ(complaint(with(table)), "");
  Json bad = table;
  bad["entries"][1]["offset"] = std::uint64_t{1} << 40;
  EXPECT_NE(complaint(with(bad)), "");
  bad = table;
  bad["entries"][1]["bytes"] = UINT64_MAX;
  EXPECT_NE(complaint(with(bad)), "");
  bad = table;
  bad["entries"][1]["offset"] = 64;
  EXPECT_NE(complaint(with(bad)), "");
  bad = table;
  bad["blocks"].erase(0);
  EXPECT_NE(complaint(with(bad)), "");
  bad = table;
  bad.erase("about");
  EXPECT_NE(complaint(with(bad)), "");
}

}  // namespace
}  // namespace hearth::io
