#include "hearth/ops/gradient_home.h"

#include <gtest/gtest.h>

#include "hearth/ops/arithmetic/op.h"
#include "hearth/ops/embedding/op.h"
#include "hearth/ops/head_loss/op.h"
#include "hearth/ops/linears/op.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

Home home_for(const mx::array& w) {
  return std::make_shared<GradientHome>(
      w.shape(), MemoryZone::named("gradients")
  );
}

using Loss = std::function<mx::array(const mx::array& w)>;

mx::array gradient(const Loss& loss, const mx::array& w) {
  return mx::grad([&](const mx::array& v) { return loss(v); })(w);
}

// The largest difference, relative to the largest number of `want`.
float difference(const mx::array& got, const mx::array& want) {
  const auto d = mx::max(mx::abs(mx::subtract(got, want)));
  const auto size = mx::maximum(mx::max(mx::abs(want)), mx::array(1e-6f));
  return mx::divide(d, size).item<float>();
}

// What every op that knows homes makes of a weight; `seed` tells micro-batches
// apart.
struct HomeCase {
  const char* name;
  std::function<mx::array(const mx::array& w, const Home&, std::uint64_t seed)>
      loss;
};

constexpr int kRows = 40, kWide = 24, kOut = 70;

mx::array input(std::uint64_t seed, int wide = kWide) {
  return normal_input({kRows, wide}, mx::float32, seed);
}
mx::array weighed(const mx::array& y, std::uint64_t seed) {
  return mx::sum(
      mx::multiply(y, normal_input(y.shape(), mx::float32, seed + 100))
  );
}

const HomeCase kCases[] = {
    {"linears",
     [](const mx::array& w, const Home& home, std::uint64_t seed) {
       const std::vector<LinearPart> parts = {{w, {}, nullptr, {}, home}};
       return weighed(linears(input(seed), parts)[0], seed);
     }},
    {"embedding",
     [](const mx::array& w, const Home& home, std::uint64_t seed) {
       const auto ids = integer_input({kRows}, kOut, seed);
       return weighed(embedding(ids, w, mx::float32, home), seed);
     }},
    {"head_loss",
     [](const mx::array& w, const Home& home, std::uint64_t seed) {
       HeadLossOptions options;
       options.home = home;
       const auto targets = integer_input({kRows}, kOut, seed);
       return head_loss(input(seed), w, targets, {}, options).loss_sum;
     }},
    {"head_log_probs",
     [](const mx::array& w, const Home& home, std::uint64_t seed) {
       const auto targets = integer_input({kRows}, kOut, seed);
       return weighed(
           head_log_probs(input(seed), w, targets, 0, nullptr, home), seed
       );
     }},
    {"an op without homes",
     [](const mx::array& w, const Home&, std::uint64_t seed) {
       return weighed(linear(input(seed), w), seed);
     }},
};

const mx::array& weight() {
  static const mx::array w = normal_input({kOut, kWide}, mx::float32, 1);
  return w;
}

TEST(GradientHome, SumsWhatMicroBatchesGive) {
  for (const HomeCase& c : kCases) {
    const Home home = home_for(weight());
    auto sum = mx::zeros_like(weight());
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const auto with = [&](const mx::array& w) {
        return c.loss(w, home, seed);
      };
      const auto without = [&](const mx::array& w) {
        return c.loss(w, nullptr, seed);
      };
      auto g = settle({gradient(with, weight())}, home);
      g.eval();
      EXPECT_TRUE(home->holds(g)) << c.name;
      EXPECT_TRUE(home->settled()) << c.name;
      sum = mx::add(sum, gradient(without, weight()));
      EXPECT_LT(difference(g, sum), 1e-5f) << c.name << ' ' << seed;
    }
  }
}

TEST(GradientHome, ClearedBeginsAnew) {
  const Home home = home_for(weight());
  const auto once = [&](std::uint64_t seed) {
    auto g = settle(
        {gradient(
            [&](const mx::array& w) { return kCases[0].loss(w, home, seed); },
            weight()
        )},
        home
    );
    g.eval();
    return mx::add(g, mx::array(0.0f));
  };
  auto first = once(1);
  first.eval();
  once(2).eval();
  home->clear();
  EXPECT_EQ(difference(once(1), first), 0);
}

// A tied table: the embedding's gradient and the head's are one sum.
TEST(GradientHome, UsesThatShareMeet) {
  const auto loss = [](const Arrays& uses, const Home& home) {
    return mx::add(
        kCases[1].loss(uses[0], home, 3), kCases[2].loss(uses[1], home, 4)
    );
  };
  const Home home = home_for(weight());
  const auto together = [&](const mx::array& w) {
    return loss(share(w, 2, home), home);
  };
  const auto apart = [&](const mx::array& w) {
    return loss(fork(w, 2), nullptr);
  };
  auto g = settle({gradient(together, weight())}, home);
  g.eval();
  EXPECT_TRUE(home->settled());
  EXPECT_LT(difference(g, gradient(apart, weight())), 1e-5f);
}

// MLX adds the gradients of two uses, which are one array, and so doubles it.
TEST(GradientHome, TwoUsesWithoutShareAreNoticed) {
  const Home home = home_for(weight());
  const auto twice = [&](const mx::array& w) {
    return mx::add(kCases[0].loss(w, home, 1), kCases[0].loss(w, home, 2));
  };
  auto g = settle({gradient(twice, weight())}, home);
  g.eval();
  EXPECT_FALSE(home->settled());
}

TEST(GradientHome, AScaledLossIsNotTakenForAPlainOne) {
  const Home home = home_for(weight());
  const auto half = [&](const mx::array& w) {
    return mx::multiply(kCases[2].loss(w, home, 1), mx::array(0.5f));
  };
  auto g = settle({gradient(half, weight())}, home);
  g.eval();
  EXPECT_TRUE(mx::all(mx::isnan(g)).item<bool>());
}

TEST(GradientHome, GradientsOfAdaptersHaveHomesToo) {
  const auto a = normal_input({4, kWide}, mx::float32, 7);
  const auto b = normal_input({kOut, 4}, mx::float32, 8);
  const Home home_a = home_for(a), home_b = home_for(b);
  const auto loss = [&](const Arrays& v, const Home& of_a, const Home& of_b) {
    const LowRank adapter{v[0], v[1], 0.5f, nullptr, nullptr, of_a, of_b};
    const std::vector<LinearPart> parts = {
        {weight(), {}, nullptr, adapter, nullptr}
    };
    return Arrays{weighed(linears(input(5), parts)[0], 5)};
  };
  const auto gradients = [&](const Home& of_a, const Home& of_b) {
    return mx::vjp(
               [&](const Arrays& v) { return loss(v, of_a, of_b); }, {a, b},
               {mx::array(1.0f)}
    )
        .second;
  };
  const auto want = gradients(nullptr, nullptr);
  for (int times = 1; times < 3; ++times) {
    const auto got = gradients(home_a, home_b);
    auto da = settle({got[0]}, home_a), db = settle({got[1]}, home_b);
    mx::eval({da, db});
    const mx::array n(static_cast<float>(times));
    EXPECT_LT(difference(da, mx::multiply(want[0], n)), 1e-5f);
    EXPECT_LT(difference(db, mx::multiply(want[1], n)), 1e-5f);
  }
}

}  // namespace
}  // namespace hearth::ops
