// A head that is only held quantised still scores tokens.
#include <gtest/gtest.h>

#include "hearth/models/load.h"

namespace hearth::models {
namespace {

TEST(QuantizedHead, LogProbsAreThoseOfTheWidenedHead) {
  auto model = load_model(
      HEARTH_SOURCE_DIR "/tests/golden/models/llama2", {.compute = mx::float32}
  );
  nn::Weight& head = model.decoder->head();
  const auto weight = std::make_shared<const ops::QuantizedWeight>(
      ops::QuantizedWeight::quantize(
          head.value(),
          ops::QuantFormat::affine(8, 32, kernels::ScaleType::kF32)
      )
  );
  const auto ids = mx::array({1, 5, 9, 2, 60, 3, 7, 8}, {2, 4}, mx::int32);
  const auto targets = mx::array({5, 9, -1, 4, 3, 7, 8, -1}, {2, 4}, mx::int32);
  nn::Pass pass;
  pass.dtype = mx::float32;
  pass.quantized = ops::QuantCompute::kExact;
  pass.positions = plain_positions(2, 4);
  pass.length = 4;
  head.set(weight->dequantize(mx::float32));
  nn::pack(head, mx::float32, ops::PackedOrders::forward);
  auto want = model.decoder->log_probs(ids, targets, pass);
  want.eval();
  head.set(weight);
  ASSERT_EQ(head.value().size(), 0u);
  auto got = model.decoder->log_probs(ids, targets, pass);
  got.eval();
  for (int i = 0; i < 8; ++i) {
    EXPECT_NEAR(got.data<float>()[i], want.data<float>()[i], 1e-3) << i;
  }
  EXPECT_EQ(got.data<float>()[2], 0);
  EXPECT_EQ(got.data<float>()[7], 0);
}

}  // namespace
}  // namespace hearth::models
