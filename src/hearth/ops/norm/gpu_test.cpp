// What the op cases cannot ask of a GPU's norms: they are held apart by input
// here.
#include <gtest/gtest.h>

#include "hearth/ops/norm/op.h"
#include "hearth/ops/op_case.h"
#include "hearth/ops/op_case_check_impl.h"

namespace hearth::ops {
namespace {

class GpuNorm : public testing::Test {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }
};

TEST_F(GpuNorm, TheGradientOfABfloat16StreamIsAsGoodAsOurKernels) {
  const ScopedFace gpu(Face::gpu);
  const auto x = normal_input({130, 100}, mx::bfloat16, 1);
  const auto w = uniform_input({100}, mx::float32, 2, 0.5f, 1.5f);
  const auto ct = normal_input({130, 100}, mx::bfloat16, 3);
  const auto gradient = [&](const ArraysFunction& f, const mx::array& at,
                            const mx::array& c) {
    return mx::vjp(f, Arrays{at}, Arrays{c}).second[0];
  };
  const auto got = gradient(
      [&](const Arrays& in) { return Arrays{rms_norm(in[0], w, 1e-5f)}; }, x, ct
  );
  const auto want = gradient(
      [&](const Arrays& in) {
        return Arrays{
            rms_norm_reference(in[0], to_float64(w), 1e-5f, mx::float64)
        };
      },
      to_float64(x), to_float64(ct)
  );
  EXPECT_EQ(first_difference(got, want, {2e-2, 1.2e-2}), "");
}

// Squares below eps: nothing but eps decides the result.
TEST_F(GpuNorm, SmallRowsAreHeldByEps) {
  const auto x = normal_input({5, 16}, mx::float32, 1, 1e-4f);
  const auto r = normal_input({5, 16}, mx::float32, 2, 1e-4f);
  const auto want = rms_norm_reference(mx::add(x, r), {}, 1e-5f, mx::float32);
  const ScopedFace gpu(Face::gpu);
  const auto got = add_rms_norm(x, r, mx::ones({16}), 1e-5f).second;
  EXPECT_EQ(first_difference(got, want, {1e-6, 1e-5}), "");
}

TEST_F(GpuNorm, IsMadeAgainToTheBit) {
  const ScopedFace gpu(Face::gpu);
  const auto x = normal_input({5, 24}, mx::float32, 1);
  const auto r = normal_input({5, 24}, mx::bfloat16, 2);
  const auto w = uniform_input({24}, mx::float32, 3, 0.5f, 1.5f);
  const auto kept = add_rms_norm_kept(x, r, w, 1e-5f);
  ASSERT_TRUE(kept.again);
  EXPECT_TRUE(mx::array_equal(norm_again(*kept.again), kept.y).item<bool>());
  const auto [h, y] = add_rms_norm(x, r, w, 1e-5f);
  EXPECT_TRUE(mx::array_equal(kept.y, y).item<bool>());
  EXPECT_TRUE(mx::array_equal(kept.h, h).item<bool>());
  // And by MLX's ops, where no kernel of ours runs.
  const auto plain = [&] {
    const ScopedFace other(Face::kernels);
    return norm_again(*kept.again);
  }();
  EXPECT_EQ(plain.dtype(), kept.y.dtype());
  EXPECT_TRUE(mx::array_equal(plain, kept.y).item<bool>());
  const auto odd = normal_input({5, 7}, mx::float32, 1);
  EXPECT_TRUE(
      mx::array_equal(norm_again({odd, mx::ones({7})}), odd).item<bool>()
  );
  EXPECT_FALSE(add_rms_norm_kept(odd, odd, mx::ones({7}), 1e-5f).again);
}

// More rows than the gradient's kernel has items: each takes several.
TEST_F(GpuNorm, TheWeightsGradientIsOfAllRows) {
  const auto x = normal_input({4200, 8}, mx::float32, 1);
  const auto r = normal_input({4200, 8}, mx::float32, 2);
  const auto ct = normal_input({4200, 8}, mx::float32, 3);
  const auto w = uniform_input({8}, mx::float32, 4, 0.5f, 1.5f);
  const auto gradient = [&](const ArraysFunction& f) {
    return mx::vjp(f, Arrays{w}, Arrays{ct}).second[0];
  };
  const auto want = gradient([&](const Arrays& in) {
    return Arrays{rms_norm_reference(mx::add(x, r), in[0], 1e-5f, mx::float32)};
  });
  const ScopedFace gpu(Face::gpu);
  const auto got = gradient([&](const Arrays& in) {
    return Arrays{add_rms_norm(x, r, in[0], 1e-5f).second};
  });
  EXPECT_EQ(first_difference(got, want, {1e-3, 1e-4}), "");
}

// The residual stays float32 whatever the branch is: by MLX's ops, which take
// rows of seven, and by our kernel.
TEST_F(GpuNorm, TheStreamKeepsItsType) {
  const ScopedFace gpu(Face::gpu);
  for (const int dim : {7, 8}) {
    const auto x = normal_input({3, dim}, mx::float32, 1);
    const auto r = normal_input({3, dim}, mx::bfloat16, 2);
    const auto [h, y] = add_rms_norm(x, r, mx::ones({dim}), 1e-5f);
    EXPECT_EQ(h.dtype(), mx::float32);
    EXPECT_EQ(y.dtype(), mx::bfloat16);
    EXPECT_TRUE(
        mx::array_equal(h, mx::add(x, mx::astype(r, mx::float32))).item<bool>()
    );
  }
}

// A mean far from zero must be taken off before anything is rounded.
TEST_F(GpuNorm, ALayerNormOfAFloat32StreamSeesAllOfIt) {
  const auto x =
      mx::add(normal_input({4, 64}, mx::float32, 1), mx::array(500.0f));
  const auto want = layer_norm_reference(x, {}, {}, 1e-5f, mx::float32);
  const ScopedFace gpu(Face::gpu);
  const auto got = layer_norm(x, {}, {}, 1e-5f, mx::bfloat16);
  EXPECT_EQ(first_difference(got, want, {1e-2, 1e-2}), "");
}

}  // namespace
}  // namespace hearth::ops
