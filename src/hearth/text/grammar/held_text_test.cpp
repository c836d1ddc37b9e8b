#include "hearth/text/grammar/held_text.h"

#include <random>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/text/grammar/reserve.h"
#include "hearth/text/grammar/vocabulary_test.h"

namespace hearth::text::grammar {
namespace {

// As many places at once.
std::shared_ptr<const Grammar> branches(int count) {
  std::string out = "root ::= ";
  for (int i = 0; i < count; ++i) {
    out += (i > 0 ? " | .{" : ".{") + std::to_string(3 * i + 40) + "} \"x\"";
  }
  return grammar_of_gbnf(out);
}

std::vector<std::shared_ptr<const Grammar>> grammars() {
  return {
      branches(100),
      grammar_of_regex("(a|aa|ab|b){3,9}(the| the)*x+"),
      grammar_of_gbnf(
          "root ::= p0\np0 ::= p1 \"x\" | p1 \"y\"\np1 ::= p2 \"x\" | p2 "
          "\"y\"\np2 ::= \"(\" p0 \")\" | \"a\""
      ),
      grammar_of_any_json(),
  };
}

// Calls work(Effort&) with a little, and with more each time it was too much.
template <typename Work>
int in_pieces(const Work& work) {
  int pieces = 1;
  for (std::uint64_t units = 20;; units = units * 5 / 4, ++pieces) {
    Effort effort(units);
    try {
      work(effort);
      return pieces;
    } catch (const EffortError& e) {
      EXPECT_EQ(e.reason(), EffortError::Reason::too_large);
    }
  }
}

std::vector<bool> allowed(HeldText& text, std::size_t tokens) {
  std::vector<float> logits(tokens, 0.0F);
  text.mask(logits);
  std::vector<bool> out;
  for (const float v : logits) out.push_back(v == 0.0F);
  return out;
}

TEST(HeldText, InPiecesItIsWhatItIsAtOnce) {
  const TestVocabulary words;
  std::mt19937 random(5);
  int most = 0;
  for (const auto& grammar : grammars()) {
    HeldText whole(grammar, words.made, {.has_stops = true});
    HeldText pieces(grammar, words.made, {.has_stops = true});
    std::string text;
    for (int i = 0; i < 20 && !whole.must_end(); ++i) {
      most = std::max(most, in_pieces([&](Effort& e) { pieces.prepare(&e); }));
      const auto may = allowed(whole, words.bytes.size());
      ASSERT_EQ(allowed(pieces, words.bytes.size()), may) << text;
      std::int32_t id = words.stop;
      while (id == words.stop || !may[static_cast<std::size_t>(id)]) {
        id = static_cast<std::int32_t>(random() % words.bytes.size());
      }
      for (HeldText* one : {&whole, &pieces})
        one->push(id, "", words.text_of(id));
      text += words.text_of(id);
      whole.follow();
      in_pieces([&](Effort& e) { pieces.follow(&e); });
      ASSERT_EQ(pieces.must_end(), whole.must_end()) << text;
      ASSERT_EQ(pieces.may_end(text), whole.may_end(text)) << text;
      ASSERT_EQ(pieces.may_end(text), is_whole_text(*grammar, text)) << text;
    }
  }
  EXPECT_GT(most, 3) << "nothing was much work";
}

// What was found until the effort was used up is kept: a call that nearly
// sufficed has little left to do.
TEST(HeldText, WhatWasTooMuchIsNotBegunAnew) {
  const TestVocabulary words;
  const auto units = [&](std::uint64_t before) {
    HeldText text(branches(100), words.made, {});
    Effort little(before), rest;
    if (before > 0) {
      EXPECT_THROW(text.prepare(&little), EffortError);
    }
    text.prepare(&rest);
    return Effort::kMost - rest.left();
  };
  const std::uint64_t all = units(0);
  EXPECT_GT(all, 3'000U);
  EXPECT_LT(units(all * 9 / 10), all / 4);
}

TEST(HeldText, IsBoundedByTheTokensReserveAndNotByTheEffortAlone) {
  const TestVocabulary words;
  HeldText text(branches(6000), words.made, {});
  const auto go = [&] {
    for (int i = 0; i < 100; ++i) {
      // Parts that are too small count too.
      Effort little(1000), effort(100 * kReserve);
      EXPECT_THROW(text.prepare(&little), EffortError);
      text.prepare(&effort);
      text.push('a', "", "a");
      text.follow(&effort);
    }
  };
  try {
    go();
    FAIL() << "it was not refused";
  } catch (const EffortError& e) {
    FAIL() << "it is the request that is too much: " << e.what();
  } catch (const UsageError& e) {
    EXPECT_NE(std::string(e.what()).find("too ambiguous"), std::string::npos);
  }
}

// Nothing is found in pieces that are smaller than one step, and they do not go
// on for ever.
TEST(HeldText, PiecesThatAreTooSmallCountToo) {
  const TestVocabulary words;
  HeldText text(branches(6000), words.made, {});
  constexpr std::uint64_t kPiece = 4000;
  std::uint64_t pieces = 0;
  const auto go = [&] {
    for (; pieces < 2 * kReserve / kPiece; ++pieces) {
      Effort little(kPiece);
      try {
        text.prepare(&little);
      } catch (const EffortError&) {
      }
    }
  };
  EXPECT_THROW(go(), UsageError);
  EXPECT_LE(pieces, kReserve / kPiece);
  EXPECT_GT(pieces, kReserve / kPiece / 2);
}

TEST(HeldText, IsCalledOff) {
  const TestVocabulary words;
  HeldText text(branches(600), words.made, {});
  const auto flag = std::make_shared<std::atomic<bool>>(true);
  Effort effort;
  effort.unless(flag);
  try {
    text.prepare(&effort);
    FAIL() << "it was worked out";
  } catch (const EffortError& e) {
    EXPECT_EQ(e.reason(), EffortError::Reason::cancelled);
  }
  text.prepare();
  EXPECT_TRUE(allowed(text, words.bytes.size())['a']);
}

TEST(HeldText, BeginsBehindItsMark) {
  const TestVocabulary words;
  HeldText text(
      grammar_of_regex("[ab]{3}"), words.made,
      {.after = "the", .has_stops = true}
  );
  std::string all;
  const auto push = [&](const std::string& piece) {
    all += piece;
    text.push(piece.front(), piece, piece);
    text.follow();
    text.prepare();
  };
  push("t");
  push("h");
  EXPECT_FALSE(text.held());
  EXPECT_TRUE(text.may_end(all));
  push("ea");
  ASSERT_TRUE(text.held());
  EXPECT_FALSE(text.may_end(all));
  EXPECT_TRUE(text.may_end("th"));
  const auto may = allowed(text, words.bytes.size());
  EXPECT_TRUE(may['b']);
  EXPECT_FALSE(may['c']);
  push("b");
  push("b");
  EXPECT_TRUE(text.must_end());
  EXPECT_TRUE(text.may_end(all));
}

}  // namespace
}  // namespace hearth::text::grammar
