#pragma once
// The forms of the rotary embedding between which op.cpp chooses. It has
// checked what they are given; positions are int32, the table float32.
#include "hearth/ops/rope/op.h"

namespace hearth::ops {

decltype(rope) rope_cpu;
decltype(rope) rope_gpu;
decltype(rope_heads) rope_heads_gpu;

}  // namespace hearth::ops
