#pragma once
// What every product has in common: the loops over blocks of rows, groups of
// columns and blocks of depth, and the epilogue of a finished piece of C, from
// scale to gate.
//
// A block of A is a table of 32-bit words: one fp32, two bf16 or four int8.
// Where the depth takes several blocks, `partial` holds the sums between them.
#include "hearth/kernels/gemm.h"
#include "hearth/kernels/simd/vec_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

using Word = std::uint32_t;
// A word at any address, of memory that has another type. A variable must spell
// the type out, since `auto` drops both attributes.
using LooseWord [[gnu::may_alias, gnu::aligned(1)]] = Word;
using LooseInt [[gnu::may_alias]] = std::int32_t;

// Columns in a packed panel.
constexpr int kPanel = kLanes == 16 ? 32 : 16;
constexpr int kPanelVectors = kPanel / kLanes;
constexpr long kGroup = 512;  // columns finished together when k is in blocks

inline long smaller(long a, long b) {
  return a < b ? a : b;
}
inline long round_up(long x, long step) {
  return (x + step - 1) / step * step;
}

// A piece of C: where it is, and whether this block of depth opens or closes
// its sum. `partial` points at the piece's own first element.
struct Sink {
  const GemmArgs* g;
  long i, j;
  bool first, last;
  void* partial;
  long partial_stride;
};

inline bool is_plain(const GemmArgs& g) {
  return g.scale == 1.0f && !g.bias && !g.residual;
}

template <class T>
HEARTH_INLINE void finish_row(
    const GemmArgs& g,
    long i,
    long j,
    const float* sums
) {
  T* c = static_cast<T*>(g.c) + i * g.c_stride + j;
  const T* residual = static_cast<const T*>(g.residual);
  if (residual) residual += i * g.residual_stride + j;
  const F32 scale = splat(g.scale);
  const int columns = static_cast<int>(smaller(kPanel, g.n - j));
  for (int v = 0; v < columns; v += kLanes) {
    const int lanes = columns - v < kLanes ? columns - v : kLanes;
    F32 x = load(sums + v) * scale;
    if (g.bias) x += load(g.bias + j + v, lanes);
    if (residual) x += load(residual + v, lanes);
    if (g.accumulate) x += load(c + v, lanes);
    store(c + v, x, lanes);
  }
}

// Finishes a piece in the general case: any epilogue, any number of columns.
__attribute__((noinline)) void finish_rows(
    const Sink& s,
    const float* sums,
    long stride,
    long rows
) {
  const GemmArgs& g = *s.g;
  for (long r = 0; r < rows; ++r) {
    const float* row = sums + r * stride;
    if (g.c_type == GemmScalar::bf16)
      finish_row<Bf16>(g, s.i + r, s.j, row);
    else
      finish_row<float>(g, s.i + r, s.j, row);
  }
}

__attribute__((noinline)) void finish_rows(
    const Sink& s,
    const LooseInt* sums,
    long stride,
    long rows
) {
  const GemmArgs& g = *s.g;
  const long columns = smaller(kPanel, g.n - s.j);
  for (long r = 0; r < rows; ++r) {
    auto* c = static_cast<std::int32_t*>(g.c) + (s.i + r) * g.c_stride + s.j;
    for (long j = 0; j < columns; ++j) {
      const auto old = g.accumulate ? static_cast<Word>(c[j]) : 0;
      c[j] = static_cast<std::int32_t>(
          static_cast<Word>(sums[r * stride + j]) + old
      );
    }
  }
}

// Gates rows whose columns are all finished.
template <class T>
void gate_rows_of(const GemmArgs& g, GemmRange rows, GemmRange columns) {
  T* c = static_cast<T*>(g.c) + columns.begin;
  gate.of(g.act, c).forward(
      {.dim = columns.end - columns.begin,
       .gate = static_cast<const T*>(g.gate) + columns.begin,
       .gate_stride = g.gate_stride,
       .value = c,
       .value_stride = g.c_stride,
       .y = c,
       .y_stride = g.c_stride,
       .beta = 1,
       .alpha = nullptr,
       .tanh_value = false},
      rows.begin, rows.end
  );
}
inline void gate_rows(const GemmArgs& g, GemmRange rows, GemmRange columns) {
  if (g.c_type == GemmScalar::bf16)
    gate_rows_of<Bf16>(g, rows, columns);
  else
    gate_rows_of<float>(g, rows, columns);
}

// The first product, or one of those added to it.
inline GemmArgs term_of(const GemmArgs& g, std::size_t t) {
  GemmArgs term = g;
  if (t == 0) return term;
  const GemmTerm& more = g.more[t - 1];
  term.a = more.a, term.a_stride = more.a_stride;
  term.k = more.k, term.packed = more.packed;
  return term;
}

// A Core says how deep (kDepth, in elements of k) and how tall (kRows) a block
// is, copies or points to a block of A, and multiplies it with one panel of B.
template <class Core>
void run_range(
    const GemmArgs& g,
    GemmRange rows,
    GemmRange columns,
    void* scratch
) noexcept {
  auto* partial = static_cast<float*>(scratch);
  void* room = partial + Core::kRows * kGroup;
  const bool blocked = g.k > Core::kDepth || !g.more.empty();
  const long group = blocked ? kGroup : round_up(columns.end, kPanel);
  const Core core;
  for (long i = rows.begin; i < rows.end; i += Core::kRows) {
    const long height = smaller(Core::kRows, rows.end - i);
    for (long j0 = columns.begin; j0 < columns.end; j0 += group) {
      const long j1 = smaller(columns.end, j0 + group);
      for (std::size_t t = 0; t <= g.more.size(); ++t) {
        const GemmArgs term = term_of(g, t);
        long k = 0;
        do {
          const long depth = smaller(Core::kDepth, term.k - k);
          const auto a = core.block_of_a(term, i, height, k, depth, room);
          const bool first = t == 0 && k == 0;
          const bool last = t == g.more.size() && k + depth >= term.k;
          for (long j = j0; j < j1; j += kPanel) {
            core.multiply(
                a, height, k, depth,
                Sink{&term, i, j, first, last, partial + (j - j0), kGroup}
            );
          }
          k += depth;
        } while (k < term.k);
      }
    }
    if (g.gate) gate_rows(g, {i, i + height}, columns);
  }
}

template <class Core>
constexpr std::size_t scratch_of() {
  return sizeof(float) * Core::kRows * kGroup + Core::kRoom;
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
