#pragma once
// How fast each pair of a rotary embedding rotates with position, and how the
// long-context variants change it. Plain numbers; the op takes the table that
// rope_table() makes of them.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <mlx/mlx.h>

namespace hearth::ops {
namespace mx = mlx::core;

enum class RopeScaling { none, linear, dynamic, llama3, yarn };
// As a model's config.json names them; "default" is none. Throws UsageError.
RopeScaling rope_scaling_named(std::string_view name);

struct RopeConfig {
  int dims = 0;  // rotated elements of a head, even
  double base = 10000;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1;
  // The length the model was trained at before scaling: dynamic, llama3, yarn.
  int original_length = 0;
  // dynamic: the length in use; up to original_length nothing changes.
  int length = 0;
  // llama3
  double low_freq_factor = 1, high_freq_factor = 4;
  // yarn: full rotations over original_length beyond which a pair is left
  // alone, and below which it is fully interpolated.
  double beta_fast = 32, beta_slow = 1;
  // yarn: the bounds between those are rounded to whole pairs.
  bool truncate = true;
  // yarn: what cosines and sines are multiplied with; by default
  // 0.1 ln(factor) + 1, or the ratio of the two below where they are given.
  std::optional<double> attention_factor;
  double mscale = 0, mscale_all_dim = 0;

  bool operator==(const RopeConfig&) const = default;
};

struct RopeFrequencies {
  std::vector<double> inverse;  // radians a position, one for each pair
  double scale = 1;             // of cosines and sines
};
// Throws UsageError when the config cannot be.
RopeFrequencies rope_frequencies(const RopeConfig& config);

// float32 [positions, dims]: row p has the cosines of every pair at position p,
// then the sines, computed in double precision.
mx::array rope_table(const RopeFrequencies& frequencies, int positions);

}  // namespace hearth::ops
