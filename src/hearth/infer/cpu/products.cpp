#include "hearth/infer/cpu/products.h"

#include <algorithm>
#include <array>

#include "hearth/kernels/gemm_plan.h"
#include "hearth/kernels/quant/product.h"

namespace hearth::infer {
namespace {

using kernels::Bf16;
using kernels::GemmScalar;
using kernels::PackedLayout;
using kernels::QuantCompute;
using kernels::QuantMatrix;

// Columns are shared out in multiples of this: the columns of a dense panel of
// any table, or of two quantised panels.
constexpr long kColumns = 32;
// With more rows than this, threads share the rows; with fewer, the columns of
// the weights.
constexpr long kFewRows = 64;
// Bytes of widened columns that stay in the second-level cache beside the rows.
constexpr long kWideBytes = 1L << 20;

std::size_t bytes(long n) {
  return static_cast<std::size_t>(n);
}
std::size_t padded(std::size_t n) {
  constexpr std::size_t kLine = 64;
  return (n + kLine - 1) / kLine * kLine;
}

// Whether rows rounded for one serve the other.
bool same_rounding(const PackedLayout& a, const PackedLayout& b) {
  return a.columns == b.columns && a.unit == b.unit && a.group == b.group &&
         a.offset == b.offset && a.has_min == b.has_min;
}

// The first of the matrices whose rounded rows serve the i-th too.
std::size_t first_alike(
    std::span<const CpuMatrix* const> matrices,
    std::size_t i
) {
  std::size_t j = 0;
  while (j < i && (!matrices[j]->quantized() ||
                   !same_rounding(*matrices[j]->layout, *matrices[i]->layout)))
    ++j;
  return j;
}

std::size_t rounded_bytes(const PackedLayout& l, long rows) {
  const std::size_t n = bytes(rows), units = bytes(l.columns / l.unit);
  return padded(n * bytes(l.columns)) + 2 * padded(n * units * 4) +
         padded(n * bytes(l.groups) * 4);
}

long wide_columns(long k) {
  return std::max(kWideBytes / (2 * k) / kColumns * kColumns, kColumns);
}

const void* row_at(const ProductInput& in, long row) {
  const long size = in.bf16 ? 2 : 4;
  return static_cast<const std::byte*>(in.rows) + row * in.stride * size;
}

// Shares out columns for few rows: in equal parts of all the matrices one after
// the other, or the same part of each. Calls each(i, begin, end) for every
// matrix.
template <class Each>
void for_shares(
    std::span<const CpuMatrix* const> matrices,
    bool alike,
    int worker,
    int workers,
    const Each& each
) {
  const auto units = [](const CpuMatrix& m) {
    return (m.n + kColumns - 1) / kColumns;
  };
  long all = 0;
  for (const CpuMatrix* m : matrices) all += units(*m);
  if (alike) all = units(*matrices[0]);
  const Range own = partition(bytes(all), 1, worker, workers);
  long before = 0;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const long n = matrices[i]->n, count = units(*matrices[i]);
    const long first = std::max(static_cast<long>(own.begin) - before, 0L);
    const long last = std::min(static_cast<long>(own.end) - before, count);
    const long begin = std::min(first * kColumns, n);
    each(i, begin, std::max(std::min(last * kColumns, n), begin));
    if (!alike) before += count;
  }
}

}  // namespace

CpuProducts::CpuProducts(
    const CpuModel& model,
    const ops::Execution& run,
    long rows,
    bool invariant
)
    : model_(model), run_(run), invariant_(invariant) {
  const MemoryZone zone = MemoryZone::named("infer scratch");
  const auto& gemm = *run.kernels.gemm;
  std::size_t own = std::max(
      {kScratch, gemm.bf16.scratch_bytes, gemm.bf16_widened.scratch_bytes,
       gemm.f32.scratch_bytes}
  );
  std::size_t rounded = 0, widened = 0, wide = 0;
  const auto add = [&](const CpuMatrix& m) {
    if (!m.quantized()) return;
    for (const auto way : {QuantCompute::kInt8, QuantCompute::kExact}) {
      own = std::max(
          own, kernels::quant_product_scratch(*m.layout, rows, way, 1)
      );
    }
    rounded = std::max(rounded, rounded_bytes(*m.layout, rows));
    widened = std::max(widened, bytes(rows * m.k) * sizeof(float));
    wide = std::max(wide, bytes(wide_columns(m.k) * (m.k + kColumns) * 2));
  };
  for (const CpuLayer& l : model.layers) {
    for (const CpuMatrix* m : l.matrices()) add(*m);
  }
  add(model.head);
  own_ = padded(own) + padded(wide);
  const auto workers = static_cast<std::size_t>(run.pool.size());
  scratch_ = AlignedBuffer(zone, own_ * workers);
  constexpr std::size_t kAtOnce = 3;  // q, k, v of three formats
  rounded_ = AlignedBuffer(zone, kAtOnce * rounded);
  widened_ = AlignedBuffer(zone, widened);
}

std::byte* CpuProducts::scratch(int worker) noexcept {
  return scratch_.data() + own_ * static_cast<unsigned>(worker);
}

// Tiles multiply sixteen rows in the time of one, but take longer to start; for
// a single row the time is that of reading the weights, which tiles do no
// faster than vectors.
const kernels::GemmFamily& CpuProducts::family(
    const CpuMatrix& m,
    long rows
) const {
  const auto& gemm = *run_.kernels.gemm;
  if (!model_.bf16) return gemm.f32;
  const auto& best = kernels::bf16_gemm(run_.kernels);
  constexpr long kVectorRows = 4;
  const bool tiles = best.rows > gemm.bf16_widened.rows;
  if (tiles && !invariant_ && rows <= kVectorRows && m.packed != nullptr) {
    return gemm.bf16_widened;
  }
  return best;
}

CpuProducts::Rounded CpuProducts::rounded_for(
    std::span<const CpuMatrix* const> matrices,
    std::size_t i,
    long rows
) noexcept {
  const std::size_t first = first_alike(matrices, i);
  std::byte* p = rounded_.data();
  for (std::size_t j = 0; j < first; ++j) {
    if (matrices[j]->quantized() && first_alike(matrices, j) == j) {
      p += rounded_bytes(*matrices[j]->layout, rows);
    }
  }
  const PackedLayout& l = *matrices[i]->layout;
  const std::size_t n = bytes(rows), units = bytes(l.columns / l.unit);
  const auto take = [&](std::size_t size) {
    std::byte* at = p;
    p += padded(size);
    return at;
  };
  Rounded r;
  r.layout = &l, r.first = first == i;
  r.at.codes = reinterpret_cast<std::int8_t*>(take(n * bytes(l.columns)));
  r.at.scales = reinterpret_cast<float*>(take(n * units * 4));
  r.at.starts = reinterpret_cast<std::int32_t*>(take(n * units * 4));
  r.at.sums = reinterpret_cast<float*>(p);
  return r;
}

void CpuProducts::prepare(
    const ProductInput& in,
    std::span<const CpuMatrix* const> matrices,
    long begin,
    long end
) noexcept {
  if (begin >= end || in.way == QuantWay::wide) return;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    if (!matrices[i]->quantized()) continue;
    if (in.way == QuantWay::int8) {
      const Rounded r = rounded_for(matrices, i, in.count);
      if (!r.first) continue;
      const QuantMatrix x{const_cast<void*>(in.rows), in.stride, in.bf16};
      run_.kernels.quant_matmul->round_activations(
          *r.layout, x, begin, end, r.at
      );
    } else if (in.bf16) {
      const long k = matrices[i]->k;
      for (long row = begin; row < end; ++row) {
        const auto* x = static_cast<const Bf16*>(row_at(in, row));
        float* y = widened_.as<float>().data() + row * k;
        for (long c = 0; c < k; ++c) {
          y[c] = __builtin_bit_cast(float, std::uint32_t{x[c].bits} << 16);
        }
      }
    }
  }
}

void CpuProducts::dense(
    int worker,
    const ProductInput& in,
    const CpuMatrix& m,
    const ProductOutput& out,
    const Part& part
) noexcept {
  const auto& f = family(m, in.count);
  kernels::GemmArgs g{
      .m = in.count,
      .n = m.n,
      .k = m.k,
      .a = in.rows,
      .a_stride = in.stride,
      .packed = m.packed->forward(),
      .c = out.data,
      .c_stride = out.stride,
      .c_type = out.bf16 ? GemmScalar::bf16 : GemmScalar::f32,
      .accumulate = out.adds,
      .bias = m.bias
  };
  f.run(
      g, {part.row_begin, part.row_end}, {part.begin, part.end}, scratch(worker)
  );
}

void CpuProducts::wide(
    int worker,
    const ProductInput& in,
    const CpuMatrix& m,
    const ProductOutput& out,
    const Part& part
) noexcept {
  const auto& f = family(m, in.count);
  const auto& kernels = *run_.kernels.quant_matmul;
  std::byte* panels = scratch(worker) + own_ -
                      padded(bytes(wide_columns(m.k) * (m.k + kColumns) * 2));
  const long step = wide_columns(m.k), size = out.bf16 ? 2 : 4;
  for (long c = part.begin; c < part.end; c += step) {
    const long n = std::min(step, part.end - c);
    const long first = c / PackedLayout::kPanelRows;
    const long last = std::min(
        (c + n + PackedLayout::kPanelRows - 1) / PackedLayout::kPanelRows,
        m.layout->panels
    );
    kernels.widen(*m.layout, m.codes, first, last, f.columns, panels);
    const kernels::GemmArgs g{
        .m = in.count,
        .n = n,
        .k = m.k,
        .a = in.rows,
        .a_stride = in.stride,
        .packed = panels,
        .c = static_cast<std::byte*>(out.data) + c * size,
        .c_stride = out.stride,
        .c_type = out.bf16 ? GemmScalar::bf16 : GemmScalar::f32,
        .accumulate = out.adds,
        .bias = m.bias == nullptr ? nullptr : m.bias + c
    };
    f.run(g, {part.row_begin, part.row_end}, {0, n}, scratch(worker));
  }
}

void CpuProducts::quantized(
    int worker,
    const ProductInput& in,
    const Rounded& rounded,
    const CpuMatrix& m,
    const ProductOutput& out,
    const Part& part
) noexcept {
  const auto& kernels = *run_.kernels.quant_matmul;
  const long first = part.begin / PackedLayout::kPanelRows;
  const long last = std::min(
      (part.end + PackedLayout::kPanelRows - 1) / PackedLayout::kPanelRows,
      m.layout->panels
  );
  const QuantMatrix y{out.data, out.stride, out.bf16, out.adds, m.bias};
  if (in.way == QuantWay::int8) {
    kernels.int8(
        *m.layout, m.codes, first, last, rounded.at, in.count, y,
        scratch(worker)
    );
  } else {
    const bool own = !in.bf16;
    kernels.exact(
        *m.layout, m.codes, first, last,
        own ? static_cast<const float*>(in.rows) : widened_.as<float>().data(),
        own ? in.stride : m.k, in.count, y, scratch(worker)
    );
  }
}

void CpuProducts::adapt(
    int worker,
    const ProductInput& in,
    const CpuMatrix& m,
    const ProductOutput& out,
    const Part& part
) noexcept {
  for (const AdapterRows& rows : in.adapters) {
    const CpuLora& lora = m.adapters[static_cast<std::size_t>(rows.adapter)];
    if (lora.a == nullptr) continue;
    const long begin = std::max(rows.begin, part.row_begin);
    const long end = std::min(rows.end, part.row_end);
    const auto& f = lora.a->family();
    const long rank = lora.a->n();
    // In pieces that the end of the scratch has room for.
    const auto inner_bytes = static_cast<long>(kScratch / 4);
    std::byte* inner = scratch(worker) + padded(f.scratch_bytes);
    const long step = std::max(inner_bytes / (rank * 4), 1L);
    for (long r = begin; r < end; r += step) {
      const long n = std::min(step, end - r);
      kernels::GemmArgs down{
          .m = n,
          .n = rank,
          .k = m.k,
          .a = row_at(in, r),
          .a_stride = in.stride,
          .packed = lora.a->forward(),
          .c = inner,
          .c_stride = rank,
          .c_type = f.operand,
          .scale = lora.scale
      };
      f.run(down, {0, n}, {0, rank}, scratch(worker));
      const long size = out.bf16 ? 2 : 4;
      kernels::GemmArgs up{
          .m = n,
          .n = m.n,
          .k = rank,
          .a = inner,
          .a_stride = rank,
          .packed = lora.b->forward(),
          .c = static_cast<std::byte*>(out.data) + r * out.stride * size,
          .c_stride = out.stride,
          .c_type = out.bf16 ? GemmScalar::bf16 : GemmScalar::f32,
          .accumulate = true
      };
      f.run(up, {0, n}, {part.begin, part.end}, scratch(worker));
    }
  }
}

void CpuProducts::one(
    int worker,
    const ProductInput& in,
    std::span<const CpuMatrix* const> matrices,
    std::size_t i,
    const ProductOutput& out,
    const Part& part
) noexcept {
  if (part.row_begin >= part.row_end || part.begin >= part.end) return;
  const CpuMatrix& m = *matrices[i];
  if (!m.quantized()) {
    dense(worker, in, m, out, part);
  } else if (in.way == QuantWay::wide) {
    wide(worker, in, m, out, part);
  } else {
    quantized(worker, in, rounded_for(matrices, i, in.count), m, out, part);
  }
  if (!in.adapters.empty() && !m.adapters.empty()) {
    adapt(worker, in, m, out, part);
  }
}

std::span<const std::byte> CpuProducts::weights(
    const CpuMatrix& m,
    long rows,
    long begin,
    long end
) const noexcept {
  const auto slice = [&](const std::byte* first, std::size_t all, long panel) {
    // Panels of so many columns lie one after the other.
    const long panels = (m.n + panel - 1) / panel;
    const std::size_t each = all / bytes(panels);
    return std::span(first, all)
        .subspan(
            bytes(begin / panel) * each,
            bytes((end + panel - 1) / panel - begin / panel) * each
        );
  };
  if (m.quantized()) {
    return slice(
        reinterpret_cast<const std::byte*>(m.codes), m.layout->bytes(),
        PackedLayout::kPanelRows
    );
  }
  return slice(
      m.packed->forward(), m.packed->forward_bytes(), family(m, rows).columns
  );
}

void CpuProducts::note_next(
    int worker,
    long rows,
    std::span<const CpuMatrix* const> matrices,
    bool alike,
    ReadAhead& ahead
) const noexcept {
  ahead.clear();
  if (rows > kFewRows) return;
  for_shares(
      matrices, alike, worker, run_.pool.size(),
      [&](std::size_t i, long begin, long end) {
        if (begin < end) ahead.add(weights(*matrices[i], rows, begin, end));
      }
  );
}

CpuProducts::Part CpuProducts::multiply(
    int worker,
    const ProductInput& in,
    std::span<const CpuMatrix* const> matrices,
    std::span<const ProductOutput> outputs,
    bool alike
) noexcept {
  const int workers = run_.pool.size();
  const bool any_quantized = std::ranges::any_of(matrices, [](const auto* m) {
    return m->quantized();
  });
  Part part{0, in.count, 0, 0};
  if (in.count > kFewRows && !any_quantized) {
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      const auto& f = family(*matrices[i], in.count);
      const auto grid =
          kernels::gemm_grid(f, in.count, matrices[i]->n, workers);
      const auto own =
          kernels::gemm_part(f, in.count, matrices[i]->n, grid, worker);
      part = {own.rows.begin, own.rows.end, own.columns.begin, own.columns.end};
      one(worker, in, matrices, i, outputs[i], part);
    }
    return part;
  }
  for_shares(
      matrices, alike, worker, workers,
      [&](std::size_t i, long begin, long end) {
        part.begin = begin, part.end = end;
        one(worker, in, matrices, i, outputs[i], part);
      }
  );
  return part;
}

}  // namespace hearth::infer
