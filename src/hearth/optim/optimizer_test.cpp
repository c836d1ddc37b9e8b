// Optimisers over whole parameters: against plain double arithmetic, against
// torch, packed companions, decay groups, state.
#include "hearth/optim/optimizer.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/base/json.h"
#include "hearth/ops/leaf.h"
#include "hearth/ops/op_case.h"
#include "hearth/optim/clip.h"
#include "hearth/optim/optimizer_kind.h"
#include "hearth/optim/optimizer_reference_test.h"

namespace hearth::optim {
namespace {

constexpr double kLr = 0.01;
constexpr float kScale = 0.5f;

void fill(mx::array& leaf, const mx::array& values) {
  std::memcpy(leaf.data<void>(), values.data<void>(), leaf.nbytes());
}

mx::array gradient_of(
    const mx::Shape& shape,
    std::uint64_t seed,
    mx::Dtype dtype = mx::float32
) {
  auto g = ops::normal_input(shape, dtype, seed);
  g.eval();
  return g;
}

// A model in small: an embedding that is the head too, matrices of odd sizes
// and of both orientations, a norm, a bias.
class OptimizerTest : public testing::Test {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }

  void add(const std::string& name, mx::Shape shape, bool packed = true) {
    nn::WeightSpec p{.name = name, .shape = shape};
    p.trainable = true;
    p.matrix = shape.size() == 2;
    p.part = io::role_of(name);
    auto& added = set_.add(p);
    auto leaf =
        ops::make_leaf(shape, mx::float32, MemoryZone::named("optim test"));
    fill(leaf, gradient_of(shape, 7 + set_.all().size()));
    added.set(leaf);
    if (shape.size() == 2 && packed) {
      nn::pack(added, mx::bfloat16, ops::PackedOrders::both);
    }
  }
  void add_model() {
    add("model.embed_tokens.weight", {130, 24});
    add("model.layers.0.self_attn.q_proj.weight", {70, 33});
    add("model.layers.0.mlp.down_proj.weight", {24, 300}, false);
    add("model.layers.0.input_layernorm.weight", {24});
    add("model.layers.0.self_attn.q_proj.bias", {70});
  }
  std::vector<mx::array> gradients(
      long step,
      mx::Dtype dtype = mx::float32
  ) const {
    std::vector<mx::array> out;
    for (const auto* p : set_.all()) {
      const auto seed = static_cast<std::uint64_t>(step) * 100 + out.size();
      out.push_back(gradient_of(p->shape, seed, dtype));
    }
    return out;
  }
  static std::vector<double> numbers(const mx::array& a) {
    return {a.data<float>(), a.data<float>() + a.size()};
  }

  // The largest difference from the reference after 20 steps.
  double difference(const OptimConfig& config) {
    if (set_.all().empty()) add_model();
    std::vector<ReferenceRule> rules;
    std::vector<std::vector<double>> weights;
    auto optimizer = Optimizer::make(config, set_.all());
    const auto decays = optimizer->decays();
    for (const auto* p : set_.all()) {
      rules.push_back(reference_rule(config, *p));
      weights.push_back(numbers(p->value()));
    }
    for (long step = 1; step <= 20; ++step) {
      const auto g = gradients(step);
      optimizer->step(g, kScale, kLr);
      for (std::size_t i = 0; i < rules.size(); ++i) {
        auto scaled = numbers(g[i]);
        for (double& x : scaled) x *= double{kScale};
        rules[i](weights[i], scaled, step, kLr, decays[i]);
      }
    }
    double worst = 0;
    for (std::size_t i = 0; i < rules.size(); ++i) {
      const auto got = numbers(set_.all()[i]->value());
      for (std::size_t j = 0; j < got.size(); ++j) {
        worst = std::max(worst, std::abs(got[j] - weights[i][j]));
      }
    }
    return worst;
  }

  nn::ParameterSet set_;
};

TEST_F(OptimizerTest, AdamWMatchesDoubleArithmetic) {
  EXPECT_LT(difference({.name = "adamw"}), 5e-6);
}

TEST_F(OptimizerTest, LionMatchesDoubleArithmetic) {
  EXPECT_LT(difference({.name = "lion"}), 5e-6);
}

TEST_F(OptimizerTest, AdafactorMatchesDoubleArithmetic) {
  OptimConfig c{.name = "adafactor"};
  EXPECT_LT(difference(c), 2e-5);
  c.adafactor.momentum = 0.9;
  c.adafactor.scale_by_size = true;
  EXPECT_LT(difference(c), 2e-5);
}

TEST_F(OptimizerTest, MuonMatchesDoubleArithmetic) {
  OptimConfig c{.name = "muon"};
  c.muon.precision = "fp32";
  EXPECT_LT(difference(c), 2e-5);
  // An update's elements are near lr * rms; its products are of 8 bits.
  c.muon.precision = "bf16";
  EXPECT_LT(difference(c), 20 * kLr * c.muon.rms * 0.05);
}

// The codes round, so a step may differ by a few hundredths of the rate.
TEST_F(OptimizerTest, EightBitAdamWStaysNearAdamW) {
  add("model.layers.1.mlp.up_proj.weight", {70, 64});
  add("model.layers.1.mlp.gate_proj.weight", {64, 80});
  EXPECT_LT(difference({.name = "adamw8bit"}), 20 * kLr * 0.15);
}

TEST_F(OptimizerTest, TakesBfloat16Gradients) {
  add_model();
  auto optimizer = Optimizer::make({}, set_.all());
  auto rule = reference_rule({}, *set_.all()[1]);
  auto weight = numbers(set_.all()[1]->value());
  for (long step = 1; step <= 3; ++step) {
    const auto g = gradients(step, mx::bfloat16);
    optimizer->step(g, 1, kLr);
    auto wide = mx::astype(g[1], mx::float32);
    wide.eval();
    rule(weight, numbers(wide), step, kLr, optimizer->decays()[1]);
  }
  const auto got = numbers(set_.all()[1]->value());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], weight[i], 5e-6);
  }
}

TEST_F(OptimizerTest, PackedCompanionsFollowEveryStep) {
  add_model();
  add("model.layers.0.mlp.up_proj.weight", {2050, 40});
  for (const std::string& name : optimizer_names()) {
    SCOPED_TRACE(name);
    auto optimizer = Optimizer::make({.name = name}, set_.all());
    for (long step = 1; step <= 3; ++step) {
      optimizer->step(gradients(step), 1, kLr);
      for (const auto* p : set_.all()) {
        if (!p->packed()) continue;
        nn::Weight fresh = *p;
        fresh.drop_packed();
        nn::pack(fresh, mx::bfloat16, ops::PackedOrders::both);
        const std::size_t half = p->packed()->bytes();
        ASSERT_EQ(half, fresh.packed()->bytes());
        const auto& family = p->packed()->family();
        const long n = p->packed()->n(), k = p->packed()->k();
        EXPECT_EQ(
            std::memcmp(
                p->packed()->forward(), fresh.packed()->forward(),
                family.packed_bytes(n, k)
            ),
            0
        ) << p->name;
        EXPECT_EQ(
            std::memcmp(
                p->packed()->backward(), fresh.packed()->backward(),
                family.packed_bytes(k, n)
            ),
            0
        ) << p->name;
      }
    }
  }
}

TEST_F(OptimizerTest, DecayLeavesVectorsAndExceptionsOut) {
  add_model();
  using Decays = std::vector<double>;
  EXPECT_EQ(
      Optimizer::make({}, set_.all())->decays(), (Decays{0.1, 0.1, 0.1, 0, 0})
  );
  EXPECT_EQ(
      Optimizer::make({.decay_embeddings = false}, set_.all())->decays(),
      (Decays{0, 0.1, 0.1, 0, 0})
  );
  EXPECT_EQ(
      Optimizer::make({.no_decay = {"mlp"}}, set_.all())->decays(),
      (Decays{0.1, 0.1, 0, 0, 0})
  );
  // Without a gradient only decay moves a weight.
  auto optimizer = Optimizer::make({.no_decay = {"mlp"}}, set_.all());
  std::vector<mx::array> zeros;
  std::vector<std::vector<double>> before;
  for (const auto* p : set_.all()) {
    zeros.push_back(mx::zeros(p->shape));
    zeros.back().eval();
    before.push_back(numbers(p->value()));
  }
  optimizer->step(zeros, 1, kLr);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double keep = 1 - kLr * optimizer->decays()[i];
    const auto after = numbers(set_.all()[i]->value());
    for (std::size_t j = 0; j < after.size(); ++j) {
      ASSERT_NEAR(after[j], keep * before[i][j], 1e-6) << i;
    }
  }
}

TEST_F(OptimizerTest, StateContinuesBitForBit) {
  add_model();
  add("model.layers.1.mlp.up_proj.weight", {70, 64});
  for (const std::string& name : optimizer_names()) {
    SCOPED_TRACE(name);
    auto whole = Optimizer::make({.name = name}, set_.all());
    for (long step = 1; step <= 4; ++step) {
      whole->step(gradients(step), 1, kLr);
    }
    std::vector<NamedArray> saved;
    for (const auto& a : whole->state()) {
      auto copy =
          ops::make_leaf(a.array.shape(), a.array.dtype(), state_zone());
      fill(copy, a.array);
      saved.push_back({a.name, copy});
    }
    std::vector<std::vector<double>> masters, ends;
    for (const auto* p : set_.all()) masters.push_back(numbers(p->value()));
    for (long step = 5; step <= 8; ++step) {
      whole->step(gradients(step), 1, kLr);
    }
    for (const auto* p : set_.all()) ends.push_back(numbers(p->value()));

    for (std::size_t i = 0; i < masters.size(); ++i) {
      float* w = set_.all()[i]->value().data<float>();
      std::copy(masters[i].begin(), masters[i].end(), w);
    }
    auto resumed = Optimizer::make({.name = name}, set_.all());
    resumed->restore(saved);
    EXPECT_EQ(resumed->steps(), 4);
    for (long step = 5; step <= 8; ++step) {
      resumed->step(gradients(step), 1, kLr);
    }
    for (std::size_t i = 0; i < ends.size(); ++i) {
      EXPECT_EQ(numbers(set_.all()[i]->value()), ends[i]) << i;
    }
  }
}

TEST_F(OptimizerTest, RestoreRefusesAnotherState) {
  add_model();
  auto optimizer = Optimizer::make({}, set_.all());
  const auto own = optimizer->state();
  EXPECT_NO_THROW(optimizer->restore(own));
  auto fewer = own;
  fewer.pop_back();
  EXPECT_THROW(optimizer->restore(fewer), FormatError);
  auto renamed = own;
  renamed[1].name = "other/m";
  EXPECT_THROW(optimizer->restore(renamed), FormatError);
  auto reshaped = own;
  reshaped[1].array = reshaped[2].array = mx::zeros({24, 130});
  mx::eval(reshaped[1].array);
  EXPECT_THROW(optimizer->restore(reshaped), FormatError);
  const auto lion = Optimizer::make({.name = "lion"}, set_.all());
  EXPECT_THROW(optimizer->restore(lion->state()), FormatError);
}

TEST_F(OptimizerTest, StateBytes) {
  add("model.layers.0.mlp.up_proj.weight", {64, 80});
  add("model.norm.weight", {64});
  const std::size_t n = 64 * 80, small = 64;
  EXPECT_EQ(
      Optimizer::make({.name = "adamw"}, set_.all())->state_bytes(),
      8 * (n + small)
  );
  // Two bytes a weight and eight a block of 256; the norm stays float32.
  EXPECT_EQ(
      Optimizer::make({.name = "adamw8bit"}, set_.all())->state_bytes(),
      2 * n + 8 * (n / 256) + 8 * small
  );
  EXPECT_EQ(
      Optimizer::make({.name = "lion"}, set_.all())->state_bytes(),
      4 * (n + small)
  );
  EXPECT_EQ(
      Optimizer::make({.name = "muon"}, set_.all())->state_bytes(),
      4 * n + 8 * small
  );
  EXPECT_EQ(
      Optimizer::make({.name = "adafactor"}, set_.all())->state_bytes(),
      4 * (64 + 80) + 4 * (1 + small)
  );
}

TEST_F(OptimizerTest, RefusesWhatDoesNotFitBeforeAnythingChanges) {
  add_model();
  auto optimizer = Optimizer::make({}, set_.all());
  const auto before = numbers(set_.all()[0]->value());
  auto g = gradients(1);
  EXPECT_THROW(optimizer->step(std::span(g).first(2), 1, kLr), UsageError);
  g[4] = gradient_of({71}, 1);
  EXPECT_THROW(optimizer->step(g, 1, kLr), UsageError);
  g[4] = mx::astype(gradients(1)[4], mx::float16);
  EXPECT_THROW(optimizer->step(g, 1, kLr), UsageError);
  EXPECT_EQ(optimizer->steps(), 0);
  EXPECT_EQ(numbers(set_.all()[0]->value()), before);

  auto all = set_.all();
  all.push_back(all[0]);
  EXPECT_THROW(Optimizer::make({}, all), UsageError);
  set_.all()[1]->set(mx::astype(set_.all()[1]->value(), mx::bfloat16));
  EXPECT_THROW(Optimizer::make({}, set_.all()), UsageError);
}

TEST_F(OptimizerTest, ABrokenStepMustBeRestored) {
  add_model();
  auto optimizer = Optimizer::make({.name = "muon"}, set_.all());
  const auto g = gradients(1);
  const auto state = optimizer->state();
  fail_memory_charge(1);
  EXPECT_THROW(optimizer->step(g, 1, kLr), OutOfMemory);
  fail_memory_charge(0);
  EXPECT_THROW(optimizer->step(g, 1, kLr), Error);
  optimizer->restore(state);
  EXPECT_NO_THROW(optimizer->step(g, 1, kLr));
  EXPECT_EQ(optimizer->steps(), 1);
}

// torch orthogonalises in bfloat16 and rounds in other places than we do.
TEST_F(OptimizerTest, MatchesTorch) {
  const Json golden =
      read_json_file(HEARTH_SOURCE_DIR "/tests/golden/optimizers.json");
  for (const char* name : {"adamw", "muon"}) {
    for (const Json& c : golden.at(name)) {
      SCOPED_TRACE(name + c.at("shape").dump());
      nn::ParameterSet set;
      nn::Weight& p =
          set.add({.name = "w", .shape = c.at("shape").get<mx::Shape>()});
      const auto leaf = [&](const Json& values) {
        auto a = ops::make_leaf(p.shape, mx::float32, state_zone());
        const auto v = values.get<std::vector<float>>();
        std::copy(v.begin(), v.end(), a.data<float>());
        return a;
      };
      p.set(leaf(c.at("start")));
      OptimConfig config{.name = name};
      config.weight_decay = c.at("decay").get<double>();
      const double lr = c.at("lr").get<double>();
      auto optimizer = Optimizer::make(config, set.all());
      for (const Json& g : c.at("gradients")) {
        optimizer->step(std::vector{leaf(g)}, 1, lr);
      }
      const auto end = c.at("end").get<std::vector<double>>();
      const auto got = numbers(p.value());
      const double steps = static_cast<double>(c.at("gradients").size());
      const bool muon = config.name == "muon";
      const double near = muon ? 0.05 * steps * lr * config.muon.rms : 2e-6;
      for (std::size_t i = 0; i < end.size(); ++i) {
        ASSERT_NEAR(got[i], end[i], near) << i;
      }
    }
  }
}

TEST(Clip, FactorBringsTheNormToItsLimit) {
  mx::set_default_device(mx::Device::cpu);
  std::vector<mx::array> g = {mx::array({3.0f, 0.0f}), mx::array({4.0f})};
  EXPECT_DOUBLE_EQ(global_norm(g), 5);
  EXPECT_DOUBLE_EQ(clip_factor(5, 1), 0.2);
  EXPECT_DOUBLE_EQ(clip_factor(0.5, 1), 1);
  EXPECT_DOUBLE_EQ(clip_factor(5, 0), 1);
  EXPECT_TRUE(std::isnan(clip_factor(INFINITY, 1)));
  EXPECT_TRUE(std::isnan(clip_factor(NAN, 0)));
}

}  // namespace
}  // namespace hearth::optim
