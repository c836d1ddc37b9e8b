#include "hearth/text/grammar/token_set.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace hearth::text::grammar {
namespace {

using Ids = std::vector<std::int32_t>;

// Two words and a part of a third.
constexpr std::size_t kSize = 150;

TEST(TokenSets, AllButTheseIsEveryOtherOne) {
  for (const Ids& left_out :
       {Ids{}, Ids{0}, Ids{149}, Ids{0, 1, 63, 64, 127, 128, 149}}) {
    TokenSet set(kSize);
    set.add_all_but(left_out);
    EXPECT_EQ(set.count(), kSize - left_out.size());
    for (std::int32_t id = 0; id < 150; ++id) {
      const bool out = std::ranges::find(left_out, id) != left_out.end();
      EXPECT_EQ(set.contains(id), !out) << id;
    }
    EXPECT_EQ(set.other_ids(), left_out);
  }
}

TEST(TokenSets, MaskLeavesTheSetAndForbidsWhatIsPastTheVocabulary) {
  const Ids in{0, 5, 63, 64, 100, 149};
  TokenSet set(kSize);
  for (const auto id : in) set.add(id);
  EXPECT_EQ(set.ids(), in);
  // Logits of a model are padded further than its tokenizer.
  std::vector<float> logits(200, 1.5f);
  set.mask(logits);
  for (std::int32_t id = 0; id < 200; ++id) {
    const bool there = std::ranges::find(in, id) != in.end();
    const float got = logits[static_cast<std::size_t>(id)];
    EXPECT_EQ(got, there ? 1.5f : -INFINITY) << id;
  }
}

}  // namespace
}  // namespace hearth::text::grammar
