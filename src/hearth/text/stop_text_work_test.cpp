// What a text with many stop strings in it costs, in questions and in bytes
// that are read: a time would depend on the machine.
#include <gtest/gtest.h>

#include "hearth/text/stop_text.h"

namespace hearth::text {
namespace {

// Questions that are asked about "b" and blanks, which nothing may end: the
// first of the stop strings holds all of it back, the second lies everywhere.
int questions_over(int blanks) {
  constexpr int kToken = 64;
  int asked = 0;
  const std::string blank(1, ' ');
  StopText stop(
      {"b" + std::string(static_cast<std::size_t>(blanks), ' ') + "!", blank},
      [&](std::string_view before) {
        EXPECT_EQ(before.front(), 'b');
        ++asked;
        return false;
      }
  );
  std::string shown = stop.push("b");
  for (int i = 0; i < blanks; i += kToken) {
    shown += stop.push(std::string(kToken, ' '));
    EXPECT_EQ(shown, "");
  }
  EXPECT_EQ(stop.finish().size(), static_cast<std::size_t>(blanks) + 1);
  return asked;
}

TEST(StopTextWork, APlaceThatWasRefusedIsNotAskedAboutAgain) {
  EXPECT_EQ(questions_over(128), 128);
  EXPECT_EQ(questions_over(960), 960);
}

}  // namespace
}  // namespace hearth::text
