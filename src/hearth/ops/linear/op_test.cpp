// What the case table does not ask: packed companions, mixed dtypes, refusals.
#include "hearth/ops/linear/op.h"

#include <cstring>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

class LinearOp : public testing::Test {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }
};

bool same(mx::array a, mx::array b) {
  mx::eval(a, b);
  return a.nbytes() == b.nbytes() &&
         std::memcmp(a.data<char>(), b.data<char>(), a.nbytes()) == 0;
}

Arrays value_and_gradients(
    const mx::array& x,
    const mx::array& w,
    const std::shared_ptr<const PackedWeight>& packed
) {
  auto [y, g] = mx::vjp(
      [&](const Arrays& p) { return Arrays{linear(p[0], p[1], {}, packed)}; },
      {x, w}, {normal_input({x.shape(0), w.shape(0)}, x.dtype(), 5)}
  );
  return {y[0], g[0], g[1]};
}

// A companion refreshed in two parts, from the master, gives the bits that
// packing in the call gives.
TEST_F(LinearOp, PackedCompanionChangesNothing) {
  for (const auto dtype : {mx::bfloat16, mx::float32}) {
    const auto x = normal_input({37, 70}, dtype, 1);
    const auto w = normal_input({100, 70}, mx::float32, 2);
    mx::eval(x, w);
    const auto operand = dtype == mx::bfloat16 ? kernels::GemmScalar::bf16
                                               : kernels::GemmScalar::f32;
    auto packed = std::make_shared<PackedWeight>(
        100, 70, operand, MemoryZone::named("linear test")
    );
    const float* master = w.data<float>();
    packed->refresh(master, kernels::GemmScalar::f32, {64, 100});
    packed->refresh(master, kernels::GemmScalar::f32, {0, 64});
    const auto with = value_and_gradients(x, w, packed);
    const auto without = value_and_gradients(x, w, nullptr);
    for (std::size_t i = 0; i < with.size(); ++i) {
      EXPECT_TRUE(same(with[i], without[i])) << i;
    }
    EXPECT_EQ(with[2].dtype(), mx::float32);
    // What is used is the companion, not w.
    const auto other = linear(x, mx::zeros_like(w), {}, packed);
    EXPECT_TRUE(same(other, with[0]));
  }
}

// Rows that arrive piece by piece, in memory of their own, make the same
// companion; without the backward order the input gradient is the same bits.
TEST_F(LinearOp, ForwardOrderAlone) {
  const auto x = normal_input({37, 70}, mx::bfloat16, 1);
  const auto w = normal_input({100, 70}, mx::bfloat16, 2);
  mx::eval(x, w);
  const auto zone = MemoryZone::named("linear test");
  const auto bf16 = kernels::GemmScalar::bf16;
  PackedWeight whole(100, 70, bf16, zone);
  auto alone = std::make_shared<PackedWeight>(
      100, 70, bf16, zone, PackedOrders::forward
  );
  PackedWeight both(100, 70, bf16, zone);
  const auto* rows = w.data<mx::bfloat16_t>();
  whole.refresh(rows, bf16, {0, 100});
  for (const kernels::GemmRange r :
       {kernels::GemmRange{32, 96}, {0, 32}, {96, 100}}) {
    const std::vector<mx::bfloat16_t> piece(
        rows + r.begin * 70, rows + r.end * 70
    );
    alone->refresh_rows(piece.data(), bf16, r);
    both.refresh_rows(piece.data(), bf16, r);
  }
  EXPECT_EQ(alone->backward(), nullptr);
  EXPECT_LT(alone->bytes(), whole.bytes());
  const auto bytes = alone->bytes();
  EXPECT_EQ(std::memcmp(alone->forward(), whole.forward(), bytes), 0);
  EXPECT_EQ(
      std::memcmp(both.backward(), whole.backward(), whole.bytes() - bytes), 0
  );
  const auto with = value_and_gradients(x, w, alone);
  const auto without = value_and_gradients(x, w, nullptr);
  for (std::size_t i = 0; i < with.size(); ++i) {
    EXPECT_TRUE(same(with[i], without[i])) << i;
  }
  EXPECT_TRUE(same(linear(x, alone), with[0]));
  EXPECT_THROW(
      mx::vjp(
          [&](const Arrays& p) { return Arrays{linear(p[0], alone)}; }, {x},
          {with[0]}
      ),
      UsageError
  );
  EXPECT_THROW(linear(mx::astype(x, mx::float32), alone), UsageError);
  EXPECT_THROW(linear(w, alone, mx::zeros({7})), UsageError);
}

// Every activation, with columns that fill no register: the same bits as the
// two ops one after the other.
TEST_F(LinearOp, EveryActivationMayEndAProduct) {
  for (const auto dtype : {mx::bfloat16, mx::float32}) {
    const auto x = normal_input({37, 70}, dtype, 1);
    const auto w = normal_input({101, 70}, dtype, 2, 0.1f);
    for (int a = 0; a < kernels::kActivations; ++a) {
      const auto act = static_cast<Activation>(a);
      const auto gate = normal_input({37, 101}, dtype, 3);
      const auto want = gated_mlp_activation(gate, linear(x, w), act);
      EXPECT_TRUE(same(linear_gated(gate, x, w, act), want)) << name_of(act);
    }
  }
}

TEST_F(LinearOp, WeightsMayHaveAnotherDtype) {
  const auto w = normal_input({9, 40}, mx::bfloat16, 2);
  const auto w32 = mx::astype(w, mx::float32);
  const auto x = normal_input({2, 3, 40}, mx::bfloat16, 1);
  EXPECT_TRUE(same(linear(x, w), linear(x, w32)));
  const auto x32 = mx::astype(x, mx::float32);
  EXPECT_TRUE(same(linear(x32, w), linear(x32, w32)));
  EXPECT_EQ(linear(x, w).shape(), (mx::Shape{2, 3, 9}));
}

TEST_F(LinearOp, OneGradientAlone) {
  const auto x = normal_input({4, 6}, mx::float32, 1);
  const auto w = normal_input({5, 6}, mx::float32, 2);
  const auto b = normal_input({5}, mx::float32, 3);
  const auto ct = normal_input({4, 5}, mx::float32, 4);
  const auto all =
      mx::vjp(
          [](const Arrays& p) { return Arrays{linear(p[0], p[1], p[2])}; },
          {x, w, b}, {ct}
      )
          .second;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto one = mx::vjp(
                         [&](const Arrays& p) {
                           Arrays in{x, w, b};
                           in[i] = p[0];
                           return Arrays{linear(in[0], in[1], in[2])};
                         },
                         {Arrays{x, w, b}[i]}, {ct}
    )
                         .second;
    ASSERT_EQ(one.size(), 1u);
    EXPECT_TRUE(same(one[0], all[i])) << i;
  }
}

TEST_F(LinearOp, NoTokens) {
  const auto w = normal_input({5, 6}, mx::float32, 2);
  auto [y, g] = mx::vjp(
      [](const Arrays& p) { return Arrays{linear(p[0], p[1])}; },
      {mx::zeros({0, 6}), w}, {mx::zeros({0, 5})}
  );
  EXPECT_EQ(y[0].shape(), (mx::Shape{0, 5}));
  EXPECT_EQ(mx::max(mx::abs(g[1])).item<float>(), 0.0f);
}

TEST_F(LinearOp, ResidualGradientAloneIsTheUpstreamOne) {
  const auto x = normal_input({4, 6}, mx::bfloat16, 1);
  const auto w = normal_input({5, 6}, mx::bfloat16, 2);
  const auto ct = normal_input({4, 5}, mx::bfloat16, 4);
  const auto add = [&](const Arrays& p) {
    return Arrays{linear_add(p[0], x, w, 2)};
  };
  const auto [y, g] = mx::vjp(add, {ct}, {ct});
  EXPECT_TRUE(same(g[0], ct));
  EXPECT_THROW(linear_add(mx::astype(ct, mx::float32), x, w), UsageError);
  EXPECT_THROW(linear_add(mx::transpose(ct), x, w), UsageError);
}

TEST_F(LinearOp, RefusesWhatDoesNotFit) {
  const auto x = mx::zeros({2, 6});
  EXPECT_THROW(linear(x, mx::zeros({5})), UsageError);
  EXPECT_THROW(linear(x, mx::zeros({5, 7})), UsageError);
  EXPECT_THROW(linear(x, mx::zeros({5, 6}), mx::zeros({6})), UsageError);
  EXPECT_THROW(
      linear(mx::zeros({2, 6}, mx::int32), mx::zeros({5, 6})), UsageError
  );
  auto packed = std::make_shared<PackedWeight>(
      6, 5, kernels::GemmScalar::f32, MemoryZone::named("linear test")
  );
  EXPECT_THROW(linear(x, mx::zeros({5, 6}), {}, packed), UsageError);
}

}  // namespace
}  // namespace hearth::ops
