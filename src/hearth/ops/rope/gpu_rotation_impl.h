#pragma once
// What the kernels of the rotary embedding share, as a CPU compiles it.
#include "hearth/ops/gpu_kernel/body_impl.h"

namespace hearth::ops::gpu_body {
#include "hearth/ops/rope/gpu_rotation.inc"
}
