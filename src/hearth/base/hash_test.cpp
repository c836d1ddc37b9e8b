#include "hearth/base/hash.h"

#include <string>

#include <gtest/gtest.h>

namespace hearth {
namespace {

// Expected values come from the reference implementation (PyPI xxhash 4.1).
std::string ramp(std::size_t n) {
  std::string s(n, 0);
  for (std::size_t i = 0; i < n; ++i) s[i] = static_cast<char>(i * 7 + 3);
  return s;
}

TEST(Hash64, AgreesWithReference) {
  EXPECT_EQ(hash64(""), 0xef46db3751d8e999ULL);
  EXPECT_EQ(hash64("abc"), 0x44bc2cf5ad770999ULL);
  EXPECT_EQ(hash64(ramp(31)), 0xa2aa5f33cc4a6119ULL);
  EXPECT_EQ(hash64(ramp(32)), 0x23c3c17ef790fd97ULL);
  EXPECT_EQ(hash64(ramp(1000), 42), 0xd776e8028586ff61ULL);
}

TEST(Hash64, PiecesDoNotMatter) {
  const std::string text = ramp(777);
  for (std::size_t step : {1u, 5u, 31u, 32u, 33u, 64u, 500u}) {
    Hash64 hash(9);
    for (std::size_t at = 0; at < text.size(); at += step) {
      hash.update(std::string_view(text).substr(at, step));
    }
    EXPECT_EQ(hash.digest(), hash64(text, 9)) << step;
  }
}

TEST(ContentHash, FieldsAreKeptApart) {
  const auto one = ContentHash().field("ab").field("c").digest();
  const auto two = ContentHash().field("a").field("bc").digest();
  EXPECT_NE(one.hex(), two.hex());
  EXPECT_EQ(one.hex().size(), 32u);
  EXPECT_NE(one.high, one.low);
}

}  // namespace
}  // namespace hearth
