// Muon: the running sum of gradients, made orthogonal, is the update.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/kernels/arithmetic.h"
#include "hearth/ops/arithmetic/op.h"
#include "hearth/ops/leaf.h"
#include "hearth/ops/linear/op.h"
#include "hearth/optim/update_rule.h"

namespace hearth::optim {
namespace {

// weight = keep * weight + factor * update, and the parameter's own refresh
// while its rows are warm.
void apply(
    const ops::Parameter& p,
    const mx::array& update,
    float keep,
    float factor
) {
  mx::array weight = p.weight;
  float* w = weight.data<float>();
  const float* u = update.data<float>();
  const auto piece = [&](const ops::Execution& e, std::size_t begin,
                         std::size_t end) {
    const auto& f = *e.kernels.arithmetic;
    const auto n = static_cast<long>(end - begin);
    f.scale(w)(n, keep, w + begin, w + begin);
    f.accumulate(w)(n, factor, u + begin, w + begin);
    if (p.refresh) p.refresh(e, begin, end);
  };
  const auto stream = mx::default_stream(mx::Device::cpu);
  ops::run_on_stream("Muon", stream, [&](const ops::Execution& e) {
    e.pool.parallel_for(
        weight.size(), p.grain, [&](std::size_t begin, std::size_t end) {
          for (std::size_t i = begin; i < end; i += p.grain) {
            piece(e, i, std::min(end, i + p.grain));
          }
        }
    );
  });
}

// a b^T through our linear layer.
mx::array product(const mx::array& a, const mx::array& b, mx::Dtype compute) {
  const auto s = mx::default_stream(mx::Device::cpu);
  if (compute == mx::float32) return ops::linear(a, b, {}, nullptr, s);
  const auto y = ops::linear(
      ops::cast(a, compute, s), ops::cast(b, compute, s), {}, nullptr, s
  );
  return ops::cast(y, mx::float32, s);
}

class MuonRule : public RuleOf<ops::Muon, ops::muon_graph> {
 public:
  MuonRule(const OptimConfig& c, const mx::Shape& shape)
      : RuleOf(hyper(c.muon)),
        m_(ops::make_leaf(shape, mx::float32, state_zone())) {}

  void step(const ops::Parameter& p, long, double lr, double decay) override {
    if (!ops::on_cpu({})) return step_on_gpu(p, lr, decay);
    auto update = ops::make_leaf(m_.shape(), mx::float32, state_zone());
    ops::momentum_step(
        hyper_.momentum, hyper_.nesterov, p.gradient, p.gradient_scale, m_,
        update
    );
    auto direction = ops::orthogonalize(
        update, hyper_.steps,
        [this](const mx::array& a, const mx::array& b) {
          return product(a, b, hyper_.compute);
        },
        mx::default_stream(mx::Device::cpu)
    );
    direction.eval();
    // An orthogonal n x k matrix has elements of the size 1 / sqrt(max(n, k)).
    const double size = std::sqrt(std::max(m_.shape(0), m_.shape(1)));
    apply(
        p, direction, static_cast<float>(1 - lr * decay),
        static_cast<float>(-lr * double{hyper_.rms} * size)
    );
  }

 private:
  mx::array m_;

  static ops::Muon hyper(const MuonConfig& config) {
    return {
        .momentum = static_cast<float>(config.momentum),
        .nesterov = config.nesterov,
        .steps = static_cast<int>(config.steps),
        .rms = static_cast<float>(config.rms),
        .compute = config.precision == "fp32" ? mx::float32 : mx::bfloat16
    };
  }

  std::vector<Slot> slots() override { return {{"m", &m_}}; }

  void step_on_gpu(const ops::Parameter& p, double lr, double decay) {
    const auto scalars = ops::step_scalars(
        {.learning_rate = lr, .gradient_scale = double{p.gradient_scale}}
    );
    const ops::Arrays before{p.weight, m_};
    ops::run_in_place(
        "Muon", p, before, step_graph({before, p.gradient, scalars}, decay)
    );
  }
};

}  // namespace

std::unique_ptr<UpdateRule> make_muon(
    const OptimConfig& config,
    const mx::Shape& shape
) {
  if (shape.size() != 2) {
    throw UsageError(
        fmt::format(
            "[optim.muon] the parameter must be a matrix, got {} dimensions",
            shape.size()
        )
    );
  }
  return std::make_unique<MuonRule>(config, shape);
}

}  // namespace hearth::optim
