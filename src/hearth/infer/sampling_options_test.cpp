#include "hearth/infer/sampling_options.h"

#include <cmath>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"

namespace hearth::infer {
namespace {

std::string row_of(const SamplingField& field) {
  return fmt::format(
      "| `{}` | `{}` | {} | {} | {} to {} | {} |", field.flag, field.key,
      field.get({}), std::string(field.range.must).substr(8),
      field.request_least, field.request_most, field.help
  );
}

TEST(SamplingFields, ThePageSaysWhatTheListSays) {
  const std::string page =
      read_text_file(HEARTH_SOURCE_DIR "/docs/sampling.md", 1 << 20);
  for (const auto& field : sampling_fields()) {
    EXPECT_NE(page.find(row_of(field)), std::string::npos)
        << "docs/sampling.md needs the row\n"
        << row_of(field);
  }
}

TEST(SamplingFields, EachIsAnOptionOfItsOwn) {
  std::set<std::string> names, flags, keys;
  for (const auto& field : sampling_fields()) {
    names.insert(field.name), flags.insert(field.flag), keys.insert(field.key);
    SamplerOptions options;
    EXPECT_TRUE(field.range.holds(field.get(options))) << field.name;
    field.set(options, 0.5 * 16);
    EXPECT_EQ(field.get(options), 8) << field.name;
    for (const auto& other : sampling_fields()) {
      if (&other == &field) continue;
      EXPECT_EQ(other.get(options), other.get({}));
    }
  }
  for (const auto& some : {names, flags, keys}) {
    EXPECT_EQ(some.size(), sampling_fields().size());
  }
}

TEST(SamplingFields, WhatIsOutOfRangeIsNamed) {
  for (const auto& field : sampling_fields()) {
    for (const double bad :
         std::initializer_list<double>{std::nan(""), INFINITY, -INFINITY}) {
      if (field.whole()) continue;
      SamplerOptions options;
      field.set(options, bad);
      const auto fault = options.fault();
      ASSERT_TRUE(fault) << field.name << " takes " << bad;
      EXPECT_EQ(fault->field, &field);
      EXPECT_THROW(options.check(), UsageError);
    }
    EXPECT_EQ(field.range.holds(field.range.least), !field.range.above);
  }
}

TEST(GivenSampling, ChangesWhatWasGivenAndNothingElse) {
  SamplerOptions options{.top_k = 7, .top_p = 0.5};
  GivenSampling given;
  given.apply(options);
  EXPECT_EQ(options.top_k, 7);
  given.give(2, 0.25);  // top_p
  given.apply(options);
  EXPECT_EQ(options.top_p, 0.25);
  EXPECT_EQ(options.top_k, 7);
  EXPECT_TRUE(given.gave("top_p"));
  EXPECT_FALSE(given.gave("top_k"));
}

}  // namespace
}  // namespace hearth::infer
