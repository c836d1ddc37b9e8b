#include "hearth/infer/cpu/reader.h"

#include <algorithm>

namespace hearth::infer {

CpuReader::CpuReader(
    const models::LoadedModel& model,
    const LoraSets& adapters,
    CpuModel& to
)
    : model_(model),
      set_(model.decoder->parameters()),
      adapters_(adapters),
      to_(to) {}

const float* CpuReader::vector(const nn::Weight* p) {
  if (p == nullptr || p->value().dtype() != mx::float32) {
    miss();
    return nullptr;
  }
  // Loaded parameters are there already; this makes sure.
  auto value = p->value();
  value.eval();
  return value.data<float>();
}

const float* CpuReader::vector(io::NamedRole part) {
  return vector(set_.find(part));
}

const float* CpuReader::plus_one(const float* weight, std::size_t size) {
  auto& own = to_.own.emplace_back(
      MemoryZone::named("infer norms"), size * sizeof(float)
  );
  const auto sum = own.as<float>();
  std::transform(weight, weight + size, sum.begin(), [](float w) {
    return 1 + w;
  });
  return sum.data();
}

CpuNorm CpuReader::norm(io::Role role, int layer) {
  const auto& config = model_.decoder->config().norm;
  const auto [weight, bias] = set_.affine(role, layer);
  if (weight == nullptr) return {};
  CpuNorm out{vector(weight), nullptr};
  if (config.kind == nn::NormKind::layer) out.bias = vector(bias);
  if (config.plus_one && out) {
    out.weight = plus_one(out.weight, weight->value().size());
  }
  return out;
}

CpuMatrix CpuReader::matrix(const nn::Weight& p, const float* bias) {
  CpuMatrix m;
  m.n = p.shape.at(0), m.k = p.shape.at(1);
  m.bias = bias;
  if (p.quantized() && p.quantized()->packed()) {
    m.layout = &p.quantized()->layout();
    auto codes = *p.quantized()->packed();
    codes.eval();
    m.codes = codes.data<std::uint8_t>();
  } else if (p.packed()) {
    const auto operand = model_.compute == mx::float32
                             ? kernels::GemmScalar::f32
                             : kernels::GemmScalar::bf16;
    m.packed = p.packed().get();
    if (p.packed()->family().operand != operand) miss();
  } else {
    miss();
  }
  to_.quantized = to_.quantized || m.quantized();
  return m;
}

CpuMatrix CpuReader::linear(io::Role role, int layer) {
  const auto [weight, bias] = set_.affine(role, layer);
  if (weight == nullptr) return {};
  CpuMatrix m = matrix(*weight, bias != nullptr ? vector(bias) : nullptr);
  for (const auto& set : adapters_) {
    m.adapters.push_back(lora(*set, weight->module()));
  }
  return m;
}

CpuTable CpuReader::table(io::Role role) {
  const nn::Weight* p = set_.find({role});
  const bool known =
      p != nullptr && p->value().size() > 0 &&
      (p->value().dtype() == mx::bfloat16 || p->value().dtype() == mx::float32);
  if (!known) {
    miss();
    return {};
  }
  auto value = p->value();
  value.eval();
  return {value.data<void>(), p->shape.at(0), value.dtype() == mx::bfloat16};
}

CpuLora CpuReader::lora(const nn::LoraSet& set, const std::string& name) {
  const nn::Lora* lora = set.of(name);
  if (lora == nullptr) return {};
  const auto &a = lora->a().packed(), &b = lora->b().packed();
  if (lora->config().dora || !a || !b) {
    miss();
    return {};
  }
  return {a.get(), b.get(), lora->config().scale()};
}

}  // namespace hearth::infer
