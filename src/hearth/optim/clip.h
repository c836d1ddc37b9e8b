#pragma once
// Clipping by the norm of all gradients together.
#include <span>

#include <mlx/mlx.h>

namespace hearth::optim {
namespace mx = mlx::core;

// Over evaluated gradients; does not depend on the number of threads.
double global_norm(std::span<const mx::array> gradients);

// What gradients of that norm are multiplied by so that it is at most limit;
// 1 when limit is 0. NaN for a norm that is not finite.
double clip_factor(double norm, double limit);

}  // namespace hearth::optim
