#include "hearth/train/step/gradient.h"

#include <numeric>

#include "hearth/base/error.h"
#include "hearth/ops/arithmetic/op.h"

namespace hearth::train {

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

PassGraph gradient_graph(
    const models::Decoder& model,
    const Objective& objective,
    std::span<const MicroBatch> batches,
    mx::Dtype compute,
    double loss_scale
) {
  const auto parameters = model.parameters().trainable();
  std::vector<mx::array> values;
  for (const nn::Weight* p : parameters) values.push_back(p->value());
  std::vector<int> argnums(values.size());
  std::iota(argnums.begin(), argnums.end(), 0);
  std::vector<mx::array> outputs, sums;
  for (MicroBatch batch : batches) {
    if (!sums.empty()) batch.ids = mx::depends({batch.ids}, sums)[0];
    const nn::Pass pass = pass_of(batch, compute, true);
    const auto run = mx::value_and_grad(
        [&](const std::vector<mx::array>& v) -> std::vector<mx::array> {
          const nn::Substitution inside(parameters, v);
          const auto value = objective(model, batch, pass);
          if (loss_scale == 1) return {value.loss_sum, value.weight_sum};
          const mx::array factor(static_cast<float>(loss_scale));
          return {mx::multiply(value.loss_sum, factor), value.weight_sum};
        },
        argnums
    );
    auto [values_of, gradients] = run(values);
    outputs.insert(outputs.end(), values_of.begin(), values_of.end());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const ops::Home& home = parameters[i]->home;
      if (home) {
        gradients[i] = ops::settle({gradients[i]}, home);
      } else if (!sums.empty()) {
        gradients[i] = ops::add(sums[i], gradients[i]);
      }
    }
    sums = std::move(gradients);
  }
  return {std::move(outputs), std::move(sums)};
}

Gradients gradients_of(
    const models::Decoder& model,
    const Objective& objective,
    std::span<const MicroBatch> batches,
    mx::Dtype compute,
    double loss_scale
) {
  auto [outputs, sums] =
      gradient_graph(model, objective, batches, compute, loss_scale);
  std::vector<mx::array> all = outputs;
  all.insert(all.end(), sums.begin(), sums.end());
  mx::eval(all);
  for (const nn::Weight* p : model.parameters().trainable()) {
    if (!p->home || p->home->settled()) continue;
    throw Error(
        "[train.gradients_of] " + p->name +
        " must be used once, or through ops::share"
    );
  }
  Gradients result;
  for (std::size_t i = 0; i < outputs.size(); i += 2) {
    result.loss_sum += outputs[i].item<float>() / loss_scale;
    result.weight_sum += outputs[i + 1].item<float>();
  }
  result.arrays = std::move(sums);
  return result;
}

Gradients gradients_of(
    const models::Decoder& model,
    const Objective& objective,
    const MicroBatch& batch,
    mx::Dtype compute
) {
  return gradients_of(model, objective, std::span(&batch, 1), compute);
}

LossGraph loss_graph(
    const models::Decoder& model,
    const Objective& objective,
    const MicroBatch& batch,
    mx::Dtype compute
) {
  auto value = objective(model, batch, pass_of(batch, compute, false));
  LossGraph graph{{value.loss_sum, value.weight_sum}, {}};
  for (const auto& [name, sum] : value.metric_sums) {
    graph.outputs.push_back(sum);
    graph.metrics.push_back(name);
  }
  return graph;
}

Gradients loss_of(
    const models::Decoder& model,
    const Objective& objective,
    const MicroBatch& batch,
    mx::Dtype compute
) {
  auto [outputs, metrics] = loss_graph(model, objective, batch, compute);
  mx::eval(outputs);
  Gradients result;
  result.loss_sum = outputs[0].item<float>();
  result.weight_sum = outputs[1].item<float>();
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    result.metric_sums[metrics[i]] = outputs[2 + i].item<float>();
  }
  return result;
}

}  // namespace hearth::train
