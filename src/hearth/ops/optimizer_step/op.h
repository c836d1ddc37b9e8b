#pragma once
// One optimiser step of one parameter: master weight and state are leaves,
// updated in place in one pass over memory, and the copies that compute uses
// are refreshed in the same pass. Runs on the stream's thread when all that was
// sent there has run, and returns when it is done. On a GPU the same step runs
// there as a graph (device.h) whose results take the leaves' place; it returns
// when that is sent.
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hearth/kernels/optim.h"
#include "hearth/ops/op.h"

namespace hearth::ops {

// All arrays are evaluated and row-major. The gradient is float32 or bfloat16,
// the weight float32.
struct Parameter {
  mx::array weight, gradient;
  // Applied to the gradient first: 1/tokens, clipping.
  float gradient_scale = 1;
  // The bfloat16 copy of the weight, refreshed if there.
  std::optional<mx::array> copy = {};
  // Called by the thread that has updated elements [begin, end), which are
  // warm in its cache: packs them for the kernels. begin is a multiple of
  // `grain` (a multiple of 256: rows of a tile times the row's length).
  std::function<void(const Execution&, std::size_t begin, std::size_t end)>
      refresh = {};
  std::size_t grain = 32768;
};

// An array of the state that a step keeps for a parameter, before it is made:
// zero at first.
struct StateArray {
  std::string name;
  mx::Shape shape;
  mx::Dtype dtype = mx::float32;

  std::size_t elements() const;
  std::size_t bytes() const { return elements() * mx::size_of(dtype); }
};
using StateArrays = std::vector<StateArray>;
Arrays make_state(const StateArrays& described, MemoryZone zone);

struct AdamW {
  float lr = 1e-3f, beta1 = 0.9f, beta2 = 0.999f, eps = 1e-8f, decay = 0.01f;
};
// step counts from 1. m and v are float32 leaves, zero at first.
void adamw_step(
    const AdamW& hyper,
    long step,
    const Parameter& p,
    mx::array& m,
    mx::array& v
);

// The same with states of 8 bits in blocks of 256 (see kernels/optim.h): 2
// bytes a weight and 8 a block in place of 8 bytes a weight.
struct AdamW8State {
  mx::array m, v;              // int8 and uint8, one element a weight
  mx::array m_scale, v_scale;  // float32, one a block
};
// In the order of the members.
StateArrays adamw8_state(std::size_t elements);
AdamW8State make_adamw8_state(std::size_t elements, MemoryZone zone);
void adamw8_step(
    const AdamW& hyper,
    long step,
    const Parameter& p,
    AdamW8State& state
);

struct Lion {
  float lr = 1e-4f, beta1 = 0.9f, beta2 = 0.99f, decay = 0.01f;
};
void lion_step(const Lion& hyper, const Parameter& p, mx::array& m);

// Muon's first part: m = mu m + g, and the update to orthogonalise, g + mu m
// with Nesterov or m without, written to `update` (float32).
void momentum_step(
    float mu,
    bool nesterov,
    const mx::array& gradient,
    float gradient_scale,
    mx::array& m,
    mx::array& update
);

// Muon's second part: the nearest matrix with singular values near 1, by steps
// of a Newton-Schulz iteration of the fifth order on x / |x|. product gives
// a b^T of two row-major matrices, as a linear layer does; the caller brings
// the fast one.
mx::array orthogonalize(
    const mx::array& x,
    int steps,
    const std::function<mx::array(const mx::array&, const mx::array&)>& product,
    mx::StreamOrDevice s = {}
);

}  // namespace hearth::ops
