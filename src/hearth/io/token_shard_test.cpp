#include "hearth/io/token_shard.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/base/temp_folder_test.h"

namespace hearth::io {
namespace {

namespace fs = std::filesystem;

class TokenShardTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  std::string write(std::uint32_t vocabulary, std::uint32_t flags) {
    const std::string file = path("a.tok");
    TokenShardWriter w(file, vocabulary, flags, {1, 2});
    const bool spans = flags & kHasSpans;
    w.add(std::vector<std::int32_t>{5, 6, 7}, marks(spans, {{1, 3}}), 11);
    w.add(std::vector<std::int32_t>{}, {}, 12);
    w.add(
        std::vector<std::int32_t>{1, 2, 3, 4, 9},
        marks(spans, {{0, 1}, {3, 5}}), 13
    );
    w.add(std::vector<std::int32_t>{8}, {}, 14);
    w.finish();
    return file;
  }
  static std::vector<TokenSpan> marks(bool on, std::vector<TokenSpan> m) {
    return on ? m : std::vector<TokenSpan>{};
  }
  static std::string slurp(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // The error of opening and verifying these bytes; empty when there is none.
  std::string refusal(const std::string& bytes) {
    const std::string file = path("broken.tok");
    std::ofstream(file, std::ios::binary) << bytes;
    try {
      TokenShard(file).verify();
    } catch (const FormatError& e) {
      return e.what();
    }
    return {};
  }
  const TempFolder folder_;
};

TEST_F(TokenShardTest, ReadsBackBothWidths) {
  for (std::uint32_t vocabulary : {1000u, 100000u}) {
    const TokenShard shard(write(vocabulary, kHasSpans));
    EXPECT_EQ(shard.id_bytes(), vocabulary > 65536 ? 4 : 2);
    ASSERT_EQ(shard.documents(), 4u);
    EXPECT_EQ(shard.info().tokens, 9u);
    EXPECT_EQ(shard.info().key, (Hash128{1, 2}));
    EXPECT_EQ(shard.length(1), 0u);
    EXPECT_EQ(shard.hash(2), 13u);
    std::vector<std::int32_t> out(3);
    shard.read(2, 1, out);
    EXPECT_EQ(out, (std::vector<std::int32_t>{2, 3, 4}));
    ASSERT_EQ(shard.spans(2).size(), 2u);
    EXPECT_EQ(shard.spans(2)[1], (TokenSpan{3, 5}));
    EXPECT_TRUE(shard.spans(3).empty());
    shard.verify();
  }
}

TEST_F(TokenShardTest, SameDocumentsGiveSameBytes) {
  const std::string one = slurp(write(1000, 0));
  fs::remove(path("a.tok"));
  EXPECT_EQ(one, slurp(write(1000, 0)));
}

TEST_F(TokenShardTest, RefusesToWriteWhatItCouldNotRead) {
  TokenShardWriter w(path("b.tok"), 10, kHasSpans, {});
  EXPECT_THROW(w.add(std::vector<std::int32_t>{10}, {}, 0), UsageError);
  EXPECT_THROW(w.add(std::vector<std::int32_t>{-1}, {}, 0), UsageError);
  const std::vector<TokenSpan> beyond = {{0, 2}};
  EXPECT_THROW(w.add(std::vector<std::int32_t>{1}, beyond, 0), UsageError);
  EXPECT_FALSE(fs::exists(path("b.tok"))) << "only finish() makes the file";
}

TEST_F(TokenShardTest, ReadsOutsideADocumentAreRefused) {
  const TokenShard shard(write(1000, 0));
  std::vector<std::int32_t> out(4);
  EXPECT_THROW(shard.read(0, 0, out), UsageError);
  EXPECT_THROW(shard.read(0, ~0ull, out), UsageError);
  EXPECT_THROW(shard.read(4, 0, out), UsageError);
  EXPECT_THROW(shard.length(~0ull), UsageError);
}

TEST_F(TokenShardTest, EveryTruncationIsRefused) {
  const std::string whole = slurp(write(1000, kHasSpans));
  ASSERT_EQ(refusal(whole), "");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(refusal(whole.substr(0, size)), "") << size;
  }
  EXPECT_NE(refusal(whole + '\0'), "");
}

TEST_F(TokenShardTest, EveryFlippedByteIsRefusedInOneLine) {
  const std::string whole = slurp(write(1000, kHasSpans));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string broken = whole;
    broken[at] ^= 0x10;
    const std::string error = refusal(broken);
    EXPECT_NE(error, "") << at;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

TEST_F(TokenShardTest, HostileTablesAreRefusedWhenUsed) {
  std::string whole = slurp(write(1000, kHasSpans));
  // The second offset (document 0's end), after 64 bytes and nine u16 ids.
  const std::size_t offsets = 64 + 24;
  const std::uint64_t huge = ~0ull - 5;
  std::memcpy(whole.data() + offsets + 8, &huge, 8);
  std::ofstream(path("h.tok"), std::ios::binary) << whole;
  const TokenShard shard(path("h.tok"));
  std::vector<std::int32_t> out(1);
  EXPECT_THROW(shard.length(0), FormatError);
  EXPECT_THROW(shard.read(1, 0, out), FormatError);
  EXPECT_THROW(shard.spans(0), FormatError);
}

}  // namespace
}  // namespace hearth::io
