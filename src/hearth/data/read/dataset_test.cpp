#include "hearth/data/read/dataset.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include "hearth/base/error.h"
#include "hearth/base/random.h"
#include "hearth/data/read/dataset_reader.h"
#include "hearth/data/read/dataset_test_impl.h"

namespace hearth::data {
namespace {

using testing::TempFolder;

std::string gzip(const std::string& text) {
  z_stream z{};
  deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&z, text.size()), 0);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

// With a checksum, as the command line tool writes it.
std::string zstd(const std::string& text) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string out(ZSTD_compressBound(text.size()), 0);
  out.resize(
      ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size())
  );
  ZSTD_freeCCtx(context);
  return out;
}

struct Got {
  std::string text;
  std::uint64_t line;
  ReadPosition next;
  bool too_long;
  bool operator==(const Got& o) const {
    return text == o.text && line == o.line && too_long == o.too_long &&
           next.offset == o.next.offset && next.line == o.next.line;
  }
};

std::vector<Got> read(
    const std::string& path,
    const ReadSettings& settings,
    ReadPosition from = {}
) {
  const DataFile file = find_sources({path})[0].files[0];
  RecordReader reader(file, settings, from);
  std::vector<Got> out;
  RawChunk chunk;
  while (reader.next(chunk)) {
    EXPECT_FALSE(chunk.records.empty());
    for (const auto& r : chunk.records) {
      out.push_back(
          {chunk.bytes.substr(r.begin, r.end - r.begin), r.line, r.next,
           r.too_long}
      );
    }
  }
  return out;
}

std::string numbered_lines(int count) {
  RandomStream random{RandomKey(5)};
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += "line " + std::to_string(i) + std::string(random.below(200), 'x');
    text += random.below(9) == 0 ? "\r\n\n" : "\n";
  }
  return text + "the last has no newline";
}

TEST(DatasetFiles, FoldersGlobsAndWeights) {
  TempFolder t;
  for (const char* name :
       {"a.jsonl", "deep/b.jsonl.gz", "deep/more/c.txt", "deep/skip.bin"}) {
    t.write(name, "x");
  }
  EXPECT_EQ(find_sources({t / ""})[0].files.size(), 3u);
  EXPECT_EQ(find_sources({t / "deep"})[0].files.size(), 2u);
  EXPECT_EQ(find_sources({t / "*.jsonl"})[0].files.size(), 1u);
  EXPECT_EQ(find_sources({t / "**/*.jsonl*"})[0].files.size(), 2u);
  EXPECT_EQ(find_sources({t / "deep/*/?.txt"})[0].files.size(), 1u);
  const auto mix = find_sources({t / "a.jsonl:2", t / "deep:0.5"});
  EXPECT_EQ(mix[0].weight, 2);
  EXPECT_EQ(mix[1].weight, 0.5);
  EXPECT_EQ(find_sources({t / "a.jsonl"})[0].weight, 0);
  EXPECT_THROW(find_sources({t / "a.jsonl:2", t / "deep"}), UsageError);
  EXPECT_THROW(find_sources({t / "a.jsonl:-1"}), UsageError);
  EXPECT_THROW(find_sources({t / "absent.jsonl"}), UsageError);
  EXPECT_THROW(find_sources({t / "deep/skip.bin"}), UsageError);
  EXPECT_THROW(find_sources({}), UsageError);
}

TEST(DatasetFiles, Glob) {
  EXPECT_TRUE(glob_match("a/**/z*y/q", "a/b/c/zay/q"));
  EXPECT_TRUE(glob_match("**/q", "q"));
  EXPECT_FALSE(glob_match("a/*/q", "a/b/c/q"));
  EXPECT_FALSE(glob_match("a?b", "a/b"));
  EXPECT_TRUE(glob_match("*", ""));
}

TEST(DatasetReader, LinesAreTheSamePlainGzipAndZstd) {
  TempFolder t;
  const std::string text = numbered_lines(9000);
  const auto plain = read(t.write("a.jsonl", text), {});
  ASSERT_EQ(plain.size(), 9001u);
  EXPECT_EQ(plain.back().text, "the last has no newline");
  EXPECT_EQ(plain.back().next.offset, text.size());
  EXPECT_EQ(read(t.write("b.jsonl.gz", gzip(text)), {}), plain);
  EXPECT_EQ(read(t.write("c.jsonl.zst", zstd(text)), {}), plain);
  // Several members, cut in the middle of a line.
  const std::string two = gzip(text.substr(0, 777)) + gzip(text.substr(777));
  EXPECT_EQ(read(t.write("d.jsonl.gz", two), {}), plain);
  const std::string frames = zstd(text.substr(0, 99)) + zstd(text.substr(99));
  EXPECT_EQ(read(t.write("e.jsonl.zst", frames), {}), plain);
}

// An array of records, written in several ways, is its items.
TEST(DatasetReader, ItemsOfAnArrayAreRecords) {
  TempFolder t;
  std::string rows = "\xEF\xBB\xBF\n[\n", line = "[";
  std::vector<std::string> items;
  for (int i = 0; i < 3000; ++i) {
    items.push_back(
        "{\"text\": \"a ]},\\\" {[" + std::to_string(i) +
        std::string(static_cast<std::size_t>(i % 300), 'x') + "\\\\\"}"
    );
    rows += (i ? "  ,\r\n  " : "  ") + items.back();
    line += (i ? "," : "") + items.back();
  }
  for (const std::string& text : {rows + "\n]\n\n", line + "]"}) {
    const auto plain = read(t.write("a.json", text), {});
    ASSERT_EQ(plain.size(), items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      ASSERT_EQ(plain[i].text, items[i]);
      ASSERT_EQ(plain[i].line, text[0] == '[' ? 1 : 3 + i);
    }
    EXPECT_EQ(read(t.write("b.json.gz", gzip(text)), {}), plain);
    // From the end of any record on, the rest.
    for (std::size_t i = 0; i < items.size(); i += 499) {
      const auto rest = read(t / "a.json", {}, plain[i].next);
      ASSERT_EQ(rest.size(), items.size() - i - 1);
      ASSERT_TRUE(rest.empty() || rest.back() == plain.back());
    }
  }
  EXPECT_TRUE(read(t.write("none.json", " [ ] \n"), {}).empty());
  EXPECT_EQ(read(t.write("words.json", "[1, \"a,]\" ]"), {}).size(), 2u);
}

TEST(DatasetReader, ARecordOfAnArrayHasALimit) {
  TempFolder t;
  ReadSettings settings;
  settings.max_line_bytes = 1000;
  const std::string text = "[{\"text\": \"" + std::string(500'000, 'x');
  EXPECT_THROW(read(t.write("a.json", text + "\"}]"), settings), FormatError);
}

TEST(DatasetReader, GoesOnAfterAnyRecord) {
  TempFolder t;
  ReadSettings settings;
  settings.max_line_bytes = 150;
  settings.max_text_bytes = 500;
  settings.separator = "7";
  const std::string text = numbered_lines(300);
  for (const char* name : {"a.jsonl", "a.txt", "a.jsonl.gz", "a.txt.zst"}) {
    const std::string n = name;
    const auto bytes = n.ends_with("gz")    ? gzip(text)
                       : n.ends_with("zst") ? zstd(text)
                                            : text;
    const auto file = t.write(name, bytes);
    const auto all = read(file, settings);
    ASSERT_GT(all.size(), 100u);
    for (std::size_t i = 0; i < all.size(); i += 7) {
      const auto rest = read(file, settings, all[i].next);
      const std::vector<Got> expected(all.begin() + i + 1, all.end());
      ASSERT_EQ(rest, expected) << name << " after " << i;
    }
  }
}

TEST(DatasetReader, LongLinesAreDroppedWhateverTheirLength) {
  TempFolder t;
  ReadSettings settings;
  settings.max_line_bytes = 1000;
  for (std::size_t size : {1000u, 1001u, 300000u, 3000000u}) {
    const std::string text = "first\n" + std::string(size, 'x') + "\nthird";
    const auto got = read(t.write("a.jsonl", text), settings);
    ASSERT_EQ(got.size(), 3u);
    EXPECT_EQ(got[1].too_long, size > 1000);
    EXPECT_EQ(got[1].line, 2u);
    EXPECT_EQ(got[2].text, "third");
    EXPECT_EQ(got[2].line, 3u);
    EXPECT_EQ(got[2].next.offset, text.size());
  }
  const auto last = read(t.write("b.jsonl", std::string(9999, 'y')), settings);
  ASSERT_EQ(last.size(), 1u);
  EXPECT_TRUE(last[0].too_long);
}

TEST(DatasetReader, TextIsCutAtSeparatorsAndLineEnds) {
  TempFolder t;
  ReadSettings settings;
  const auto stories = read(
      t.write(
          "a.txt",
          "\nOne.\nTwo.\n<|endoftext|>\n\n<|endoftext|>Three\n<|endoftext|>"
      ),
      settings
  );
  ASSERT_EQ(stories.size(), 2u);
  EXPECT_EQ(stories[0].text, "One.\nTwo.");
  EXPECT_EQ(stories[0].line, 2u);
  EXPECT_EQ(stories[1].text, "Three");
  EXPECT_EQ(stories[1].line, 6u);
  settings.max_text_bytes = 10;
  const auto cut = read(t.write("b.txt", "aaaa\nbbb\ncccc\nd"), settings);
  ASSERT_EQ(cut.size(), 2u);
  EXPECT_EQ(cut[0].text, "aaaa\nbbb");
  EXPECT_EQ(cut[1].text, "cccc\nd");
  // No line end in reach: cut between characters, never inside one.
  const auto wide = read(t.write("c.txt", "ééééééééé"), settings);
  std::string joined;
  for (const auto& w : wide) {
    EXPECT_EQ(w.text.size() % 2, 0u);
    joined += w.text;
  }
  EXPECT_EQ(joined, "ééééééééé");
}

TEST(DatasetReader, BrokenCompressionIsAnError) {
  TempFolder t;
  const std::string text = numbered_lines(2000);
  for (const auto& [name, bytes] :
       {std::pair{"a.jsonl.gz", gzip(text)}, {"a.jsonl.zst", zstd(text)}}) {
    const auto cut = t.write(name, bytes.substr(0, bytes.size() / 2));
    EXPECT_THROW(read(cut, {}), FormatError) << name;
    std::string broken = bytes;
    for (std::size_t i = 100; i < 120; ++i) broken[i] ^= 0x55;
    EXPECT_THROW(read(t.write(name, broken), {}), FormatError) << name;
  }
}

TEST(DatasetSplit, FollowsContentAlone) {
  int moved = 0, valid = 0;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const auto hash = hash64(std::to_string(i));
    const bool small = split_of(hash, 0.02) == Split::kValid;
    const bool large = split_of(hash, 0.10) == Split::kValid;
    moved += small && !large;
    valid += large;
    EXPECT_EQ(split_of(hash, 0), Split::kTrain);
  }
  EXPECT_EQ(moved, 0) << "a larger share only moves from train to valid";
  EXPECT_NEAR(valid, 2000, 200);
}

TEST(DatasetSplit, Shares) {
  EXPECT_DOUBLE_EQ(parse_share("2%"), 0.02);
  EXPECT_DOUBLE_EQ(parse_share("0.25"), 0.25);
  EXPECT_DOUBLE_EQ(parse_share("off"), 0);
  for (const char* bad : {"", "%", "100%", "-1%", "nan", "2 %", "x"}) {
    EXPECT_THROW(parse_share(bad), UsageError) << bad;
  }
}

}  // namespace
}  // namespace hearth::data
