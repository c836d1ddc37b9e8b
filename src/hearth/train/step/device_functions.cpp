#include "hearth/train/step/device_functions.h"

#include <numeric>
#include <utility>

#include "hearth/ops/compiled.h"
#include "hearth/train/step/gradient.h"

namespace hearth::train {
namespace {

// Scheduled gates' alphas in place of the numbers they hold, for a trace.
class GateSubstitution {
 public:
  GateSubstitution(
      const std::vector<nn::Gate*>& gates,
      std::span<const mx::array> alphas
  )
      : gates_(gates) {
    for (std::size_t i = 0; i < gates.size(); ++i) {
      saved_.push_back(std::exchange(gates[i]->scheduled_alpha(), alphas[i]));
    }
  }
  ~GateSubstitution() {
    for (std::size_t i = 0; i < gates_.size(); ++i) {
      gates_[i]->scheduled_alpha() = saved_[i];
    }
  }
  GateSubstitution(const GateSubstitution&) = delete;
  GateSubstitution& operator=(const GateSubstitution&) = delete;

 private:
  const std::vector<nn::Gate*>& gates_;
  Arrays saved_;
};

}  // namespace

ArraysFunction compiled_on_gpu(ArraysFunction f) {
  if (!ops::compiles({})) return f;
  return mx::compile(std::move(f));
}

std::vector<nn::WeightGroup> step_groups(models::Decoder& model) {
  return nn::grouped(model.parameters().trainable(), model.trained_together());
}

GradientFunction::GradientFunction(const StepParts& parts, mx::Dtype compute)
    : parts_(parts), compute_(compute), groups_(step_groups(parts.model)) {
  for (nn::Gate* gate : parts.model.gates()) {
    if (gate->scheduled()) gates_.push_back(gate);
  }
}

ArraysFunction GradientFunction::make(const Form& form) const {
  return [this, form](const Arrays& inputs) {
    Reader in(inputs);
    const Arrays weights = in.some(groups_.size());
    const mx::array loss_scale = in.one();
    MicroBatch batch;
    batch.ids = in.one();
    batch.targets = in.one();
    batch.positions = in.one();
    batch.weights = in.one();
    batch.rows = batch.ids.shape(0), batch.length = batch.ids.shape(1);
    const Arrays alphas = in.some(gates_.size());
    if (form.segments) batch.segments = in.one();
    if (form.noise) batch.noise = in.one();
    batch.extra = in.some(form.extra);

    const GateSubstitution gates(gates_, alphas);
    const nn::Pass pass = pass_of(batch, compute_, true);
    std::vector<int> all(weights.size());
    std::iota(all.begin(), all.end(), 0);
    const auto run = mx::value_and_grad(
        [&](const Arrays& v) -> Arrays {
          const nn::GroupSubstitution inside(groups_, v);
          const auto value = parts_.objective(parts_.model, batch, pass);
          return {
              mx::multiply(value.loss_sum, loss_scale), value.loss_sum,
              value.weight_sum
          };
        },
        all
    );
    auto [values, gradients] = run(weights);
    Arrays out = {values[1], values[2]};
    append(out, std::move(gradients));
    if (form.widens) {
      for (auto& a : out) a = mx::astype(a, mx::float32);
    }
    if (form.adds) {
      for (auto& a : out) a = mx::add(a, in.one());
    }
    return out;
  };
}

GradientFunction::Sums GradientFunction::operator()(
    const Arrays& weights,
    const MicroBatch& batch,
    const mx::array& loss_scale,
    std::optional<Sums> sums,
    bool alone
) {
  const Form form{
      .segments = batch.segments.has_value(),
      .noise = batch.noise.has_value(),
      .adds = sums.has_value(),
      .widens = !alone,
      .extra = batch.extra.size()
  };
  auto at = compiled_.find(form);
  if (at == compiled_.end()) {
    at = compiled_.emplace(form, compiled_on_gpu(make(form))).first;
  }
  Arrays in = weights;
  in.insert(
      in.end(),
      {loss_scale, batch.ids, batch.targets, batch.positions, batch.weights}
  );
  for (nn::Gate* gate : gates_) in.push_back(gate->scheduled_alpha());
  if (batch.segments) in.push_back(*batch.segments);
  if (batch.noise) in.push_back(*batch.noise);
  append(in, batch.extra);
  if (sums) {
    in.push_back(std::move(sums->loss));
    in.push_back(std::move(sums->weight));
    append(in, std::move(sums->gradients));
  }
  Arrays out = at->second(in);
  Sums result{out[0], out[1], {}};
  result.gradients.assign(
      std::make_move_iterator(out.begin() + 2),
      std::make_move_iterator(out.end())
  );
  return result;
}

}  // namespace hearth::train
