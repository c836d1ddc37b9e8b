#include "hearth/data/parquet/rows.h"

#include <fstream>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/base/json.h"
#include "hearth/base/random.h"
#include "hearth/base/temp_folder_test.h"
#include "hearth/data/parquet/unpack.h"

namespace hearth::data::parquet {
namespace {

const std::string kGolden = HEARTH_SOURCE_DIR "/tests/golden/parquet/";

struct File {
  const char* name;
  const char* rows;  // as pyarrow reads it back
};
const File kFiles[] = {{"plain", "flat"},          {"snappy", "flat"},
                       {"gzip-pages", "flat"},     {"zstd-second", "flat"},
                       {"snappy-second", "flat"},  {"nested", "nested"},
                       {"nested-second", "nested"}};

std::vector<Json> expected_rows(const std::string& name) {
  std::ifstream file(kGolden + name + ".jsonl");
  std::vector<Json> rows;
  for (std::string line; std::getline(file, line);) {
    rows.push_back(parse_json(line, name));
  }
  return rows;
}

std::vector<std::string> read(const std::string& path, std::uint64_t from = 0) {
  Rows rows(path, from);
  std::vector<std::string> out;
  for (std::string row; rows.next(row); row.clear()) out.push_back(row);
  return out;
}

class Golden : public testing::TestWithParam<File> {
 protected:
  std::string path() const {
    return kGolden + GetParam().name + std::string(".parquet");
  }
};

TEST_P(Golden, IsReadAsPyarrowReadsIt) {
  const auto expected = expected_rows(GetParam().rows);
  ASSERT_EQ(expected.size(), 60u);
  const auto got = read(path());
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(parse_json(got[i], "row"), expected[i]) << i;
  }
}

TEST_P(Golden, GoesOnAfterAnyRow) {
  const auto all = read(path());
  for (std::size_t from = 0; from <= all.size(); from += 7) {
    const auto rest = read(path(), from);
    ASSERT_EQ(rest.size(), all.size() - from);
    for (std::size_t i = 0; i < rest.size(); ++i) {
      ASSERT_EQ(rest[i], all[from + i]);
    }
  }
}

// Whatever is broken, there are rows or one error that names the file.
TEST_P(Golden, BrokenBytesAreAnError) {
  TempFolder t;
  const std::string bytes = read_all(path());
  RandomStream random{RandomKey(3)};
  int refused = 0;
  for (int round = 0; round < 300; ++round) {
    std::string broken = bytes;
    if (round % 3 == 0) broken.resize(random.below(bytes.size()));
    for (int i = 0; i < 3 && !broken.empty(); ++i) {
      broken[random.below(broken.size())] =
          static_cast<char>(random.below(256));
    }
    const auto file = t.write("a.parquet", broken);
    try {
      read(file);
    } catch (const FormatError& e) {
      EXPECT_EQ(std::string(e.what()).rfind(file, 0), 0u) << e.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 100);
}

INSTANTIATE_TEST_SUITE_P(
    Parquet,
    Golden,
    testing::ValuesIn(kFiles),
    [](const auto& given) {
      std::string name = given.param.name;
      for (char& c : name) c = c == '-' ? '_' : c;
      return name;
    }
);

TEST(ParquetSnappy, LiteralsAndCopies) {
  std::string out;
  const auto bytes = [](std::initializer_list<int> list) {
    std::string text;
    for (const int b : list) text += static_cast<char>(b);
    return text;
  };
  // "ab", then a copy of six from two back, which overlaps itself.
  const std::string packed = bytes({8, 1 << 2, 'a', 'b', 2 << 2 | 1, 2});
  EXPECT_TRUE(unpack_snappy(packed, 8, out));
  EXPECT_EQ(out, "abababab");
  EXPECT_FALSE(unpack_snappy(packed, 9, out));
  EXPECT_FALSE(unpack_snappy(packed.substr(0, 5), 8, out));
  EXPECT_FALSE(unpack_snappy(bytes({5, 0, 'a', 1, 2}), 5, out)) << "too far";
  EXPECT_FALSE(unpack_snappy(bytes({5, 0, 'a', 1, 0}), 5, out)) << "nowhere";
  EXPECT_FALSE(unpack_snappy("", 0, out));
  EXPECT_TRUE(unpack_snappy(bytes({0}), 0, out));
  // Lengths and distances of two and four bytes.
  std::string longer = bytes({0xC0, 2, 60 << 2, 199}) + std::string(200, 'x');
  longer += bytes({63 << 2 | 2, 200, 0, 55 << 2 | 3, 1, 0, 0, 0});
  EXPECT_TRUE(unpack_snappy(longer, 320, out));
  EXPECT_EQ(out, std::string(320, 'x'));
}

TEST(Parquet, WhatIsNoneIsRefused) {
  TempFolder t;
  const std::pair<std::string, const char*> cases[] = {
      {"", "cut short"},
      {"PAR1 and more text", "no Parquet file"},
      {"PAR1xxxx\x01\0\0\0PARE", "cut short"},
      {std::string("PAR1xxxx\xff\xff\0\0PAR1", 16), "footer is not in"},
      {std::string("PAR1xxxx\x04\0\0\0PARE", 16), "encrypted"},
      {std::string("PAR1\0\0\0\0\x04\0\0\0PAR1", 16), "tree of columns"},
  };
  for (const auto& [bytes, part] : cases) {
    try {
      read(t.write("a.parquet", bytes));
      FAIL() << part;
    } catch (const FormatError& e) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos)
          << e.what();
    }
  }
}

}  // namespace
}  // namespace hearth::data::parquet
