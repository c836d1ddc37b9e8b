#pragma once
// A GGUF file as a Hugging Face model: names, shapes and row order as a
// checkpoint of that family has them. Quantised tensors stay quantised; rows
// the converter permuted are put back in a copy that data() hands out.
#include <memory>
#include <span>
#include <string>

#include "hearth/io/model_source.h"

namespace hearth::io {

std::shared_ptr<const ModelSource> open_gguf(const std::string& path);
// A model whose bytes are in memory; they must outlive it.
std::shared_ptr<const ModelSource> open_gguf(
    std::span<const std::byte> bytes,
    const std::string& name
);

}  // namespace hearth::io
