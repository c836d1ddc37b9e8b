#pragma once
// The forms that head_loss() and head_log_probs() choose among: our kernels
// (cpu.cpp) and what a GPU runs (gpu.cpp). All is checked already. The
// definition is declared in op.h.
#include "hearth/ops/head_loss/op.h"

namespace hearth::ops {

decltype(head_loss) head_loss_cpu;
decltype(head_log_probs) head_log_probs_cpu;

// chunk is how many tokens have logits at a time; 0: as many as fit into
// gpu_chunk_bytes.
HeadLoss head_loss_gpu(
    const mx::array& h,
    const mx::array& w,
    const mx::array& targets,
    const std::optional<mx::array>& weights,
    const HeadLossOptions& options,
    const Teacher& teacher,
    mx::StreamOrDevice s,
    int chunk = 0
);
mx::array head_log_probs_gpu(
    const mx::array& h,
    const mx::array& w,
    const mx::array& targets,
    float soft_cap,
    mx::StreamOrDevice s,
    int chunk = 0
);

// Tokens of a chunk: a multiple of 256 whose logits, and what is made of them
// before the gradient is there, take a quarter of what those of all tokens
// would, between 256 MiB and a gibibyte; 8,192 at most, from where on the
// products get no faster.
int gpu_chunk_tokens(
    const LossTerms& terms,
    mx::Dtype activations,
    int vocabulary,
    int tokens_in_all
);

}  // namespace hearth::ops
