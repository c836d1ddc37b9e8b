#include "hearth/serve/key_shares.h"

#include <gtest/gtest.h>

#include "hearth/serve/api/api_error.h"

namespace hearth::serve {
namespace {

int status_of(const std::function<void()>& what) {
  try {
    what();
  } catch (const ApiError& e) {
    return e.status();
  }
  return 200;
}

TEST(KeyShares, EachKeyHasItsOwn) {
  KeyShares shares(4);
  auto a = shares.take("a", 3);
  EXPECT_EQ(status_of([&] { shares.take("a", 2); }), 429);
  const auto b = shares.take("b", 4);
  EXPECT_EQ(status_of([&] { shares.take("b", 1); }), 429);
  auto more = shares.take("a", 1);
  a.reset();
  shares.resize(*more, 4);
  EXPECT_EQ(status_of([&] { shares.take("a", 1); }), 429);
  shares.resize(*more, 1);
  EXPECT_EQ(status_of([&] { shares.take("a", 3); }), 200);
  EXPECT_EQ(status_of([&] { shares.take("a", 3); }), 200);
}

TEST(KeyShares, WhatCanNeverBeIsNotWorthAnotherTry) {
  KeyShares shares(4);
  EXPECT_EQ(status_of([&] { shares.take("a", 5); }), 400);
  const auto share = shares.take("a", 4);
  EXPECT_EQ(status_of([&] { shares.resize(*share, 5); }), 400);
  KeyShares any(0);
  EXPECT_EQ(status_of([&] { any.take("a", 100'000); }), 200);
}

TEST(KeyShares, AShareMayOutliveThem) {
  KeyShares::SharePtr share;
  {
    KeyShares shares(1);
    share = shares.take("a", 1);
  }
  share.reset();
}

}  // namespace
}  // namespace hearth::serve
