#include "hearth/nn/weight.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/nn/init.h"
#include "hearth/ops/linear/op.h"

namespace hearth::nn {
namespace {

using ops::QuantFormat;
using ops::QuantizedWeight;

Weight matrix(int rows, int cols) {
  Weight w({.name = "w", .shape = {rows, cols}, .matrix = true});
  initialize(w, 3, 1);
  return w;
}

std::shared_ptr<const QuantizedWeight> codes_of(
    const mx::array& rows,
    const QuantFormat& format
) {
  return std::make_shared<const QuantizedWeight>(
      QuantizedWeight::quantize(rows, format)
  );
}

TEST(Weight, EachFormReplacesWhatWasHeld) {
  const auto format = QuantFormat::parse("q8_0");
  Weight w({.name = "w", .shape = {10, 64}, .matrix = true});
  EXPECT_EQ(w.form(), WeightForm::empty);
  EXPECT_FALSE(w.filled());
  initialize(w, 3, 1);
  EXPECT_EQ(w.form(), WeightForm::master);
  pack(w, mx::float32, ops::PackedOrders::forward);
  EXPECT_EQ(w.form(), WeightForm::master);
  const auto rows = w.value();
  const std::size_t both = w.bytes();
  w.keep_packed_alone();
  EXPECT_EQ(w.form(), WeightForm::packed);
  EXPECT_EQ(w.value().size(), 0u);
  EXPECT_EQ(w.bytes(), both - rows.nbytes());
  w.set(codes_of(rows, format));
  EXPECT_EQ(w.form(), WeightForm::quantized);
  EXPECT_EQ(w.format(), format);
  EXPECT_FALSE(w.packed());
  w.set(codes_of(rows, format), rows);
  EXPECT_EQ(w.form(), WeightForm::quantized);
  EXPECT_EQ(w.value().size(), rows.size());
  w.set(rows);
  EXPECT_EQ(w.form(), WeightForm::master);
  EXPECT_FALSE(w.quantized());
  EXPECT_FALSE(w.format());
  w.clear();
  EXPECT_FALSE(w.filled());
  EXPECT_EQ(w.bytes(), 0u);
}

// What a quantised weight would answer, with the master untouched; and after
// an update of some rows the companion is what the format makes of those.
TEST(Weight, ARoundedOneAnswersAsItsFormatWouldAndFollowsItsMaster) {
  if (!ops::on_cpu({})) GTEST_SKIP() << "a GPU holds no packed companions";
  for (const char* name :
       {"q4_0", "q6_k", "affine3-g64-bf16", "int8-g32-f32"}) {
    SCOPED_TRACE(name);
    const auto format = QuantFormat::parse(name);
    Weight w = matrix(70, 256);
    const auto x =
        mx::random::normal({3, 256}, mx::float32, mx::random::key(1));
    w.round_to(format);
    pack(w, mx::float32, ops::PackedOrders::both);
    EXPECT_EQ(w.form(), WeightForm::rounded);
    EXPECT_EQ(w.format(), format);
    const auto expect_rounded = [&] {
      Weight want = matrix(70, 256);
      want.set(
          QuantizedWeight::quantize(w.value(), format).dequantize(mx::float32)
      );
      pack(want, mx::float32, ops::PackedOrders::both);
      EXPECT_TRUE(
          mx::array_equal(
              ops::linear(x, w.value(), {}, w.packed()),
              ops::linear(x, want.value(), {}, want.packed())
          )
              .item<bool>()
      );
    };
    expect_rounded();
    const auto plain = matrix(70, 256).value();
    EXPECT_TRUE(mx::array_equal(w.value(), plain).item<bool>());
    float* rows = w.value().data<float>();
    for (long i = 32 * 256; i < 70 * 256; ++i) rows[i] *= 1.5f;
    w.refresh(32, 70, ops::current_execution());
    expect_rounded();
  }
}

TEST(Weight, OnlyAMasterCanBeRounded) {
  const auto format = QuantFormat::parse("q8_0");
  Weight empty({.name = "w", .shape = {4, 64}, .matrix = true});
  EXPECT_THROW(empty.round_to(format), UsageError);
  Weight narrow = matrix(4, 33);
  EXPECT_THROW(narrow.round_to(format), UsageError);
  Weight half = matrix(4, 64);
  half.set(mx::astype(half.value(), mx::bfloat16));
  EXPECT_THROW(half.round_to(format), UsageError);
}

}  // namespace
}  // namespace hearth::nn
