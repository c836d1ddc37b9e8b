#include "hearth/infer/cpu_model.h"

#include <algorithm>

#include <fmt/format.h>

namespace hearth::infer {
namespace {

bool of_llamas_shape(const models::DecoderConfig& c) {
  const bool positions =
      c.rope && !c.local_rope && c.rope->scaling != ops::RopeScaling::dynamic;
  const bool norms =
      c.norm.kind == nn::NormKind::rms && !c.norm.plus_one && !c.sandwich_norms;
  const bool mlp = c.gated && !c.gate && !c.gpt2_layout;
  constexpr int kWord = 4, kMaxDim = 256;
  return positions && norms && mlp && !c.scale_by_layer &&
         c.final_softcap == 0 && c.embedding_scale == 1 &&
         c.head_dim % kWord == 0 && c.head_dim <= kMaxDim;
}

// Collects addresses; what is missing makes the whole thing fall through.
class Reader {
 public:
  Reader(const models::LoadedModel& model, const LoraSets& adapters)
      : model_(model), set_(model.decoder->parameters()), adapters_(adapters) {}

  bool whole() const { return whole_; }

  const float* vector(const std::string& name, bool wanted = true) {
    if (!wanted) return nullptr;
    const nn::Parameter* p = set_.find(name);
    if (p == nullptr || p->value.dtype() != mx::float32) {
      whole_ = false;
      return nullptr;
    }
    // Loaded parameters are there already; this makes sure.
    auto value = p->value;
    value.eval();
    return value.data<float>();
  }

  CpuMatrix matrix(const nn::Parameter& p, const float* bias = nullptr) {
    CpuMatrix m;
    m.n = p.shape.at(0), m.k = p.shape.at(1);
    m.bias = bias;
    if (p.quantized && p.quantized->packed()) {
      m.layout = &p.quantized->layout();
      auto codes = *p.quantized->packed();
      codes.eval();
      m.codes = codes.data<std::uint8_t>();
    } else if (p.packed) {
      const auto operand = model_.compute == mx::float32
                               ? kernels::GemmScalar::f32
                               : kernels::GemmScalar::bf16;
      m.packed = p.packed.get();
      whole_ = whole_ && p.packed->family().operand == operand;
    } else {
      whole_ = false;
    }
    return m;
  }

  CpuMatrix linear(const std::string& name, bool bias) {
    const nn::Parameter* p = set_.find(name + ".weight");
    if (p == nullptr) {
      whole_ = false;
      return {};
    }
    CpuMatrix m = matrix(*p, vector(name + ".bias", bias));
    for (const auto& set : adapters_) m.adapters.push_back(lora(*set, name));
    return m;
  }

 private:
  const models::LoadedModel& model_;
  const nn::ParameterSet& set_;
  const LoraSets& adapters_;
  bool whole_ = true;

  CpuLora lora(const nn::LoraSet& set, const std::string& name) {
    const nn::Lora* lora = set.of(name);
    if (lora == nullptr) return {};
    const nn::Parameter* a = set.parameters.find(name + ".lora_A.weight");
    const nn::Parameter* b = set.parameters.find(name + ".lora_B.weight");
    if (lora->config().dora || !a || !b || !a->packed || !b->packed) {
      whole_ = false;
      return {};
    }
    return {a->packed.get(), b->packed.get(), lora->config().scale()};
  }
};

CpuLayer layer(Reader& r, const models::DecoderConfig& c, std::size_t i) {
  const std::string name = fmt::format("model.layers.{}", i);
  const std::string attention = name + ".self_attn";
  CpuLayer l;
  l.attention_norm = r.vector(name + ".input_layernorm.weight");
  l.mlp_norm = r.vector(name + ".post_attention_layernorm.weight");
  l.q_norm = r.vector(attention + ".q_norm.weight", c.qk_norm);
  l.k_norm = r.vector(attention + ".k_norm.weight", c.qk_norm);
  l.q = r.linear(attention + ".q_proj", c.qkv_bias);
  l.k = r.linear(attention + ".k_proj", c.qkv_bias);
  l.v = r.linear(attention + ".v_proj", c.qkv_bias);
  l.o = r.linear(attention + ".o_proj", c.out_bias);
  l.gate = r.linear(name + ".mlp.gate_proj", c.mlp_bias);
  l.up = r.linear(name + ".mlp.up_proj", c.mlp_bias);
  l.down = r.linear(name + ".mlp.down_proj", c.mlp_bias);
  l.window = c.windows[i];
  return l;
}

}  // namespace

std::size_t CpuModel::bytes_per_token() const {
  std::size_t sum = head.bytes();
  for (const CpuLayer& l : layers) {
    for (const CpuMatrix* m :
         {&l.q, &l.k, &l.v, &l.o, &l.gate, &l.up, &l.down}) {
      sum += m->bytes();
    }
  }
  return sum;
}

std::optional<CpuModel> cpu_model(
    const models::LoadedModel& model,
    const LoraSets& adapters
) {
  const auto& c = model.decoder->config();
  if (!ops::on_cpu({}) || !of_llamas_shape(c)) return {};
  const bool adapted =
      std::ranges::any_of(model.decoder->linears(), [](const auto* linear) {
        return linear->lora() != nullptr && !linear->merged();
      });
  if (adapted) return {};
  Reader reader(model, adapters);
  CpuModel out;
  out.config = &c;
  out.bf16 = model.compute == mx::bfloat16;
  for (std::size_t i = 0; i < c.windows.size(); ++i) {
    out.layers.push_back(layer(reader, c, i));
  }
  out.final_norm = reader.vector("model.norm.weight");
  out.head = reader.matrix(model.decoder->head());
  auto table = model.decoder->embedding().value;
  if (!reader.whole() || table.size() == 0) return {};
  table.eval();
  out.embedding_bf16 = table.dtype() == mx::bfloat16;
  if (!out.embedding_bf16 && table.dtype() != mx::float32) return {};
  out.embedding = table.data<void>();
  for (const CpuLayer& l : out.layers) {
    for (const CpuMatrix* m :
         {&l.q, &l.k, &l.v, &l.o, &l.gate, &l.up, &l.down}) {
      out.quantized = out.quantized || m->quantized();
    }
  }
  out.quantized = out.quantized || out.head.quantized();
  return out;
}

}  // namespace hearth::infer
