// SentencePiece's table of replaced characters.
#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/text/tokenizer/normalizer.h"

namespace hearth::text {
namespace {

std::string normalized(const std::string& blob, std::string text) {
  make_charsmap(blob, true)->apply(text);
  return text;
}

// The fuzzer's find: no trie at all reached memcpy as a null pointer.
TEST(Charsmap, EmptyTrieLeavesTextAlone) {
  EXPECT_EQ(normalized(std::string(4, '\0'), "A\u0301 b"), "A\u0301 b");
  EXPECT_EQ(normalized(std::string(4, '\0') + "x", "ab"), "ab");
}

TEST(Charsmap, RefusesWhatIsCutShort) {
  EXPECT_THROW(make_charsmap("", true), FormatError);
  EXPECT_THROW(make_charsmap("\x08", true), FormatError);
  EXPECT_THROW(
      make_charsmap(std::string("\x08\0\0\0abcd", 8), true), FormatError
  );
}

}  // namespace
}  // namespace hearth::text
