#include "hearth/base/spelling.h"

#include <vector>

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(Spelling, CountsEditsAndSwaps) {
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("jsno", "json"), 1u);
  EXPECT_EQ(edit_distance("same", "same"), 0u);
}

TEST(Spelling, NamesTheNearestOrNothing) {
  const std::vector<std::string> known{"doctor", "train", "bench"};
  EXPECT_EQ(nearest("docter", known), "doctor");
  EXPECT_EQ(did_you_mean("trian", known), "; did you mean 'train'?");
  EXPECT_EQ(nearest("frobnicate", known), std::nullopt);
}

// Takes no time at all; it was the square of the letters, half an hour here.
TEST(Spelling, LongWordsAreNotCompared) {
  const std::string word(10'000'000, 'x');
  const std::vector<std::string> known{"doctor", word + "y"};
  EXPECT_EQ(nearest(word, known), std::nullopt);
  EXPECT_EQ(nearest("docto", known), "doctor");
}

}  // namespace
}  // namespace hearth
