#include "hearth/io/gguf_names.h"

#include <array>

#include <fmt/format.h>

namespace hearth::io {
namespace {

constexpr std::array<std::string_view, 6> kArchitectures{
    "llama", "qwen2", "qwen3", "gemma2", "gemma3", "gpt2"
};

struct Row {
  std::string_view gguf, name;
  GgufChange change = GgufChange::kNone;
};

constexpr Row kDecoder[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm", GgufChange::kPlusOne},
    {"output", "lm_head"},
};
constexpr Row kDecoderLayer[] = {
    {"attn_norm", "input_layernorm", GgufChange::kPlusOne},
    {"attn_q", "self_attn.q_proj", GgufChange::kQueryRows},
    {"attn_k", "self_attn.k_proj", GgufChange::kKeyRows},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm", GgufChange::kPlusOne},
    {"attn_k_norm", "self_attn.k_norm", GgufChange::kPlusOne},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
};
constexpr Row kPlainNorms[] = {
    {"ffn_norm", "post_attention_layernorm"},
};
constexpr Row kGemmaNorms[] = {
    {"post_attention_norm", "post_attention_layernorm", GgufChange::kPlusOne},
    {"ffn_norm", "pre_feedforward_layernorm", GgufChange::kPlusOne},
    {"post_ffw_norm", "post_feedforward_layernorm", GgufChange::kPlusOne},
};
constexpr Row kGpt2[] = {
    {"token_embd", "transformer.wte"},
    {"position_embd", "transformer.wpe"},
    {"output_norm", "transformer.ln_f"},
    {"output", "lm_head"},
};
constexpr Row kGpt2Layer[] = {
    {"attn_norm", "ln_1"},
    {"attn_qkv", "attn.c_attn", GgufChange::kTransposed},
    {"attn_output", "attn.c_proj", GgufChange::kTransposed},
    {"ffn_norm", "ln_2"},
    {"ffn_up", "mlp.c_fc", GgufChange::kTransposed},
    {"ffn_down", "mlp.c_proj", GgufChange::kTransposed},
};

const Row* find(std::span<const Row> rows, std::string_view name) {
  for (const Row& row : rows) {
    if (row.gguf == name) return &row;
  }
  return nullptr;
}

// "blk.12.attn_q" to "12" and "attn_q"; empty when it is not a layer's.
struct InLayer {
  std::string_view number, rest;
};
InLayer in_layer(std::string_view stem) {
  if (!stem.starts_with("blk.")) return {};
  stem.remove_prefix(4);
  const std::size_t dot = stem.find('.');
  if (dot == stem.npos || dot == 0 || dot > 6) return {};
  for (const char c : stem.substr(0, dot)) {
    if (c < '0' || c > '9') return {};
  }
  return {stem.substr(0, dot), stem.substr(dot + 1)};
}

const Row* find_in_layer(std::string_view architecture, std::string_view name) {
  if (architecture == "gpt2") return find(kGpt2Layer, name);
  const bool gemma = architecture.starts_with("gemma");
  const Row* row = gemma ? find(kGemmaNorms, name) : find(kPlainNorms, name);
  return row != nullptr ? row : find(kDecoderLayer, name);
}

bool changed(
    std::string_view architecture,
    GgufChange change,
    std::string_view kind
) {
  switch (change) {
    case GgufChange::kQueryRows:
    case GgufChange::kKeyRows:
      return architecture == "llama";
    case GgufChange::kPlusOne:
      return architecture.starts_with("gemma");
    default:
      return kind == "weight";
  }
}

}  // namespace

std::span<const std::string_view> gguf_architectures() {
  return kArchitectures;
}

std::optional<GgufName> hugging_face_name(
    std::string_view architecture,
    std::string_view name
) {
  const std::size_t dot = name.rfind('.');
  if (dot == name.npos) return std::nullopt;
  const std::string_view stem = name.substr(0, dot);
  const std::string_view kind = name.substr(dot + 1);
  if (kind != "weight" && kind != "bias") return std::nullopt;
  const bool gpt2 = architecture == "gpt2";
  const InLayer layer = in_layer(stem);
  const Row* row =
      layer.number.empty()
          ? find(gpt2 ? std::span<const Row>(kGpt2) : kDecoder, stem)
          : find_in_layer(architecture, layer.rest);
  if (row == nullptr) return std::nullopt;
  GgufName out;
  if (changed(architecture, row->change, kind)) out.change = row->change;
  out.name = layer.number.empty()
                 ? fmt::format("{}.{}", row->name, kind)
                 : fmt::format(
                       "{}.{}.{}.{}", gpt2 ? "transformer.h" : "model.layers",
                       layer.number, row->name, kind
                   );
  return out;
}

}  // namespace hearth::io
