#include "hearth/nn/lora.h"

#include <cmath>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/nn/linear.h"
#include "hearth/ops/arithmetic/op.h"
#include "hearth/ops/dropout/op.h"
#include "hearth/ops/linear/op.h"

namespace hearth::nn {
namespace {

// Sum over the last dimension of a * b, float32 matrices of a rank's width.
mx::array row_dots(const mx::array& a, const mx::array& b) {
  return mx::sum(mx::multiply(a, b), -1);
}

}  // namespace

float LoraConfig::scale() const {
  const double r = rank;
  return static_cast<float>(alpha / (rslora ? std::sqrt(r) : r));
}

void LoraConfig::form_fields(FieldVisitor& v) {
  v("rank", rank, "inner width of the adapters", between(1, 4096));
  v("alpha", alpha, "scale: the adapter counts alpha / rank", positive());
  v("dropout", dropout, "of the adapter's input", may_change(between(0, 0.99)));
  v("dora", dora, "train each row's magnitude too");
  v("rslora", rslora, "scale by alpha / sqrt(rank)");
  v("targets", targets, "layers, by name or pattern");
}

LoraSpecs lora_specs(const WeightSpec& layer, const LoraConfig& config) {
  const int out = layer.shape.at(0), in = layer.shape.at(1);
  const auto spec = [&](std::string_view name, const mx::Shape& shape,
                        Init init) {
    return WeightSpec{
        .name = fmt::format("{}.{}", layer.module(), name),
        .shape = shape,
        .init = init,
        .matrix = shape.size() == 2,
        .trainable = true,
        .part = {io::Role::adapter, layer.part.layer}
    };
  };
  LoraSpecs specs{
      spec(io::kLoraA, {config.rank, in}, Init::uniform_fan_in),
      spec(io::kLoraB, {out, config.rank}, Init::zeros),
      {}
  };
  if (config.dora) {
    specs.magnitude = spec(io::kLoraMagnitude, {out}, Init::zeros);
  }
  return specs;
}

Lora::Lora(
    ParameterSet& set,
    const Weight& weight,
    const LoraConfig& config,
    std::uint64_t index
)
    : config_(config), layer_(weight.module()), index_(index) {
  LoraSpecs specs = lora_specs(weight, config);
  a_ = &set.add(std::move(specs.a));
  b_ = &set.add(std::move(specs.b));
  if (specs.magnitude) magnitude_ = &set.add(std::move(*specs.magnitude));
}

void Lora::start_magnitude() {
  if (magnitude_ == nullptr || !base_norms_) return;
  auto norms = mx::contiguous(mx::astype(*base_norms_, mx::float32));
  norms.eval();
  std::copy_n(
      norms.data<float>(), norms.size(), magnitude_->value().data<float>()
  );
}

// m / |W + s B A| for each row. The square of the norm is
//   |W|^2 + 2 s W.(BA) + s^2 |BA|^2,
// and both later terms are products of rank width: W.(BA) = B.(W A^T) and
// |BA|^2 = B.(B A A^T), so W is never made dense.
mx::array Lora::row_gain(const Weight& weight, const Pass& pass) const {
  if (!base_norms_) {
    throw Error("[nn.Lora] the base's row norms of " + layer_ + " are not set");
  }
  const auto a = mx::stop_gradient(a_->value());
  const auto b = mx::stop_gradient(b_->value());
  const float s = config_.scale();
  const auto wa = mx::transpose(
      mx::astype(
          multiply(mx::astype(a, pass.dtype), weight, {}, pass), mx::float32
      )
  );
  const auto bgram = ops::linear(b, ops::linear(a, a));
  const auto square = mx::add(
      mx::square(*base_norms_),
      mx::add(
          mx::multiply(mx::array(2 * s), row_dots(b, mx::stop_gradient(wa))),
          mx::multiply(mx::array(s * s), row_dots(b, bgram))
      )
  );
  return mx::divide(
      magnitude_->value(),
      mx::stop_gradient(mx::sqrt(mx::maximum(square, mx::array(1e-12f))))
  );
}

bool Lora::drops(const Pass& pass) const {
  return pass.noise && config_.dropout > 0;
}

std::optional<ops::LowRank> Lora::low_rank(const Pass& pass) const {
  if (scales_rows() || drops(pass)) return {};
  return ops::LowRank{a_->value(),  b_->value(), config_.scale(), a_->packed(),
                      b_->packed(), a_->home,    b_->home};
}

mx::array Lora::operator()(
    const mx::array& x,
    const mx::array& y,
    const Weight& weight,
    const Pass& pass
) const {
  auto in = x;
  if (drops(pass)) {
    in = ops::dropout(
        x, *pass.noise, index_, static_cast<float>(config_.dropout)
    );
  }
  const auto inner = ops::linear(in, a_->value(), {}, a_->packed());
  auto sum =
      ops::linear_add(y, inner, b_->value(), config_.scale(), b_->packed());
  if (magnitude_ == nullptr) return sum;
  return mx::multiply(sum, mx::astype(row_gain(weight, pass), sum.dtype()));
}

const Lora* LoraSet::of(std::string_view layer) const {
  const auto at = layers.find(layer);
  return at == layers.end() ? nullptr : at->second.get();
}

mx::array Lora::delta() const {
  const auto at = mx::contiguous(mx::transpose(a_->value()));
  return mx::multiply(ops::linear(b_->value(), at), mx::array(config_.scale()));
}

mx::array Lora::merged(const mx::array& base) const {
  auto sum = mx::add(base, delta());
  if (magnitude_ == nullptr) return sum;
  const auto norms = mx::sqrt(mx::sum(mx::square(sum), -1, true));
  return mx::multiply(
      sum, mx::divide(mx::expand_dims(magnitude_->value(), 1), norms)
  );
}

}  // namespace hearth::nn
