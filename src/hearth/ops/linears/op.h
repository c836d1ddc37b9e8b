#pragma once
// Linear layers that read one input: queries, keys and values; a gate and what
// it gates; a layer and its adapter.
#include <optional>
#include <vector>

#include "hearth/ops/gradient_home.h"
#include "hearth/ops/linear/op.h"

namespace hearth::ops {

// scale * (x a[r, k]^T) b[n, r]^T.
struct LowRank {
  mx::array a, b;
  float scale = 1;
  std::shared_ptr<const PackedWeight> packed_a, packed_b;
  Home home_a, home_b;
};

struct LinearPart {
  std::optional<mx::array> w;  // none: packed is all there is of it
  std::optional<mx::array> bias;
  std::shared_ptr<const PackedWeight> packed;
  std::optional<LowRank> adapter;
  Home home;  // of w's gradient; null: it has none
};

// The most parts and adapters, each counted as one.
constexpr std::size_t kMostLinears = 1 + kernels::kMaxGemmTerms;

// What linear gives for every part, its adapter added before anything is
// rounded but x a^T. The gradient of x is one product over all of them, summed
// in float32, and x is packed once for those of the weights; those of a and b
// are float32 like a weight's. A weight that is only packed has no gradient,
// and asks for a CPU stream. Throws UsageError for more than kMostLinears.
std::vector<mx::array> linears(
    const mx::array& x,
    const std::vector<LinearPart>& parts,
    mx::StreamOrDevice s = {}
);
std::vector<mx::array> linears_reference(
    const mx::array& x,
    const std::vector<LinearPart>& parts,
    mx::StreamOrDevice s = {}
);

}  // namespace hearth::ops
