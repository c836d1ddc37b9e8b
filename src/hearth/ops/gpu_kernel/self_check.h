#pragma once
// A GPU shows that our kernels compute there what the definitions say, before
// they are used: on a Mac, where their text has been compiled by nobody yet.
#include "hearth/ops/op.h"

namespace hearth::ops {

// Runs every kernel once on small arrays. False where one does not compile,
// fails, or gives other values; MLX's ops are used then.
bool gpu_kernels_agree(mx::StreamOrDevice s);

}  // namespace hearth::ops
