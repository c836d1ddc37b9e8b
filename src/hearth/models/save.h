#pragma once
// A decoder's parameters written out as other tools read them.
#include <string>

#include "hearth/io/hf_folder_writer.h"
#include "hearth/models/load.h"

namespace hearth::models {

// Every dense parameter under its checkpoint name and in its checkpoint's
// layout, rounded to float32 or bfloat16 when its turn comes. Throws
// UsageError for a parameter that is quantised or only packed.
std::vector<io::TensorToWrite> tensors_to_write(
    const Decoder& decoder,
    mx::Dtype dtype
);

// The same of a model on disk, read from there one tensor at a time, so that
// it may be loaded as Use::described. Quantised matrices are widened, adapters
// are merged; type is f32, bf16 or f16. Throws FormatError for a number that
// f16 cannot hold. The model must outlive the writing.
std::vector<io::TensorToWrite> tensors_to_write(
    const LoadedModel& model,
    io::TensorType type
);

}  // namespace hearth::models
