#include "hearth/text/stop_text.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth::text {
namespace {

TEST(StopText, PlainTextPassesAtOnce) {
  StopText stop({"END"});
  EXPECT_EQ(stop.push("hello "), "hello ");
  EXPECT_EQ(stop.push("world"), "world");
  EXPECT_EQ(stop.finish(), "");
  EXPECT_FALSE(stop.found());
}

TEST(StopText, AStringInPiecesIsFoundAndCutOff) {
  StopText stop({"END"});
  EXPECT_EQ(stop.push("a E"), "a ");
  EXPECT_EQ(stop.push("N"), "");
  EXPECT_EQ(stop.push("D of it"), "");
  EXPECT_TRUE(stop.found());
  EXPECT_EQ(stop.push("more"), "");
  EXPECT_EQ(stop.finish(), "");
}

TEST(StopText, AFalseBeginningIsShownLater) {
  StopText stop({"ENDE", "NO"});
  EXPECT_EQ(stop.push("EN"), "");
  EXPECT_EQ(stop.push("D"), "");
  EXPECT_EQ(stop.push("x E"), "ENDx ");
  EXPECT_EQ(stop.finish(), "E");
}

TEST(StopText, WhatIsShownEarlyIsPartOfTheTextBeforeAStop) {
  std::string before;
  StopText stop({"END"}, [&](std::string_view text) {
    before = text;
    return true;
  });
  EXPECT_EQ(stop.push("aE"), "a");
  EXPECT_EQ(stop.finish(), "E");
  EXPECT_EQ(stop.push("ND"), "ND");
  EXPECT_EQ(stop.push("END"), "");
  EXPECT_EQ(before, "aEND");
}

TEST(StopText, TheEarliestOfSeveralEndsIt) {
  StopText stop({"cd", "bc"});
  EXPECT_EQ(stop.push("abcd"), "a");
  EXPECT_TRUE(stop.found());
}

TEST(StopText, ALongerBeginningWinsOverAShorterOne) {
  StopText stop({"aab"});
  EXPECT_EQ(stop.push("xaaa"), "xa");
  EXPECT_EQ(stop.push("b"), "");
  EXPECT_TRUE(stop.found());
}

TEST(StopText, WhatMayNotEndTheTextIsText) {
  const auto may_end = [](std::string_view before) {
    return before.ends_with("}");
  };
  StopText stop({":", "}x", " e"}, may_end);
  EXPECT_EQ(stop.push("{a:"), "{a:");
  EXPECT_EQ(stop.push(" 1: "), " 1:");
  EXPECT_EQ(stop.push("e }"), " e ");
  EXPECT_FALSE(stop.found());
  EXPECT_EQ(stop.push("x e} "), "}x e}");
  EXPECT_EQ(stop.push("end"), "");
  EXPECT_TRUE(stop.found());
}

TEST(StopText, EmptyStringsAreRefused) {
  EXPECT_THROW(StopText({""}), UsageError);
}

TEST(StopText, LongStringsAreRefused) {
  const std::string most(kMaxStopBytes, 'a');
  StopText stop({most});
  EXPECT_EQ(stop.push("a" + most), "");
  EXPECT_TRUE(stop.found());
  try {
    StopText({"END", most + "a"});
    ADD_FAILURE() << "taken";
  } catch (const UsageError& e) {
    EXPECT_STREQ(
        e.what(),
        "[infer.StopText] a stop string must have at most 1024 bytes, got 1025"
    );
  }
}

}  // namespace
}  // namespace hearth::text
