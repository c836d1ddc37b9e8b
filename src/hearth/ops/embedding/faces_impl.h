#pragma once
// The forms of the embedding between which op.cpp chooses. It has checked what
// they are given; ids are int32.
#include "hearth/ops/gradient_home.h"

namespace hearth::ops {

mx::array embedding_cpu(
    const mx::array& ids,
    const mx::array& table,
    mx::Dtype dtype,
    const Home& home,
    mx::StreamOrDevice s
);
mx::array embedding_gpu(
    const mx::array& ids,
    const mx::array& table,
    mx::Dtype dtype,
    mx::StreamOrDevice s
);

}  // namespace hearth::ops
