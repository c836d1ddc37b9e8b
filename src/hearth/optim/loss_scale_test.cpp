#include "hearth/optim/loss_scale.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth::optim {
namespace {

TEST(LossScale, DoublesAfterGoodStepsAndHalvesOnOverflow) {
  LossScale s(1024, 3);
  EXPECT_TRUE(s.update(true));
  EXPECT_TRUE(s.update(true));
  EXPECT_EQ(s.scale(), 1024);
  EXPECT_TRUE(s.update(true));
  EXPECT_EQ(s.scale(), 2048);
  EXPECT_TRUE(s.update(true));
  EXPECT_TRUE(s.update(true));
  EXPECT_FALSE(s.update(false));
  EXPECT_EQ(s.scale(), 1024);
  // The count of good steps starts anew.
  EXPECT_TRUE(s.update(true));
  EXPECT_TRUE(s.update(true));
  EXPECT_EQ(s.scale(), 1024);
  EXPECT_TRUE(s.update(true));
  EXPECT_EQ(s.scale(), 2048);
}

TEST(LossScale, StaysWithinItsBounds) {
  LossScale s(2, 1);
  for (int i = 0; i < 100; ++i) s.update(false);
  EXPECT_EQ(s.scale(), 1.0 / 65536);
  for (int i = 0; i < 200; ++i) s.update(true);
  EXPECT_EQ(s.scale(), 1099511627776.0);
}

TEST(LossScale, OffIsAlwaysOne) {
  auto s = LossScale::off();
  EXPECT_TRUE(s.update(true));
  EXPECT_FALSE(s.update(false));
  EXPECT_EQ(s.scale(), 1);
}

TEST(LossScale, ContinuesFromItsState) {
  LossScale a(512, 5), b(8, 5);
  for (int i = 0; i < 3; ++i) a.update(true);
  b.restore(parse_json(to_json_line(a.state()), "state"));
  for (int i = 0; i < 2; ++i) {
    a.update(true);
    b.update(true);
    EXPECT_EQ(a.scale(), b.scale());
  }
  EXPECT_EQ(b.scale(), 1024);
  EXPECT_THROW(b.restore(Json::object()), FormatError);
  EXPECT_THROW(b.restore({{"scale", "x"}, {"good_steps", 1}}), FormatError);
  EXPECT_THROW(b.restore({{"scale", 0}, {"good_steps", 1}}), FormatError);
}

}  // namespace
}  // namespace hearth::optim
