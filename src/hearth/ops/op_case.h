#pragma once
// One table of op cases drives two things: the tests (the reference's gradient
// against central differences in float64, then every kernel table and the GPU's
// face against the reference) and `hearth bench ops`. A primitive that no case
// lists fails a test.
//
// To add an op: write ops/foo/cases.cpp with `std::vector<OpCase> foo_cases()`
// and add it to the two lists of op_cases.cpp.
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hearth/ops/op.h"

namespace hearth::ops {

// |got - want| <= absolute + relative * |want|
struct Tolerance {
  double absolute = 0, relative = 0;
};
struct Tolerances {
  Tolerance value, gradient;
};

// What one evaluation moves and computes at best: every input read once, every
// output written once.
struct Work {
  double bytes = 0, flops = 0;
};

// The dense product an op is: left (m x k) times right (k x n). Transposed
// says how an operand lies in memory; packed, that it may be laid out for the
// machine beforehand.
struct Product {
  int m = 0, n = 0, k = 0;
  bool left_transposed = false, right_transposed = false, right_packed = false;
};

// The dimensions of a problem; what each means is the case's own business.
using Size = std::vector<int>;
using ArraysFunction = std::function<Arrays(const Arrays&)>;

struct OpCase {
  std::string name;
  // Every primitive that run and its gradient launch, by name().
  std::vector<std::string> primitives;
  // Dtypes to check and to time; inputs() is called with each.
  std::vector<mx::Dtype> dtypes = {mx::float32, mx::bfloat16};
  // Checked sizes: tiny, ragged and large ones. The first is the one whose
  // gradient is differenced, so keep it tiny.
  std::vector<Size> sizes;
  // Timed sizes. `peak` names the arithmetic the op is measured against where
  // its dtype does not: int8 for quantised products.
  std::vector<Size> bench_sizes;
  std::string peak;

  // Inputs in the dtypes the op expects when its main operand is `dtype`. The
  // values depend on size and seed alone. Called with float64 too, for which
  // every floating input is float64.
  std::function<Arrays(const Size&, mx::Dtype dtype, std::uint64_t seed)>
      inputs;
  // The op through our kernels, and the plain-MLX composition that defines it.
  // The reference must run in float64 when its inputs are.
  ArraysFunction run, reference;
  // Inputs that have a gradient; empty for an op that has none.
  std::vector<int> differentiable;

  Tolerances float32, bfloat16;
  // Of the GPU's face, where it rounds more often than our kernels do.
  std::optional<Tolerances> gpu_float32, gpu_bfloat16;
  // Whether there is a GPU's face; not where the op is about memory that only
  // our kernels read.
  bool has_gpu = true;
  // Whether run() only builds a graph, as what a training step compiles must;
  // not where it lays out a weight first.
  bool only_builds = true;
  // Of the central difference, in float64, and how near it must come, relative
  // to the largest gradient. Some of MLX's functions are of single precision
  // inside even for float64: their cases take a longer step and allow more.
  double gradient_step = 1e-5, gradient_tolerance = 1e-6;

  // NaN and infinity in an input give NaN and infinity exactly where the
  // reference has them, and gradients that are not finite where its are not.
  bool check_special_values = true;

  // Whether it takes memory; what updates leaves in place does not.
  bool allocates = true;

  // For an op whose run() does more than the op, such as copying the state it
  // updates: prepares once and returns what the bench times in place of run,
  // and in place of its gradient.
  using Prepare = std::function<std::function<void()>(const Size&, mx::Dtype)>;
  Prepare timed, timed_gradient;
  // Null where there is nothing to time.
  std::function<Work(const Size&, mx::Dtype)> forward_work, gradient_work;
  // For rivals that have products alone; null where the op is more than one.
  std::function<Product(const Size&)> forward_product, gradient_product;
};

// Every case, in the order of the bench's report.
std::span<const OpCase> op_cases();

// Helpers for inputs(): normal and uniform values that depend on key alone.
mx::array normal_input(
    const mx::Shape& shape,
    mx::Dtype dtype,
    std::uint64_t seed,
    float scale = 1
);
mx::array uniform_input(
    const mx::Shape& shape,
    mx::Dtype dtype,
    std::uint64_t seed,
    float low = 0,
    float high = 1
);
// Integers in [0, below), int32.
mx::array integer_input(const mx::Shape& shape, int below, std::uint64_t seed);
// A copy of a for run() to update in place: the case's inputs must stay as they
// are.
mx::array leaf_input(const mx::array& a);
// float64 where dtype is float64, else float32: for the inputs an op keeps in
// full precision whatever its main operand is.
mx::Dtype at_least_float32(mx::Dtype dtype);

}  // namespace hearth::ops
