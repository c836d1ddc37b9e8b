// The update as one compiled graph against the update in place, for every
// optimiser: weights, state, and what a checkpoint takes from one to the other.
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/ops/leaf.h"
#include "hearth/ops/op_case.h"
#include "hearth/optim/optimizer.h"

namespace hearth::optim {
namespace {

constexpr double kLr = 0.01;
constexpr float kScale = 0.5f;

// Compiling joins no kernels here: on a CPU that takes a C++ compiler.
class TraceOnly {
 public:
  TraceOnly() { mx::set_compile_mode(mx::CompileMode::no_fuse); }
  ~TraceOnly() { mx::set_compile_mode(mx::CompileMode::enabled); }
};

// A model of an embedding, matrices of both orientations, a norm.
struct Model {
  nn::ParameterSet set;
  std::unique_ptr<Optimizer> optimizer;

  explicit Model(const OptimConfig& config) {
    add("model.embed_tokens.weight", {130, 24});
    add("model.layers.0.mlp.up_proj.weight", {70, 64});
    add("model.layers.0.mlp.down_proj.weight", {24, 300});
    add("model.layers.0.input_layernorm.weight", {24});
    optimizer = Optimizer::make(config, set.all());
  }
  void add(const std::string& name, const mx::Shape& shape) {
    nn::WeightSpec p{.name = name, .shape = shape};
    p.trainable = true;
    p.matrix = shape.size() == 2;
    auto leaf =
        ops::make_leaf(shape, mx::float32, MemoryZone::named("optim test"));
    auto from = ops::normal_input(shape, mx::float32, set.all().size());
    std::memcpy(leaf.data<void>(), from.data<void>(), leaf.nbytes());
    set.add(p).set(leaf);
  }
  std::vector<mx::array> gradients(long step) const {
    std::vector<mx::array> out;
    for (const auto* p : set.all()) {
      const auto seed = static_cast<std::uint64_t>(step) * 100 + out.size();
      out.push_back(ops::normal_input(p->shape, mx::bfloat16, seed));
      out.back().eval();
    }
    return out;
  }
};

// The same update as a device makes it, compiled once.
class CompiledUpdate {
 public:
  explicit CompiledUpdate(Optimizer& optimizer)
      : optimizer_(optimizer),
        count_(optimizer.arrays().size()),
        update_(
            mx::compile(
                std::function<ops::Arrays(const ops::Arrays&)>(
                    [this](const ops::Arrays& in) { return traced(in); }
                )
            )
        ) {}

  void step(const std::vector<mx::array>& gradients) {
    ops::Arrays in = optimizer_.arrays();
    in.insert(in.end(), gradients.begin(), gradients.end());
    for (auto& a : optimizer_.scalars(kLr, double{kScale}).arrays()) {
      in.push_back(a);
    }
    const auto after = update_(in);
    optimizer_.adopt(after);
  }
  int traces() const { return traces_; }

 private:
  Optimizer& optimizer_;
  std::size_t count_;
  int traces_ = 0;
  std::function<ops::Arrays(const ops::Arrays&)> update_;

  ops::Arrays traced(const ops::Arrays& in) {
    ++traces_;
    const std::span<const mx::array> all(in);
    const std::size_t scalars = in.size() - ops::StepScalars::kCount;
    return optimizer_.step_graph(
        {in.begin(), in.begin() + static_cast<std::ptrdiff_t>(count_)},
        all.subspan(count_, scalars - count_),
        ops::StepScalars::of(all.subspan(scalars))
    );
  }
};

// Of the numbers of both, which must be of one kind and size.
double apart(const mx::array& a, const mx::array& b) {
  EXPECT_EQ(a.shape(), b.shape());
  EXPECT_EQ(a.dtype(), b.dtype());
  const auto wide = [](const mx::array& x) {
    return mx::astype(x, mx::float32);
  };
  return mx::max(mx::abs(mx::subtract(wide(a), wide(b)))).item<float>();
}

struct Case {
  std::string label;
  OptimConfig config;
  double weights, state;  // the most they may be apart
};

class OptimizerGraph : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }
};

TEST_P(OptimizerGraph, IsTheUpdateInPlace) {
  const TraceOnly no_kernels;
  const Case& c = GetParam();
  Model in_place(c.config), graph(c.config);
  CompiledUpdate update(*graph.optimizer);
  for (long step = 1; step <= 5; ++step) {
    const auto g = in_place.gradients(step);
    in_place.optimizer->step(g, kScale, kLr);
    update.step(g);
  }
  EXPECT_EQ(update.traces(), 1);
  EXPECT_EQ(graph.optimizer->steps(), 5);
  for (std::size_t i = 0; i < graph.set.all().size(); ++i) {
    const auto &got = *graph.set.all()[i], &want = *in_place.set.all()[i];
    EXPECT_LT(apart(got.value(), want.value()), c.weights) << got.name;
  }
  const auto got = graph.optimizer->state(), want = in_place.optimizer->state();
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].name, want[i].name);
    EXPECT_LE(apart(got[i].array, want[i].array), c.state) << got[i].name;
  }
}

// A checkpoint of one goes on as the other.
TEST_P(OptimizerGraph, ItsStateIsTheSameFile) {
  const TraceOnly no_kernels;
  const Case& c = GetParam();
  Model graph(c.config), other(c.config);
  CompiledUpdate update(*graph.optimizer);
  update.step(graph.gradients(1));
  update.step(graph.gradients(2));
  other.optimizer->restore(graph.optimizer->state());
  EXPECT_EQ(other.optimizer->steps(), 2);
  const auto all = graph.set.all();
  for (std::size_t i = 0; i < all.size(); ++i) {
    mx::array from = mx::contiguous(all[i]->value());
    from.eval();
    mx::array to = other.set.all()[i]->value();
    std::memcpy(to.data<void>(), from.data<void>(), to.nbytes());
  }
  const auto g = graph.gradients(3);
  update.step(g);
  other.optimizer->step(g, kScale, kLr);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_LT(apart(all[i]->value(), other.set.all()[i]->value()), c.weights);
  }
  // And back: restoring writes into arrays that a device made.
  graph.optimizer->restore(other.optimizer->state());
  EXPECT_EQ(graph.optimizer->steps(), 3);
}

std::vector<Case> cases() {
  OptimConfig plain_muon{.name = "muon"}, adafactor{.name = "adafactor"};
  plain_muon.muon.precision = "fp32";
  OptimConfig with_momentum = adafactor;
  with_momentum.adafactor.momentum = 0.9;
  with_momentum.adafactor.scale_by_size = true;
  OptimConfig muon{.name = "muon"};
  muon.muon.nesterov = false;
  return {
      {"adamw", {.name = "adamw"}, 2e-6, 2e-6},
      // A sign that turns where both momenta cancel moves a weight by 2 lr;
      // none does here.
      {"lion", {.name = "lion"}, 2e-6, 2e-6},
      {"adafactor", adafactor, 5e-6, 2e-6},
      {"adafactor_momentum", with_momentum, 5e-6, 2e-5},
      {"muon_fp32", plain_muon, 1e-5, 2e-6},
      // Products of 8 bits, added up in another order.
      {"muon_bf16", muon, 5 * kLr * 0.2 * 0.05, 2e-6},
      // A code that lies between two may fall either way.
      {"adamw8bit", {.name = "adamw8bit"}, 5 * kLr * 0.05, 2}
  };
}

INSTANTIATE_TEST_SUITE_P(
    Every,
    OptimizerGraph,
    testing::ValuesIn(cases()),
    [](const auto& c) { return c.param.label; }
);

TEST(OptimizerGraphs, RefuseWhatDoesNotFit) {
  mx::set_default_device(mx::Device::cpu);
  Model m({.name = "adamw"});
  auto arrays = m.optimizer->arrays();
  const auto scalars = m.optimizer->scalars(kLr);
  const auto g = m.gradients(1);
  EXPECT_EQ(m.optimizer->places(), (std::vector<std::size_t>{0, 3, 6, 9}));
  EXPECT_THROW(m.optimizer->step_graph({arrays[0]}, g, scalars), UsageError);
  EXPECT_THROW(m.optimizer->adopt({arrays.data(), 2}), UsageError);
  auto wrong = arrays;
  wrong[1] = mx::zeros({3});
  EXPECT_THROW(m.optimizer->adopt(wrong), UsageError);
  nn::pack(*m.set.all()[0], mx::bfloat16, ops::PackedOrders::both);
  EXPECT_THROW(m.optimizer->adopt(arrays), UsageError);
  EXPECT_EQ(m.optimizer->steps(), 0);
}

}  // namespace
}  // namespace hearth::optim
