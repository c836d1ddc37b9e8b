#pragma once
// What a body of a GPU kernel finds where an ordinary compiler compiles it: one
// thread an item. gpu_kernel.cpp has the same for CUDA and Metal, as text.
#include <cmath>
#include <limits>

#define GPU_MEMORY
#define GPU_FUNCTION
#define UNROLL
#define NO_UNROLL

namespace hearth::ops::gpu_body {

// As the bodies name it.
inline constexpr int LANES = 1;  // NOLINT(readability-identifier-naming)
inline constexpr int lane = 0;

template <class T>
struct Eight {
  T v[8];
};
template <class T>
Eight<T> load8(const T* from) {
  Eight<T> out;
  for (int i = 0; i < 8; ++i) out.v[i] = from[i];
  return out;
}
template <class T>
void store8(T* to, const Eight<T>& from) {
  for (int i = 0; i < 8; ++i) to[i] = from.v[i];
}
inline float lane_sum(float x) {
  return x;
}
inline float swap_lanes(float x, int /*apart*/) {
  return x;
}
inline void wait_for_all() {}
inline float nan_value() {
  return std::numeric_limits<float>::quiet_NaN();
}
inline float sqrt_of(float x) {
  return std::sqrt(x);
}
inline float exp_of(float x) {
  return std::exp(x);
}
inline float tanh_of(float x) {
  return std::tanh(x);
}

}  // namespace hearth::ops::gpu_body
