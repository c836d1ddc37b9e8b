#include "hearth/ops/quantized_linear/weight.h"

#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/ops/leaf.h"
#include "hearth/ops/quantized_linear/gpu_weight.h"

namespace hearth::ops {
namespace {

using kernels::QuantKind;
using kernels::ScaleType;

std::string text_of(mx::Dtype dtype) {
  std::ostringstream text;
  text << dtype;
  return text.str();
}

mx::Dtype dtype_of(ScaleType type) {
  return type == ScaleType::kF16    ? mx::float16
         : type == ScaleType::kBf16 ? mx::bfloat16
                                    : mx::float32;
}

bool affine(const QuantFormat& f) {
  return f.kind == QuantKind::kAffine;
}

mx::Dtype code_dtype(const QuantFormat& f) {
  return affine(f) ? mx::uint32 : mx::uint8;
}

int code_columns(const QuantFormat& f, long cols) {
  return static_cast<int>(f.code_bytes(cols) / mx::size_of(code_dtype(f)));
}

void check_array(
    const char* what,
    const mx::array& a,
    mx::Dtype dtype,
    const mx::Shape& shape
) {
  if (a.dtype() == dtype && a.shape() == shape) return;
  throw UsageError(
      fmt::format(
          "[ops.QuantizedWeight] {} must be {} [{}], got {} [{}]", what,
          text_of(dtype), fmt::join(shape, ", "), text_of(a.dtype()),
          fmt::join(a.shape(), ", ")
      )
  );
}

void check_optional(
    const char* what,
    const std::optional<mx::array>& a,
    std::size_t columns,
    const QuantFormat& f,
    int rows
) {
  if ((columns != 0) != a.has_value()) {
    throw UsageError(
        fmt::format(
            "[ops.QuantizedWeight] {} {} {}", f.name(),
            columns != 0 ? "needs" : "has no", what
        )
    );
  }
  if (a) {
    check_array(what, *a, dtype_of(f.scale), {rows, static_cast<int>(columns)});
  }
}

void check_arrays(const QuantFormat& f, int cols, const QuantizedArrays& a) {
  f.check("ops.QuantizedWeight", cols);
  if (a.codes.ndim() != 2 || a.codes.shape(0) == 0) {
    throw UsageError("[ops.QuantizedWeight] codes must be a matrix with rows");
  }
  const int rows = a.codes.shape(0);
  check_array("codes", a.codes, code_dtype(f), {rows, code_columns(f, cols)});
  check_optional("scales", a.scales, f.scale_count(cols), f, rows);
  check_optional("biases", a.biases, f.bias_count(cols), f, rows);
}

// Evaluated arrays as bytes.
std::span<std::uint8_t> bytes_of(mx::array& a) {
  return {a.data<std::uint8_t>(), a.nbytes()};
}
std::span<std::uint8_t> bytes_of(std::optional<mx::array>& a) {
  return a ? bytes_of(*a) : std::span<std::uint8_t>();
}

QuantizedArrays dense_arrays(const QuantizedArrays& a) {
  const auto cpu = mx::Device::cpu;
  QuantizedArrays out{dense(a.codes, cpu), {}, {}};
  if (a.scales) out.scales = dense(*a.scales, cpu);
  if (a.biases) out.biases = dense(*a.biases, cpu);
  Arrays all{out.codes};
  if (out.scales) all.push_back(*out.scales);
  if (out.biases) all.push_back(*out.biases);
  mx::eval(all);
  return out;
}

// Empty arrays of a matrix in the file's layout.
QuantizedArrays make_arrays(const QuantFormat& f, int rows, int cols) {
  const MemoryZone zone = MemoryZone::named("weights");
  QuantizedArrays a{
      make_leaf({rows, code_columns(f, cols)}, code_dtype(f), zone), {}, {}
  };
  const auto count = [](std::size_t n) { return static_cast<int>(n); };
  if (const int n = count(f.scale_count(cols)); n != 0) {
    a.scales = make_leaf({rows, n}, dtype_of(f.scale), zone);
  }
  if (const int n = count(f.bias_count(cols)); n != 0) {
    a.biases = make_leaf({rows, n}, dtype_of(f.scale), zone);
  }
  return a;
}

mx::Stream cpu_stream() {
  return mx::default_stream(mx::Device::cpu);
}

mx::array widened(const QuantFormat& f, int cols, QuantizedArrays& a) {
  const int rows = a.codes.shape(0);
  mx::array w =
      make_leaf({rows, cols}, mx::float32, MemoryZone::named("scratch"));
  run_on_stream("dequantize", cpu_stream(), [&](const Execution& run) {
    kernels::dequantize_matrix(
        run.kernels, run.pool, f,
        {bytes_of(a.codes), bytes_of(a.scales), bytes_of(a.biases)}, rows, cols,
        {w.data<float>(), w.size()}
    );
  });
  return w;
}

}  // namespace

QuantizedWeight::QuantizedWeight(
    const QuantFormat& format,
    int cols,
    const QuantizedArrays& arrays,
    mx::StreamOrDevice s
) {
  check_arrays(format, cols, arrays);
  layout_ = kernels::packed_layout(format, arrays.codes.shape(0), cols);
  hold(arrays, s);
}

void QuantizedWeight::hold(
    const QuantizedArrays& arrays,
    mx::StreamOrDevice s
) {
  if (!on_cpu(s)) {
    if (auto held = GpuQuantized::of(format(), cols(), arrays)) {
      gpu_ = std::make_shared<const GpuQuantized>(std::move(*held));
      return;
    }
  }
  QuantizedArrays a = dense_arrays(arrays);
  if (!on_cpu(s)) {
    arrays_ = a;
    // The host has just written the floats, so it narrows them too.
    wide_ =
        mx::astype(widened(format(), cols(), a), mx::bfloat16, mx::Device::cpu);
    wide_->eval();
    return;
  }
  packed_ = make_leaf(
      {static_cast<int>(layout_.panels), static_cast<int>(layout_.panel_bytes)},
      mx::uint8, MemoryZone::named("weights"), AlignedBuffer::Kept::long_time
  );
  run_on_stream("pack_quantized", cpu_stream(), [&](const Execution& run) {
    kernels::pack_matrix(
        run.pool, layout_,
        {bytes_of(a.codes), bytes_of(a.scales), bytes_of(a.biases)},
        bytes_of(*packed_)
    );
  });
}

QuantizedWeight QuantizedWeight::quantize(
    const mx::array& w,
    const QuantFormat& format,
    mx::StreamOrDevice s
) {
  if (w.ndim() != 2 || w.shape(0) == 0 ||
      (w.dtype() != mx::float32 && w.dtype() != mx::bfloat16)) {
    throw UsageError(
        fmt::format(
            "[ops.QuantizedWeight] w must be a float32 or bfloat16 matrix, got "
            "{} [{}]",
            text_of(w.dtype()), fmt::join(w.shape(), ", ")
        )
    );
  }
  const int rows = w.shape(0), cols = w.shape(1);
  format.check("ops.QuantizedWeight", cols);
  auto source =
      dense(mx::astype(w, mx::float32, mx::Device::cpu), mx::Device::cpu);
  source.eval();
  QuantizedArrays a = make_arrays(format, rows, cols);
  run_on_stream("quantize", cpu_stream(), [&](const Execution& run) {
    kernels::quantize_matrix(
        run.kernels, run.pool, format, {source.data<float>(), source.size()},
        rows, cols, {bytes_of(a.codes), bytes_of(a.scales), bytes_of(a.biases)}
    );
  });
  return QuantizedWeight(format, cols, a, s);
}

QuantizedWeight QuantizedWeight::of_packed(
    const kernels::PackedLayout& layout,
    mx::array packed
) {
  check_array(
      "packed", packed, mx::uint8,
      {static_cast<int>(layout.panels), static_cast<int>(layout.panel_bytes)}
  );
  QuantizedWeight w;
  w.layout_ = layout;
  w.packed_ = std::move(packed);
  return w;
}

std::size_t QuantizedWeight::nbytes() const {
  if (packed_) return packed_->nbytes();
  if (gpu_) return gpu_->nbytes();
  if (wide_) return wide_->nbytes() + arrays_->codes.nbytes();
  return layout_.format.row_bytes(layout_.cols) *
         static_cast<std::size_t>(layout_.rows);
}

QuantizedArrays QuantizedWeight::arrays() const {
  if (gpu_) return gpu_->arrays();
  if (arrays_) return *arrays_;
  QuantizedArrays a = make_arrays(format(), rows(), cols());
  run_on_stream("unpack_quantized", cpu_stream(), [&](const Execution& run) {
    kernels::unpack_matrix(
        run.pool, layout_, {packed_->data<std::uint8_t>(), packed_->nbytes()},
        {bytes_of(a.codes), bytes_of(a.scales), bytes_of(a.biases)}
    );
  });
  return a;
}

mx::array QuantizedWeight::dequantize(mx::Dtype dtype) const {
  with_dtype("ops.QuantizedWeight", dtype, [](auto*) {});
  QuantizedArrays a = dense_arrays(arrays());
  return mx::astype(widened(format(), cols(), a), dtype, mx::Device::cpu);
}

}  // namespace hearth::ops
