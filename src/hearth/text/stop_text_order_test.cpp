// Which of several stop strings ends a text does not depend on their order.
#include <algorithm>

#include <gtest/gtest.h>

#include "hearth/text/stop_text.h"

namespace hearth::text {
namespace {

std::string shown(std::vector<std::string> stops, std::string_view text) {
  StopText stop(std::move(stops));
  std::string out = stop.push(text);
  return out + stop.finish();
}

TEST(StopTextOrder, TheEarliestEndsTheTextWhereverItStandsInTheList) {
  std::vector<std::string> stops = {"bc", "cd", "zz"};
  std::ranges::sort(stops);
  do {
    EXPECT_EQ(shown(stops, "abcd"), "a");
    EXPECT_EQ(shown(stops, "xcdbc"), "x");
    EXPECT_EQ(shown(stops, "nothing of it"), "nothing of it");
  } while (std::ranges::next_permutation(stops).found);
}

}  // namespace
}  // namespace hearth::text
