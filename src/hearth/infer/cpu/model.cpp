#include "hearth/infer/cpu/model.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "hearth/infer/cpu/reader.h"
#include "hearth/kernels/paged_attention.h"

namespace hearth::infer {
namespace {

bool dynamic(const std::optional<ops::RopeConfig>& rope) {
  return rope && rope->scaling == ops::RopeScaling::dynamic;
}

bool runs_without_graph(const models::DecoderConfig& c) {
  const bool by_input =
      c.gate && (c.gate->alpha == "entropy" || c.gate->alpha == "confidence");
  constexpr int kWord = 4;
  return !dynamic(c.rope) && !dynamic(c.local_rope) && !by_input &&
         c.head_dim % kWord == 0 && c.head_dim <= kernels::kPagedMaxDim;
}

// Where a block's norms are found; null: it has none there.
struct NormNames {
  const char* block;
  const char* before_attention;
  const char* after_attention = nullptr;
  const char* before_mlp;
  const char* after_mlp = nullptr;
  const char* final;
};
constexpr NormNames kLlama{
    .block = "model.layers.{}",
    .before_attention = ".input_layernorm",
    .before_mlp = ".post_attention_layernorm",
    .final = "model.norm"
};
constexpr NormNames kGemma{
    .block = "model.layers.{}",
    .before_attention = ".input_layernorm",
    .after_attention = ".post_attention_layernorm",
    .before_mlp = ".pre_feedforward_layernorm",
    .after_mlp = ".post_feedforward_layernorm",
    .final = "model.norm"
};
constexpr NormNames kGpt2{
    .block = "transformer.h.{}",
    .before_attention = ".ln_1",
    .before_mlp = ".ln_2",
    .final = "transformer.ln_f"
};

const NormNames& names_of(const models::DecoderConfig& c) {
  return c.gpt2_layout ? kGpt2 : c.sandwich_norms ? kGemma : kLlama;
}

void read_norms(
    CpuReader& r,
    const models::DecoderConfig& c,
    const std::string& block,
    CpuLayer& l
) {
  const NormNames& names = names_of(c);
  const auto norm = [&](const char* name) {
    return name != nullptr ? r.norm(block + name) : CpuNorm{};
  };
  l.before_attention = norm(names.before_attention);
  l.after_attention = norm(names.after_attention);
  l.before_mlp = norm(names.before_mlp);
  l.after_mlp = norm(names.after_mlp);
  if (!c.qk_norm) return;
  l.q_norm = norm(".self_attn.q_norm");
  l.k_norm = norm(".self_attn.k_norm");
}

// The decoder lists a block's projections in this order.
void read_projections(
    CpuReader& r,
    const models::DecoderConfig& c,
    std::span<nn::Linear* const> from,
    CpuLayer& l
) {
  std::vector<CpuMatrix*> to{&l.q};
  if (!c.gpt2_layout) to.insert(to.end(), {&l.k, &l.v});
  to.insert(to.end(), {&l.o, &l.gate});
  if (c.gated || c.gate) to.push_back(&l.up);
  to.push_back(&l.down);
  if (to.size() != from.size()) return r.miss();
  for (std::size_t i = 0; i < to.size(); ++i) *to[i] = r.linear(*from[i]);
}

void read_gate(
    CpuReader& r,
    const nn::Gate& gate,
    const std::string& block,
    CpuLayer& l
) {
  l.alpha = gate.alpha(mx::array(0.0f)).item<float>();
  l.beta = gate.config().form().beta;
  if (!gate.config().learn_beta) return;
  const float* learnt = r.vector(block + ".mlp.gate_beta");
  if (learnt != nullptr) l.beta = *learnt;
}

CpuLayer layer(
    CpuReader& r,
    const models::Decoder& decoder,
    std::span<nn::Linear* const> projections,
    const nn::Gate* gate,
    std::size_t i
) {
  const auto& c = decoder.config();
  const auto block = fmt::format(fmt::runtime(names_of(c).block), i);
  CpuLayer l;
  read_norms(r, c, block, l);
  read_projections(r, c, projections, l);
  if (gate != nullptr) read_gate(r, *gate, block, l);
  l.window = c.windows[i];
  l.scale = c.score_scale(i);
  if (c.rope) l.rope = c.local_rope && l.window > 0 ? 1 : 0;
  return l;
}

void read_layers(CpuReader& r, models::Decoder& decoder, CpuModel& to) {
  const auto& c = decoder.config();
  const auto linears = decoder.linears();
  const auto gates = decoder.gates();
  const std::size_t each = linears.size() / c.windows.size();
  for (std::size_t i = 0; i < c.windows.size(); ++i) {
    to.layers.push_back(layer(
        r, decoder, std::span(linears).subspan(i * each, each),
        gates.empty() ? nullptr : gates[i], i
    ));
  }
}

void read_activation(const models::DecoderConfig& c, CpuModel& to) {
  const auto form = c.gate ? c.gate->form() : ops::PartialGate{c.act};
  to.act = form.act, to.tanh_value = form.tanh_value;
}

}  // namespace

std::vector<const CpuMatrix*> CpuLayer::matrices() const {
  std::vector<const CpuMatrix*> all{&q, &k, &v, &o, &gate, &up, &down};
  std::erase_if(all, [](const CpuMatrix* m) { return m->empty(); });
  return all;
}

std::size_t CpuModel::bytes_per_token() const {
  std::size_t sum = head.bytes();
  for (const CpuLayer& l : layers) {
    for (const CpuMatrix* m : l.matrices()) sum += m->bytes();
  }
  return sum;
}

std::optional<CpuModel> cpu_model(
    const models::LoadedModel& model,
    const LoraSets& adapters
) {
  models::Decoder& decoder = *model.decoder;
  const auto& c = decoder.config();
  if (!ops::on_cpu({}) || !runs_without_graph(c)) return {};
  const bool adapted =
      std::ranges::any_of(decoder.linears(), [](const auto* linear) {
        return linear->lora() != nullptr && !linear->merged();
      });
  if (adapted) return {};
  CpuModel out;
  out.config = &c;
  out.bf16 = model.compute == mx::bfloat16;
  if (c.rope) out.ropes.push_back(&*c.rope);
  if (c.local_rope) out.ropes.push_back(&*c.local_rope);
  CpuReader reader(model, adapters, out);
  read_activation(c, out);
  read_layers(reader, decoder, out);
  out.final_norm = reader.norm(names_of(c).final);
  out.head = reader.matrix(decoder.head());
  out.embedding = reader.table(&decoder.embedding());
  out.embedding_scale = models::embedding_scale(c, model.compute);
  if (!c.rope) out.positions = reader.table("transformer.wpe.weight");
  if (!reader.whole()) return {};
  return out;
}

}  // namespace hearth::infer
