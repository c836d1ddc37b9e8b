#pragma once
// What a GGUF tensor is called in Hugging Face's checkpoints, and what the
// converter did to its bytes that has to be undone.
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hearth::io {

enum class GgufChange {
  kNone,
  // Llama's q and k: within each head the rows of the two rotary halves are
  // interleaved.
  kQueryRows,
  kKeyRows,
  kPlusOne,     // Gemma's norms: one was added to the weight
  kTransposed,  // GPT-2: Hugging Face keeps these weights as [in, out]
};

struct GgufName {
  std::string name;
  GgufChange change = GgufChange::kNone;
};

// The architectures that are known, as general.architecture spells them.
std::span<const std::string_view> gguf_architectures();

// Nothing for a name the architecture does not have. `rope_freqs.weight` is
// not a weight and has no name here: the config says it.
std::optional<GgufName> hugging_face_name(
    std::string_view architecture,
    std::string_view name
);

}  // namespace hearth::io
