#pragma once
// GGUF's architectures and names of tensors, translated to Hugging Face's and
// back, and which changes the converter made to a tensor's bytes.
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "hearth/io/weight_names.h"

namespace hearth::io {

// An architecture: its name in general.architecture and in config.json.
struct GgufArchitecture {
  std::string_view name, class_name, model_type;
  NameStyle style = NameStyle::llama;
};
std::span<const GgufArchitecture> gguf_architectures();
// Null for one that is not known.
const GgufArchitecture* gguf_architecture(std::string_view name);

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

// Nothing for a name the architecture does not have. `rope_freqs.weight` has no
// name here, because Hugging Face keeps its numbers in the config.
std::optional<GgufName> hugging_face_name(
    std::string_view architecture,
    std::string_view gguf_name
);

// The inverse: what the architecture calls a tensor of that Hugging Face name,
// and what its bytes must go through on the way.
std::optional<GgufName> gguf_name(
    std::string_view architecture,
    std::string_view hugging_face_name
);

}  // namespace hearth::io
