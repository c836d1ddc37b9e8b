#include "hearth/train/gradient.h"

#include <numeric>

namespace hearth::train {
namespace {

nn::Pass pass_of(const MicroBatch& batch, mx::Dtype compute, bool training) {
  nn::Pass pass;
  pass.dtype = compute;
  pass.training = training;
  pass.quantized = ops::QuantCompute::kExact;
  pass.positions = batch.positions;
  pass.length = batch.length;
  pass.segments = batch.segments;
  if (training) pass.noise = batch.noise;
  return pass;
}

}  // namespace

Gradients gradients_of(
    const models::Decoder& model,
    const Objective& objective,
    const MicroBatch& batch,
    mx::Dtype compute
) {
  const auto parameters = model.parameters().trainable();
  const nn::Pass pass = pass_of(batch, compute, true);
  std::vector<mx::array> values;
  for (const nn::Parameter* p : parameters) values.push_back(p->value);
  std::vector<int> argnums(values.size());
  std::iota(argnums.begin(), argnums.end(), 0);
  const auto run = mx::value_and_grad(
      [&](const std::vector<mx::array>& v) -> std::vector<mx::array> {
        const nn::Substitution inside(parameters, v);
        const auto value = objective(model, batch, pass);
        return {value.loss_sum, value.weight_sum};
      },
      argnums
  );
  auto [outputs, gradients] = run(values);
  std::vector<mx::array> all = outputs;
  all.insert(all.end(), gradients.begin(), gradients.end());
  mx::eval(all);
  return {
      outputs[0].item<float>(), outputs[1].item<float>(), std::move(gradients)
  };
}

Gradients loss_of(
    const models::Decoder& model,
    const Objective& objective,
    const MicroBatch& batch,
    mx::Dtype compute
) {
  auto value = objective(model, batch, pass_of(batch, compute, false));
  mx::eval({value.loss_sum, value.weight_sum});
  return {value.loss_sum.item<float>(), value.weight_sum.item<float>(), {}};
}

}  // namespace hearth::train
