// What the case table does not ask of layers that read one input: weights that
// are only packed, gradients that are not wanted, refusals.
#include "hearth/ops/linears/op.h"

#include <cstring>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

class LinearsOp : public testing::Test {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }
};

bool same_bits(mx::array a, mx::array b) {
  mx::eval(a, b);
  return a.nbytes() == b.nbytes() &&
         std::memcmp(a.data<char>(), b.data<char>(), a.nbytes()) == 0;
}

std::shared_ptr<const PackedWeight> pack(
    mx::array w,
    PackedOrders orders = PackedOrders::both
) {
  w.eval();
  auto packed = std::make_shared<PackedWeight>(
      w.shape(0), w.shape(1), kernels::GemmScalar::bf16,
      MemoryZone::named("linears test"), orders
  );
  packed->refresh(w.data<float>(), kernels::GemmScalar::f32, {0, w.shape(0)});
  return packed;
}

struct Inputs {
  mx::array x = normal_input({37, 70}, mx::bfloat16, 1);
  mx::array w = normal_input({100, 70}, mx::float32, 2, 0.1f);
  mx::array v = normal_input({45, 70}, mx::float32, 3, 0.1f);
  mx::array a = normal_input({8, 70}, mx::float32, 4, 0.1f);
  mx::array b = normal_input({100, 8}, mx::float32, 5, 0.1f);
};

LinearPart with_adapter(const mx::array& a, const mx::array& b) {
  return {{}, {}, nullptr, LowRank{a, b, 2.0f, nullptr, nullptr}};
}

// Of x, a and b, and both results; `make` says what the weights are.
template <class Make>
Arrays value_and_gradients(const Inputs& in, const Make& make) {
  auto [y, g] = mx::vjp(
      [&](const Arrays& p) {
        auto first = with_adapter(p[1], p[2]);
        LinearPart second{{}, {}, nullptr, {}};
        make(first, second);
        return linears(p[0], {first, second});
      },
      {in.x, in.a, in.b},
      {normal_input({37, 100}, mx::bfloat16, 6),
       normal_input({37, 45}, mx::bfloat16, 7)}
  );
  y.insert(y.end(), g.begin(), g.end());
  return y;
}

TEST_F(LinearsOp, AWeightThatIsOnlyPackedChangesNothing) {
  const Inputs in;
  const auto whole = value_and_gradients(in, [&](auto& first, auto& second) {
    first.w = in.w, second.w = in.v;
  });
  const auto w = pack(in.w), v = pack(in.v);
  const auto alone = value_and_gradients(in, [&](auto& first, auto& second) {
    first.packed = w, second.packed = v;
  });
  ASSERT_EQ(whole.size(), alone.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_TRUE(same_bits(whole[i], alone[i])) << i;
  }
}

// The gradient of x is that of the layers one by one, but for their rounding.
TEST_F(LinearsOp, OneProductIsTheSumOfMany) {
  const Inputs in;
  const auto both = value_and_gradients(in, [&](auto& first, auto& second) {
    first.w = in.w, second.w = in.v;
  });
  const auto one_by_one = mx::vjp(
      [&](const Arrays& p) {
        const auto inner = linear(p[0], in.a);
        return Arrays{
            linear_add(linear(p[0], in.w), inner, in.b, 2.0f),
            linear(p[0], in.v)
        };
      },
      {in.x},
      {normal_input({37, 100}, mx::bfloat16, 6),
       normal_input({37, 45}, mx::bfloat16, 7)}
  );
  auto near = mx::allclose(
      mx::astype(both[2], mx::float32),
      mx::astype(one_by_one.second[0], mx::float32), 2e-2, 2e-2
  );
  EXPECT_TRUE(near.item<bool>());
}

TEST_F(LinearsOp, RefusesWhatDoesNotFit) {
  const Inputs in;
  const LinearPart good{in.w, {}, nullptr, {}};
  EXPECT_THROW(linears(in.x, {}), UsageError);
  EXPECT_THROW(
      linears(in.x, std::vector<LinearPart>(kMostLinears + 1, good)), UsageError
  );
  EXPECT_THROW(linears(in.x, {{{}, {}, nullptr, {}}}), UsageError);
  EXPECT_THROW(linears(in.x, {{in.b, {}, nullptr, {}}}), UsageError);
  EXPECT_THROW(linears(in.x, {{in.w, in.x, nullptr, {}}}), UsageError);
  auto swapped = good;
  swapped.adapter = LowRank{in.b, in.a, 1, nullptr, nullptr};
  EXPECT_THROW(linears(in.x, {swapped}), UsageError);
  // Packed for another dtype, and for another shape.
  const LinearPart alone{{}, {}, pack(in.w), {}};
  EXPECT_THROW(linears(mx::astype(in.x, mx::float32), {alone}), UsageError);
  EXPECT_THROW(linears(in.x, {{in.v, {}, pack(in.w), {}}}), UsageError);
}

TEST_F(LinearsOp, ForwardOrderAloneHasNoGradient) {
  const Inputs in;
  const LinearPart part{{}, {}, pack(in.w, PackedOrders::forward), {}};
  const auto f = [&](const Arrays& p) { return linears(p[0], {part}); };
  EXPECT_THROW(
      mx::vjp(f, {in.x}, {normal_input({37, 100}, mx::bfloat16, 6)}), UsageError
  );
}

}  // namespace
}  // namespace hearth::ops
