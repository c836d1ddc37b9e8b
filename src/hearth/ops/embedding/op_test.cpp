// Numbers that are in no table.
#include "hearth/ops/embedding/op.h"

#include <cmath>

#include <gtest/gtest.h>

#include "hearth/ops/op_case.h"
#include "hearth/ops/op_case_check_impl.h"

namespace hearth::ops {
namespace {

class EmbeddingFaces : public testing::TestWithParam<Face> {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }
  const ScopedFace face{GetParam()};
};

TEST_P(EmbeddingFaces, ANumberOutsideTheTableGivesNan) {
  const auto ids = mx::array({0, 3, -1, 2}, {2, 2});
  // Of four values and, for a GPU's kernel, of eight.
  for (const std::size_t dim : {4u, 8u}) {
    const auto table = normal_input({3, int(dim)}, mx::float32, 1);
    const auto y = values_of(embedding(ids, table, mx::bfloat16));
    ASSERT_EQ(y.size(), 4 * dim);
    for (std::size_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(std::isnan(y[i]), i / dim == 1 || i / dim == 2) << i;
    }
  }
}

TEST_P(EmbeddingFaces, ANumberOutsideTheTableMovesNoRow) {
  const auto f = [](const Arrays& in) {
    return Arrays{embedding(mx::array({7, 1, -5}), in[0])};
  };
  const auto table = normal_input({3, 2}, mx::bfloat16, 1);
  const auto ct = mx::ones({3, 2}, mx::bfloat16);
  const auto g = mx::vjp(f, {table}, {ct}).second[0];
  EXPECT_EQ(values_of(g), std::vector<double>({0, 0, 1, 1, 0, 0}));
}

// 512 times one in bfloat16 would stay at 256.
TEST_P(EmbeddingFaces, TheGradientIsSummedInFloat32) {
  const auto f = [](const Arrays& in) {
    return Arrays{embedding(mx::zeros({512}, mx::int32), in[0])};
  };
  const auto table = normal_input({2, 1}, mx::bfloat16, 1);
  const auto ct = mx::ones({512, 1}, mx::bfloat16);
  const auto g = mx::vjp(f, {table}, {ct}).second[0];
  EXPECT_EQ(values_of(g), std::vector<double>({512, 0}));
}

INSTANTIATE_TEST_SUITE_P(
    Faces,
    EmbeddingFaces,
    testing::Values(Face::kernels, Face::gpu),
    [](const auto& p) { return p.param == Face::gpu ? "gpu" : "kernels"; }
);

}  // namespace
}  // namespace hearth::ops
