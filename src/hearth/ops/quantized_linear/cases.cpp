// Sizes are {tokens, outputs, inputs}. The weight is an input in float32,
// quantised by `run` and, by MLX, in the reference.
#include <cmath>
#include <deque>

#include "hearth/ops/fake_quant/faces_impl.h"
#include "hearth/ops/op_case.h"
#include "hearth/ops/quantized_linear/op.h"

namespace hearth::ops {
namespace {

using kernels::ScaleType;

// w quantised once, however often a case is run with it: a bench goes round a
// few weights.
const QuantizedWeight& quantized_once(
    const mx::array& w,
    const QuantFormat& format
) {
  struct Entry {
    mx::array source;
    QuantizedWeight weight;
  };
  static std::deque<Entry> entries;
  for (const Entry& e : entries) {
    if (e.source.id() == w.id() && e.weight.format() == format) return e.weight;
  }
  if (!on_cpu({})) {
    // Whoever runs the GPU's face on a CPU wants no kernel of ours launched.
    const auto q = mx::quantize(
        mx::astype(w, mx::float32), format.group, format.bits, "affine"
    );
    entries.push_back(
        {w, QuantizedWeight(format, w.shape(1), {q[0], q[1], q[2]})}
    );
    return entries.back().weight;
  }
  constexpr std::size_t kMost = 8;
  if (entries.size() == kMost) entries.pop_front();
  entries.push_back({w, QuantizedWeight::quantize(w, format)});
  return entries.back().weight;
}

OpCase linear_case(const QuantFormat& format, QuantCompute compute) {
  OpCase c;
  const bool exact = compute == QuantCompute::kExact;
  c.name = "quantized_linear_" + std::to_string(format.bits) + "bit_" +
           (exact ? "exact" : "int8");
  c.primitives = {
      "QuantizedLinear", "QuantizedLinearGrad", "pack_quantized", "quantize"
  };
  c.sizes = {{2, 5, 64}, {1, 1, 64}, {1, 70, 192}, {7, 33, 128}, {40, 70, 320}};
  c.bench_sizes = {{512, 4096, 4096}};
  if (!exact) c.peak = "int8";
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    const float scale = 1 / std::sqrt(static_cast<float>(n[2]));
    return Arrays{
        normal_input({n[0], n[2]}, t, seed),
        normal_input({n[1], n[2]}, at_least_float32(t), seed + 1, scale)
    };
  };
  c.run = [format, compute](const Arrays& v) {
    return Arrays{
        quantized_linear(v[0], quantized_once(v[1], format), compute)
    };
  };
  c.reference = [format](const Arrays& v) {
    return Arrays{
        quantized_linear_reference(v[0], fake_quant_reference(v[1], format))
    };
  };
  c.differentiable = {0};
  // It rounds the weight, too; gpu_test.cpp traces the product alone.
  c.only_builds = false;
  // Rows of W have norm one, so y and what rounding x to 1/127 of its largest
  // (about 3) does to it are known: a standard deviation of 0.007.
  c.float32 = {
      exact ? Tolerance{2e-6, 2e-6} : Tolerance{0.04, 0}, {4e-6, 4e-6}
  };
  c.bfloat16 = {
      exact ? Tolerance{1e-5, 4e-3} : Tolerance{0.04, 4e-3}, {1e-5, 4e-3}
  };
  // Bfloat16 activations take scales of 8 bits, which moves rows of norm 1 by
  // 2^-9 of the largest weight for each column.
  c.gpu_bfloat16 = {{2e-2, 8e-3}, {2e-2, 8e-3}};
  // The weight may not be spoiled, and int8 spreads NaN over a row; see
  // op_test.cpp.
  c.check_special_values = false;
  c.forward_work = [format](const Size& n, mx::Dtype t) {
    const double weights = n[1] * static_cast<double>(format.row_bytes(n[2]));
    const double vectors = double(n[0]) * (n[1] + n[2]);
    return Work{
        weights + vectors * double(mx::size_of(t)), 2.0 * n[0] * n[1] * n[2]
    };
  };
  c.gradient_work = c.forward_work;
  return c;
}

}  // namespace

std::vector<OpCase> quantized_linear_cases() {
  std::vector<OpCase> all;
  for (const int bits : {4, 8}) {
    const QuantFormat f = QuantFormat::affine(bits, 64, ScaleType::kF32);
    all.push_back(linear_case(f, QuantCompute::kExact));
    all.push_back(linear_case(f, QuantCompute::kInt8));
  }
  return all;
}

}  // namespace hearth::ops
