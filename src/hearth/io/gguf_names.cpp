#include "hearth/io/gguf_names.h"

#include <algorithm>

#include <fmt/format.h>

namespace hearth::io {
namespace {

constexpr GgufArchitecture kArchitectures[] = {
    {"llama", "LlamaForCausalLM", "llama"},
    {"qwen2", "Qwen2ForCausalLM", "qwen2"},
    {"qwen3", "Qwen3ForCausalLM", "qwen3"},
    {"gemma2", "Gemma2ForCausalLM", "gemma2", NameStyle::gemma},
    {"gemma3", "Gemma3ForCausalLM", "gemma3_text", NameStyle::gemma},
    {"gpt2", "GPT2LMHeadModel", "gpt2", NameStyle::gpt2},
};

bool is_norm(Role role) {
  switch (role) {
    case Role::attention_norm:
    case Role::query_norm:
    case Role::key_norm:
    case Role::after_attention_norm:
    case Role::mlp_norm:
    case Role::after_mlp_norm:
    case Role::final_norm:
      return true;
    default:
      return false;
  }
}

GgufChange change_of(const GgufArchitecture& a, Role role, bool bias) {
  if (a.name == "llama" && role == Role::query) return GgufChange::kQueryRows;
  if (a.name == "llama" && role == Role::key) return GgufChange::kKeyRows;
  if (a.style == NameStyle::gemma && is_norm(role)) return GgufChange::kPlusOne;
  const bool matrix = role == Role::joint || role == Role::attention_out ||
                      role == Role::up || role == Role::down;
  return a.style == NameStyle::gpt2 && matrix && !bias ? GgufChange::kTransposed
                                                       : GgufChange::kNone;
}

using Column = std::string_view RoleName::*;

// From one column of the table of names to another.
std::optional<GgufName> translated(
    std::string_view architecture,
    std::string_view name,
    Column from,
    Column to
) {
  const GgufArchitecture* a = gguf_architecture(architecture);
  const std::size_t dot = name.rfind('.');
  if (a == nullptr || dot == name.npos) return std::nullopt;
  const std::string_view stem = name.substr(0, dot);
  const std::string_view kind = name.substr(dot + 1);
  if (kind != "weight" && kind != "bias") return std::nullopt;
  for (const RoleName& row : role_names()) {
    if (!row.of(a->style) || row.gguf.empty()) continue;
    const auto layer = layer_by(row.*from, stem);
    if (!layer) continue;
    const std::string module = *layer < 0
                                   ? std::string(row.*to)
                                   : fmt::format(fmt::runtime(row.*to), *layer);
    return GgufName{
        fmt::format("{}.{}", module, kind),
        change_of(*a, row.role, kind == "bias")
    };
  }
  return std::nullopt;
}

}  // namespace

std::span<const GgufArchitecture> gguf_architectures() {
  return kArchitectures;
}

const GgufArchitecture* gguf_architecture(std::string_view name) {
  const auto* at =
      std::ranges::find(kArchitectures, name, &GgufArchitecture::name);
  return at == std::end(kArchitectures) ? nullptr : at;
}

std::optional<GgufName> hugging_face_name(
    std::string_view architecture,
    std::string_view gguf_name
) {
  return translated(
      architecture, gguf_name, &RoleName::gguf, &RoleName::module
  );
}

std::optional<GgufName> gguf_name(
    std::string_view architecture,
    std::string_view hugging_face_name
) {
  return translated(
      architecture, hugging_face_name, &RoleName::module, &RoleName::gguf
  );
}

}  // namespace hearth::io
