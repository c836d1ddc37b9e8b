#include "hearth/io/weight_names.h"

#include <charconv>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::io {
namespace {

constexpr auto kLlama = static_cast<unsigned>(NameStyle::llama);
constexpr auto kGemma = static_cast<unsigned>(NameStyle::gemma);
constexpr auto kGpt2 = static_cast<unsigned>(NameStyle::gpt2);
constexpr auto kPlainMlp = static_cast<unsigned>(NameStyle::plain_mlp);
constexpr unsigned kLike = kLlama | kPlainMlp;  // norms before each half alone
constexpr unsigned kLlamas = kLike | kGemma;

// Names are looked up in this order.
constexpr RoleName kNames[] = {
    {Role::embedding, kLlamas, "model.embed_tokens", "token_embd"},
    {Role::embedding, kGpt2, "transformer.wte", "token_embd"},
    {Role::positions, kGpt2, "transformer.wpe", "position_embd"},
    {Role::attention_norm, kLlamas, "model.layers.{}.input_layernorm",
     "blk.{}.attn_norm"},
    {Role::attention_norm, kGpt2, "transformer.h.{}.ln_1", "blk.{}.attn_norm"},
    {Role::query, kLlamas, "model.layers.{}.self_attn.q_proj", "blk.{}.attn_q"},
    {Role::key, kLlamas, "model.layers.{}.self_attn.k_proj", "blk.{}.attn_k"},
    {Role::value, kLlamas, "model.layers.{}.self_attn.v_proj", "blk.{}.attn_v"},
    {Role::joint, kGpt2, "transformer.h.{}.attn.c_attn", "blk.{}.attn_qkv"},
    {Role::attention_out, kLlamas, "model.layers.{}.self_attn.o_proj",
     "blk.{}.attn_output"},
    {Role::attention_out, kGpt2, "transformer.h.{}.attn.c_proj",
     "blk.{}.attn_output"},
    {Role::query_norm, kLlamas, "model.layers.{}.self_attn.q_norm",
     "blk.{}.attn_q_norm"},
    {Role::key_norm, kLlamas, "model.layers.{}.self_attn.k_norm",
     "blk.{}.attn_k_norm"},
    {Role::after_attention_norm, kGemma,
     "model.layers.{}.post_attention_layernorm", "blk.{}.post_attention_norm"},
    {Role::mlp_norm, kLike, "model.layers.{}.post_attention_layernorm",
     "blk.{}.ffn_norm"},
    {Role::mlp_norm, kGemma, "model.layers.{}.pre_feedforward_layernorm",
     "blk.{}.ffn_norm"},
    {Role::mlp_norm, kGpt2, "transformer.h.{}.ln_2", "blk.{}.ffn_norm"},
    {Role::gate, kLlama | kGemma, "model.layers.{}.mlp.gate_proj",
     "blk.{}.ffn_gate"},
    {Role::up, kLlama | kGemma, "model.layers.{}.mlp.up_proj", "blk.{}.ffn_up"},
    {Role::up, kPlainMlp, "model.layers.{}.mlp.fc1", "blk.{}.ffn_up"},
    {Role::up, kGpt2, "transformer.h.{}.mlp.c_fc", "blk.{}.ffn_up"},
    {Role::down, kLlama | kGemma, "model.layers.{}.mlp.down_proj",
     "blk.{}.ffn_down"},
    {Role::down, kPlainMlp, "model.layers.{}.mlp.fc2", "blk.{}.ffn_down"},
    {Role::down, kGpt2, "transformer.h.{}.mlp.c_proj", "blk.{}.ffn_down"},
    {Role::gate_alpha, kLlamas, "model.layers.{}.mlp.gate_alpha", ""},
    {Role::gate_alpha, kGpt2, "transformer.h.{}.mlp.gate_alpha", ""},
    {Role::gate_beta, kLlamas, "model.layers.{}.mlp.gate_beta", ""},
    {Role::gate_beta, kGpt2, "transformer.h.{}.mlp.gate_beta", ""},
    {Role::after_mlp_norm, kGemma, "model.layers.{}.post_feedforward_layernorm",
     "blk.{}.post_ffw_norm"},
    {Role::final_norm, kLlamas, "model.norm", "output_norm"},
    {Role::final_norm, kGpt2, "transformer.ln_f", "output_norm"},
    {Role::head, kLlamas | kGpt2, "lm_head", "output"},
};

bool has_layer(std::string_view pattern) {
  return pattern.find("{}") != pattern.npos;
}

}  // namespace

std::span<const RoleName> role_names() {
  return kNames;
}

std::optional<int> layer_by(std::string_view pattern, std::string_view name) {
  const std::size_t hole = pattern.find("{}");
  if (hole == pattern.npos) {
    return pattern == name ? std::optional(-1) : std::nullopt;
  }
  const std::string_view after = pattern.substr(hole + 2);
  if (!name.starts_with(pattern.substr(0, hole)) || !name.ends_with(after) ||
      name.size() <= hole + after.size()) {
    return std::nullopt;
  }
  const std::string_view digits =
      name.substr(hole, name.size() - hole - after.size());
  constexpr std::size_t kMostDigits = 6;
  if (digits.size() > kMostDigits || (digits.size() > 1 && digits[0] == '0')) {
    return std::nullopt;
  }
  int layer = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), layer);
  const bool whole = error == std::errc() &&
                     end == digits.data() + digits.size() && digits[0] != '-';
  return whole ? std::optional(layer) : std::nullopt;
}

std::string module_name(NameStyle style, Role role, int layer) {
  for (const RoleName& row : kNames) {
    if (row.role != role || !row.of(style)) continue;
    return has_layer(row.module) ? fmt::format(fmt::runtime(row.module), layer)
                                 : std::string(row.module);
  }
  throw Error(
      fmt::format(
          "[io.module_name] style {} has no name for role {}",
          static_cast<int>(style), static_cast<int>(role)
      )
  );
}

NamedRole role_of(std::string_view name) {
  if (name.find(".lora_") != name.npos) return {.role = Role::adapter};
  const bool bias = name.ends_with(".bias");
  const std::size_t dot = name.rfind('.');
  const bool ends = bias || name.ends_with(".weight");
  const std::string_view module = ends ? name.substr(0, dot) : name;
  for (const RoleName& row : kNames) {
    if (const auto layer = layer_by(row.module, module)) {
      return {row.role, *layer, bias};
    }
  }
  return {};
}

}  // namespace hearth::io
