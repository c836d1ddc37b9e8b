#pragma once
// What Sampler::pick() does, for many rows at once and without the host:
// temperature, top-k, top-p, min-p and a draw. Sums are float32, so a draw that
// falls between two tokens may choose the other one.
#include <span>

#include <mlx/mlx.h>

#include "hearth/infer/engine/runner.h"
#include "hearth/infer/sampling_options.h"

namespace hearth::infer {
namespace mx = mlx::core;

// uint32 [rows] of logits [rows, vocabulary] and of how each row draws, as
// draw_rows() gives it. Only `ranked` heeds top-k and top-p, at the cost of
// sorting; it must be given where one of the rows is (Draw::ranked).
mx::array draw(const mx::array& logits, const mx::array& rows, bool ranked);

// float32 [rows, columns of a Draw]; rows beyond those given take the
// likeliest.
mx::array draw_rows(std::span<const Draw> draws, int rows);

}  // namespace hearth::infer
