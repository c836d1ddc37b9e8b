// A decoding step's attention as kernels of ours: rotation, write and attention
// of a row are one. Where the keys are many and the rows are few, several items
// share a row's keys, and a second kernel joins what they found.
#include <algorithm>
#include <bit>
#include <cmath>

#include "hearth/ops/gpu_kernel/body_impl.h"
#include "hearth/ops/gpu_kernel/gpu_kernel.h"
#include "hearth/ops/paged_attention/faces_impl.h"

namespace hearth::ops {
namespace gpu_body {
#include "hearth/ops/paged_attention/gpu_rotated.inc"
}

namespace {

constexpr int kRowLanes = 256, kJoinLanes = 32;
// What Metal has for the threads of an item.
constexpr int kSharedFloats = 32 * 1024 / 4;
// Elements of queries, and as many sums, that a thread holds at most.
constexpr int kHeldElements = 64;
// What an ordinary compiler, whose one thread has whole heads, holds.
constexpr int kMostHeads = 8, kMostPacks = kMostPagedDim / 8;

struct RowsLayout {
  int heads, kv_heads, dim, page, most_pages;
  int sharing, at_once, slices;  // query heads of a key head
  int span, packs;               // threads a key, and eights of each
  int splits;
  int q_row, q_at, k_row, k_at, v_at;
  int pairs, window;
  float scale, cap;
};

// Few keys are one item's. Of many, each gets 512 while there are not enough
// items for the device's multiprocessors.
int splits_of(int keys, long items) {
  constexpr int kFewKeys = 1024, kKeys = 512, kItems = 264, kMost = 32;
  if (keys <= kFewKeys) return 1;
  const long wanted = std::min<long>(
      {(keys + kKeys - 1) / kKeys, kItems / std::max<long>(items, 1), kMost}
  );
  return static_cast<int>(
      std::bit_floor(static_cast<unsigned long>(std::max<long>(wanted, 1)))
  );
}

// A query, and what each 32 threads have found for it.
int shared_of_head(int dim) {
  return dim + kRowLanes / 32 * (dim + 2);
}

int largest_divisor(int of, int limit) {
  int d = std::min(of, limit);
  while (of % d != 0) --d;
  return d;
}

RowsLayout layout_of(
    const Arrays& qkv,
    const mx::array& pool,
    const PageRows& rows,
    int table_width,
    const AttentionOptions& o
) {
  const auto [heads, kv_heads, dim] = heads_of(qkv, pool);
  RowsLayout l{};
  l.heads = heads, l.kv_heads = kv_heads, l.dim = dim;
  l.page = pool.shape(3), l.most_pages = rows.pages.shape(1);
  l.span = 1;
  while (l.span < 32 && dim % (16 * l.span) == 0) l.span *= 2;
  l.packs = dim / 8 / l.span;
  l.sharing = heads / kv_heads;
  const int fit = std::min(
      {kHeldElements / (8 * l.packs), kSharedFloats / shared_of_head(dim),
       kMostHeads}
  );
  l.at_once = largest_divisor(l.sharing, std::max(fit, 1));
  l.slices = l.sharing / l.at_once;
  const long items =
      static_cast<long>(rows.lengths.size()) * kv_heads * l.slices;
  l.splits = splits_of(l.most_pages * l.page, items);
  const bool joint = qkv.size() == 1;
  l.q_row = joint ? (heads + 2 * kv_heads) * dim : heads * dim;
  l.k_row = joint ? l.q_row : kv_heads * dim;
  l.k_at = joint ? heads * dim : 0;
  l.v_at = joint ? l.k_at + kv_heads * dim : 0;
  l.pairs = table_width / 2;
  l.window = o.window;
  l.scale = o.scale > 0 ? o.scale : 1.0f / std::sqrt(static_cast<float>(dim));
  l.cap = o.softcap;
  return l;
}

template <class T, class Y>
void paged_row_item(
    long item,
    const RowsLayout& l,
    const T* q,
    const T* k,
    const T* v,
    const T* pool,
    const int* pages,
    const int* lengths,
    const float* angles,
    Y* y
) {
  using namespace gpu_body;
  constexpr int HELD = kMostHeads * kMostPagedDim, HELD_HEADS = kMostHeads,
                HELD_PACKS = kMostPacks;
  const int KV_HEADS = l.kv_heads, DIM = l.dim, PAGE = l.page,
            MOST_PAGES = l.most_pages, SHARING = l.sharing, AT_ONCE = l.at_once,
            SLICES = l.slices, SPLITS = l.splits, Q_ROW = l.q_row,
            Q_AT = l.q_at, K_ROW = l.k_row, K_AT = l.k_at, V_AT = l.v_at,
            PAIRS = l.pairs, WINDOW = l.window;
  const int SPAN = 1, PACKS = l.dim / 8;
  const float SCALE = l.scale, CAP = l.cap;
  float shared[kMostHeads * 2 * (kMostPagedDim + 1)];
#include "hearth/ops/paged_attention/gpu_rows.inc"
}

template <class T>
void paged_join_item(long item, int SPLITS, int DIM, const float* parts, T* y) {
  using namespace gpu_body;
#include "hearth/ops/paged_attention/gpu_join.inc"
}

template <class T>
void append_item(
    long item,
    const long* sizes,
    int KV_HEADS,
    int PAGE,
    int DIM,
    const T* k,
    const T* v,
    const T* pool,
    const int* pages,
    T* all_k,
    T* all_v
) {
  using namespace gpu_body;
#include "hearth/ops/paged_attention/gpu_append.inc"
}

template <class T>
void copy_item(
    long item,
    const long* sizes,
    int ELEMENTS,
    const T* pool,
    float* y
) {
  using namespace gpu_body;
#include "hearth/ops/paged_attention/gpu_copy.inc"
}

mx::array joined(
    const mx::array& parts,
    const RowsLayout& l,
    mx::Dtype dtype,
    mx::StreamOrDevice s
) {
  static const GpuKernel kernel{
      "paged_join", "paged_attention/gpu_join.inc", {"parts"}, {"y"}
  };
  const int count = parts.shape(0);
  KernelLaunch launch;
  launch.items = static_cast<long>(count) * l.heads;
  launch.lanes = kJoinLanes;
  launch.integers = {{"SPLITS", l.splits}, {"DIM", l.dim}};
  launch.types = {{"T", dtype}};
  launch.shapes = {{count, 1, l.heads, l.dim}};
  launch.dtypes = {dtype};
  launch.on_cpu = [=](const KernelOnCpu& run) {
    with_kernel_type(dtype, [&](auto* t) {
      using T = std::remove_pointer_t<decltype(t)>;
      for (long item = 0; item < run.items; ++item) {
        paged_join_item<T>(
            item, l.splits, l.dim, run.in<float>(0), run.out<T>(0)
        );
      }
    });
  };
  return run_gpu_kernel(kernel, {parts}, std::move(launch), s)[0];
}

std::vector<std::pair<std::string, int>> integers_of(const RowsLayout& l) {
  return {
      {"KV_HEADS", l.kv_heads},
      {"DIM", l.dim},
      {"PAGE", l.page},
      {"MOST_PAGES", l.most_pages},
      {"SHARING", l.sharing},
      {"AT_ONCE", l.at_once},
      {"SLICES", l.slices},
      {"SPLITS", l.splits},
      {"SPAN", l.span},
      {"PACKS", l.packs},
      {"HELD", 8 * l.packs * l.at_once},
      {"HELD_HEADS", l.at_once},
      {"HELD_PACKS", l.packs},
      {"Q_ROW", l.q_row},
      {"Q_AT", l.q_at},
      {"K_ROW", l.k_row},
      {"K_AT", l.k_at},
      {"V_AT", l.v_at},
      {"PAIRS", l.pairs},
      {"WINDOW", l.window}
  };
}

}  // namespace

mx::array paged_attention_gpu(
    const Arrays& qkv,
    const mx::array& pool,
    const PageRows& rows,
    const std::optional<mx::array>& angles,
    const AttentionOptions& options,
    mx::StreamOrDevice s
) {
  static const GpuKernel kernel{
      "paged_rows",
      "paged_attention/gpu_rows.inc",
      {"q", "k", "v", "pool", "pages", "lengths", "angles"},
      {"y"},
      "paged_attention/gpu_rotated.inc",
      {3}
  };
  const auto dtype = pool.dtype();
  const auto l =
      layout_of(qkv, pool, rows, angles ? angles->shape(1) : 0, options);
  const int count = rows.lengths.shape(0);
  const bool whole = l.splits == 1;
  const auto result = whole ? dtype : mx::float32;
  KernelLaunch launch;
  launch.items = static_cast<long>(count) * l.kv_heads * l.slices * l.splits;
  launch.lanes = kRowLanes;
  launch.shared = l.at_once * shared_of_head(l.dim);
  launch.integers = integers_of(l);
  launch.floats = {{"SCALE", l.scale}, {"CAP", l.cap}};
  launch.types = {{"T", dtype}, {"Y", result}};
  launch.shapes = {{count, 1, l.heads, l.dim}};
  if (!whole) launch.shapes = {{count, l.heads, l.splits, l.dim + 2}};
  launch.dtypes = {result};
  launch.on_cpu = [=](const KernelOnCpu& run) {
    with_kernel_type(dtype, [&](auto* t) {
      using T = std::remove_pointer_t<decltype(t)>;
      const auto all = [&](auto* y) {
        for (long item = 0; item < run.items; ++item) {
          paged_row_item(
              item, l, run.in<T>(0), run.in<T>(1), run.in<T>(2), run.in<T>(3),
              run.in<int>(4), run.in<int>(5), run.in<float>(6), y
          );
        }
      };
      if (whole) return all(run.out<T>(0));
      all(run.out<float>(0));
    });
  };
  const auto& k = qkv.size() == 1 ? qkv[0] : qkv[1];
  const auto& v = qkv.size() == 1 ? qkv[0] : qkv[2];
  // Without a table nothing of it is read.
  const auto table = angles ? *angles : mx::zeros({8}, mx::float32, s);
  const auto y = run_gpu_kernel(
      kernel, {qkv[0], k, v, pool, rows.pages, rows.lengths, table},
      std::move(launch), s
  )[0];
  return whole ? y : joined(y, l, dtype, s);
}

std::pair<mx::array, mx::array> append_to_pages_gpu(
    const mx::array& k,
    const mx::array& v,
    const mx::array& pool,
    const mx::array& pages,
    int before,
    mx::StreamOrDevice s
) {
  static const GpuKernel kernel{
      "append_to_pages",
      "paged_attention/gpu_append.inc",
      {"k", "v", "pool", "pages"},
      {"all_k", "all_v"},
      nullptr,
      {2}
  };
  const auto dtype = pool.dtype();
  const int kv_heads = pool.shape(2), page = pool.shape(3), dim = pool.shape(4);
  const mx::Shape all{1, before + k.shape(1), kv_heads, dim};
  KernelLaunch launch;
  launch.items = static_cast<long>(all[1]) * kv_heads * (dim / 8);
  launch.sizes = {before};
  launch.integers = {{"KV_HEADS", kv_heads}, {"PAGE", page}, {"DIM", dim}};
  launch.types = {{"T", dtype}};
  launch.shapes = {all, all};
  launch.dtypes = {dtype, dtype};
  launch.on_cpu = [=](const KernelOnCpu& run) {
    const long sizes[] = {run.items, before};
    with_kernel_type(dtype, [&](auto* t) {
      using T = std::remove_pointer_t<decltype(t)>;
      for (long item = 0; item < run.items; ++item) {
        append_item<T>(
            item, sizes, kv_heads, page, dim, run.in<T>(0), run.in<T>(1),
            run.in<T>(2), run.in<int>(3), run.out<T>(0), run.out<T>(1)
        );
      }
    });
  };
  const auto out =
      run_gpu_kernel(kernel, {k, v, pool, pages}, std::move(launch), s);
  return {out[0], out[1]};
}

mx::array copy_page_gpu(
    const mx::array& pool,
    int from,
    int to,
    mx::StreamOrDevice s
) {
  static const GpuKernel kernel{"copy_page", "paged_attention/gpu_copy.inc",
                                {"pool"},    {"y"},
                                nullptr,     {0}};
  const auto dtype = pool.dtype();
  const int elements = 2 * pool.shape(2) * pool.shape(3) * pool.shape(4);
  KernelLaunch launch;
  launch.items = elements / 8;
  launch.sizes = {from, to};
  launch.integers = {{"ELEMENTS", elements}};
  launch.types = {{"T", dtype}};
  launch.shapes = {{8}};
  launch.dtypes = {mx::float32};
  launch.on_cpu = [=](const KernelOnCpu& run) {
    const long sizes[] = {run.items, from, to};
    with_kernel_type(dtype, [&](auto* t) {
      using T = std::remove_pointer_t<decltype(t)>;
      for (long item = 0; item < run.items; ++item) {
        copy_item<T>(item, sizes, elements, run.in<T>(0), run.out<float>(0));
      }
    });
  };
  return run_gpu_kernel(kernel, {pool}, std::move(launch), s)[0];
}

}  // namespace hearth::ops
