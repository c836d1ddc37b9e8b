#pragma once
// The part each weight plays in a decoder, and what Hugging Face's checkpoints
// call it. Names stand here once: whatever goes over a model's weights asks
// for their roles. What GGUF calls them is in gguf_names.h.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hearth::io {

// A norm's or projection's role covers its weight and its bias.
enum class Role : std::uint8_t {
  other,
  embedding,
  positions,  // learnt ones
  // Of a block, in the order a block is computed in.
  attention_norm,  // before attention
  query,
  key,
  value,
  joint,  // queries, keys and values in one matrix
  attention_out,
  query_norm,
  key_norm,
  after_attention_norm,
  mlp_norm,  // before the MLP
  gate,
  up,  // of a plain MLP: the first of its two matrices
  down,
  gate_alpha,
  gate_beta,
  after_mlp_norm,
  // Behind the blocks.
  final_norm,
  head,
  // Of a low-rank adapter.
  adapter,
};

// A row of numbers for each token: gathered from, multiplied by, or both.
constexpr bool is_token_table(Role role) {
  return role == Role::embedding || role == Role::head;
}

inline constexpr std::size_t kRoles =
    std::size_t{1} + static_cast<std::size_t>(Role::adapter);

// Which convention a family's names follow.
enum class NameStyle : std::uint8_t {
  llama = 1,
  gemma = 2,  // Llama's with norms on both sides of a half
  gpt2 = 4,
  plain_mlp = 8,  // Llama's with an MLP of two matrices
};

struct NamedRole {
  Role role = Role::other;
  int layer = -1;  // -1: of no block
  bool bias = false;

  bool operator==(const NamedRole&) const = default;
};

// "model.layers.3.self_attn.q_proj" for the query of layer 3: a module, which
// has a ".weight" and perhaps a ".bias"; a gate's own numbers have neither.
// Throws Error where the style has no such role.
std::string module_name(NameStyle style, Role role, int layer = -1);

// The inverse, of a whole tensor name in the first style that has it (Gemma's
// and Llama's share a norm's name for two roles): the role is `other`
// where no style has it.
NamedRole role_of(std::string_view name);

// Matches a name against a pattern with {} for the layer's number, such as
// "blk.{}.attn_q". Returns the number (-1 where the pattern has no {}), or
// nothing where the name does not match.
std::optional<int> layer_by(std::string_view pattern, std::string_view name);

// What PEFT calls the arrays of an adapter, behind its layer's name and a dot.
inline constexpr std::string_view kLoraA = "lora_A.weight",
                                  kLoraB = "lora_B.weight",
                                  kLoraMagnitude = "lora_magnitude_vector";

// A row of the table of names.
struct RoleName {
  Role role;
  unsigned styles;                // NameStyle's bits
  std::string_view module, gguf;  // gguf: empty where GGUF has no such role

  bool of(NameStyle style) const {
    return (styles & static_cast<unsigned>(style)) != 0;
  }
};
std::span<const RoleName> role_names();

}  // namespace hearth::io
