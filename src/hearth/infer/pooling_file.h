#pragma once
// How a model that was made for embeddings wants them pooled.
#include <string>

#include "hearth/infer/pooling.h"

namespace hearth::infer {

// What 1_Pooling/config.json says, where models that were made for embeddings
// carry it; the mean where there is none. Throws FormatError for a file that is
// none, UsageError for a way of pooling that is not one of ours.
Pooling pooling_of_model(const std::string& folder);

}  // namespace hearth::infer
