#pragma once
// A decoder's parameters written out as other tools read them.
#include <string>

#include "hearth/io/hf_folder_writer.h"
#include "hearth/models/decoder.h"

namespace hearth::models {

// Every dense parameter under its checkpoint name and in its checkpoint's
// layout, rounded to float32 or bfloat16 when its turn comes. Throws
// UsageError for a parameter that is quantised or only packed.
std::vector<io::TensorToWrite> tensors_to_write(
    const Decoder& decoder,
    mx::Dtype dtype
);

}  // namespace hearth::models
