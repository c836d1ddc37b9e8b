#include "hearth/infer/cpu/model.h"

#include <algorithm>
#include <span>

#include "hearth/infer/cpu/reader.h"
#include "hearth/infer/engine/kv_layout.h"
#include "hearth/kernels/paged_attention.h"

namespace hearth::infer {
namespace {

bool runs_without_graph(const models::DecoderConfig& c) {
  const bool by_input =
      c.gate && (c.gate->alpha == "entropy" || c.gate->alpha == "confidence");
  constexpr int kWord = 4;
  return !rotations_by_length(c) && !by_input && c.head_dim % kWord == 0 &&
         c.head_dim <= kernels::kPagedMaxDim;
}

using io::Role;

void read_gate(CpuReader& r, const nn::Gate& gate, int layer, CpuLayer& l) {
  l.alpha = gate.alpha(mx::array(0.0f)).item<float>();
  l.beta = gate.config().form().beta;
  if (!gate.config().learn_beta) return;
  const float* learnt = r.vector({Role::gate_beta, layer});
  if (learnt != nullptr) l.beta = *learnt;
}

// The roles that the pass computes. A model with a weight of another role is
// left to the graph.
constexpr Role kNorms[] = {Role::attention_norm, Role::after_attention_norm,
                           Role::mlp_norm,       Role::after_mlp_norm,
                           Role::query_norm,     Role::key_norm,
                           Role::final_norm};
constexpr Role kMatrices[] = {Role::query, Role::key,           Role::value,
                              Role::joint, Role::attention_out, Role::gate,
                              Role::up,    Role::down};
constexpr Role kOthers[] = {Role::embedding, Role::positions, Role::gate_alpha,
                            Role::gate_beta, Role::head,      Role::adapter};

bool is_computed(Role role) {
  const auto in = [&](std::span<const Role> roles) {
    return std::ranges::find(roles, role) != roles.end();
  };
  return in(kNorms) || in(kMatrices) || in(kOthers);
}

CpuLayer read_layer(
    CpuReader& r,
    const models::DecoderConfig& c,
    const nn::Gate* gate,
    int layer
) {
  CpuLayer l;
  for (const Role role : kNorms) {
    l.norms[static_cast<std::size_t>(role)] = r.norm(role, layer);
  }
  for (const Role role : kMatrices) {
    l.multiplied[static_cast<std::size_t>(role)] = r.linear(role, layer);
  }
  if (gate != nullptr) read_gate(r, *gate, layer, l);
  const auto i = static_cast<std::size_t>(layer);
  l.window = c.windows[i];
  l.scale = c.score_scale(i);
  if (c.rope) l.rope = c.local_rope && l.window > 0 ? 1 : 0;
  return l;
}

void read_layers(CpuReader& r, models::Decoder& decoder, CpuModel& to) {
  const auto& c = decoder.config();
  const auto gates = decoder.gates();
  for (int i = 0; i < c.layers; ++i) {
    const auto* gate =
        gates.empty() ? nullptr : gates[static_cast<std::size_t>(i)];
    to.layers.push_back(read_layer(r, c, gate, i));
  }
}

void read_activation(const models::DecoderConfig& c, CpuModel& to) {
  const auto form = c.gate ? c.gate->form() : ops::PartialGate{c.act};
  to.act = form.act, to.tanh_value = form.tanh_value;
}

}  // namespace

std::vector<const CpuMatrix*> CpuLayer::matrices() const {
  std::vector<const CpuMatrix*> all;
  for (const CpuMatrix& m : multiplied) {
    if (!m.empty()) all.push_back(&m);
  }
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
  const bool computed =
      std::ranges::all_of(decoder.parameters().all(), [](const auto* w) {
        return is_computed(w->part.role);
      });
  if (adapted || !computed) return {};
  CpuModel out;
  out.config = &c;
  out.bf16 = model.compute == mx::bfloat16;
  if (c.rope) out.ropes.push_back(&*c.rope);
  if (c.local_rope) out.ropes.push_back(&*c.local_rope);
  CpuReader reader(model, adapters, out);
  read_activation(c, out);
  read_layers(reader, decoder, out);
  out.final_norm = reader.norm(Role::final_norm);
  out.head = reader.matrix(decoder.head());
  out.embedding = reader.table(Role::embedding);
  out.embedding_scale = models::embedding_scale(c, model.compute);
  if (!c.rope) out.positions = reader.table(Role::positions);
  if (!reader.whole()) return {};
  return out;
}

}  // namespace hearth::infer
