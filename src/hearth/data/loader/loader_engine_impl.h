#pragma once
// Shared by the parts of the loader.
#include "hearth/data/loader/loader.h"

namespace hearth::data {

// Fills in what follows from other values, and checks the whole.
LoaderConfig complete_config(LoaderConfig config);

}  // namespace hearth::data
