#include "hearth/kernels/quant/product.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/kernels/quant/half_impl.h"

namespace hearth::kernels {
namespace {

constexpr long kRows = PackedLayout::kPanelRows;
constexpr long kChunk = PackedLayout::kChunkColumns;

std::size_t bytes(long n) {
  return static_cast<std::size_t>(n);
}
std::size_t padded(std::size_t n) {
  return (n + 63) / 64 * 64;
}

void check_size(
    const char* who,
    const char* what,
    std::size_t have,
    std::size_t want
) {
  if (have == want) return;
  throw UsageError(
      fmt::format(
          "[{}] {} must have {} elements, got {}", who, what, want, have
      )
  );
}

// Rows and cols come from a file: their product must not wrap.
void check_shape(const char* who, const QuantFormat& f, long rows, long cols) {
  f.check(who, cols);
  if (rows <= 0 || rows > (1L << 31) || cols > (1L << 31)) {
    throw UsageError(
        fmt::format(
            "[{}] rows and columns must be in 1..2^31, got {} and {}", who,
            rows, cols
        )
    );
  }
}

template <class Spans>
void check_spans(
    const char* who,
    const QuantFormat& f,
    long rows,
    long cols,
    const Spans& s
) {
  const std::size_t n = bytes(rows), size = size_of(f.scale);
  check_size(who, "codes", s.codes.size(), n * f.code_bytes(cols));
  check_size(who, "scales", s.scales.size(), n * f.scale_count(cols) * size);
  check_size(who, "biases", s.biases.size(), n * f.bias_count(cols) * size);
}

// The arrays from row `row` on.
template <class Rows, class Spans>
Rows rows_at(const QuantFormat& f, long cols, const Spans& s, std::size_t row) {
  const std::size_t size = size_of(f.scale);
  return {
      s.codes.data() + row * f.code_bytes(cols),
      s.scales.data() + row * f.scale_count(cols) * size,
      s.biases.data() + row * f.bias_count(cols) * size
  };
}

// Scratch of one thread: a panel in fp32 for exact products; for int8 two
// opened panels and a block of activations in the order of tiles.
std::size_t thread_scratch(
    const PackedLayout& l,
    long rows,
    QuantCompute compute
) {
  if (compute == QuantCompute::kExact) {
    return bytes(l.columns * kRows) * sizeof(float);
  }
  constexpr std::size_t kPanels = 2;
  const std::size_t panel = bytes(l.groups * kRows * 8 + l.columns * kRows);
  const long block =
      std::min((rows + 31) / 32 * 32, quant_row_block(l.columns));
  return padded(kPanels * panel) + bytes(block * l.columns);
}

struct Activations {
  QuantActivations at;
  std::size_t bytes;
};

Activations place_activations(const PackedLayout& l, long rows, void* start) {
  auto* p = static_cast<std::byte*>(start);
  const std::size_t n = bytes(rows), units = bytes(l.columns / l.unit);
  std::size_t used = 0;
  const auto take = [&](std::size_t size) {
    std::byte* at = p == nullptr ? nullptr : p + used;
    used += padded(size);
    return at;
  };
  Activations a;
  a.at.codes = reinterpret_cast<std::int8_t*>(take(n * bytes(l.columns)));
  a.at.scales = reinterpret_cast<float*>(take(n * units * 4));
  a.at.starts = reinterpret_cast<std::int32_t*>(take(n * units * 4));
  a.at.sums = reinterpret_cast<float*>(take(n * bytes(l.groups) * 4));
  a.bytes = used;
  return a;
}

// fp32 rows as they are, bf16 rows widened into scratch.
const float* as_floats(
    ThreadPool& pool,
    const QuantMatrix& m,
    long rows,
    long cols,
    float* scratch,
    long* ld
) {
  if (!m.bf16) {
    *ld = m.ld;
    return static_cast<const float*>(m.data);
  }
  *ld = cols;
  const auto* in = static_cast<const std::uint16_t*>(m.data);
  pool.parallel_for(bytes(rows), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r) {
      const std::uint16_t* from = in + r * bytes(m.ld);
      float* to = scratch + r * bytes(cols);
      for (long c = 0; c < cols; ++c) to[c] = bf16_to_float(from[c]);
    }
  });
  return scratch;
}

}  // namespace

void quantize_matrix(
    const Table& table,
    ThreadPool& pool,
    const QuantFormat& format,
    std::span<const float> w,
    long rows,
    long cols,
    const QuantSpans& out
) {
  constexpr const char* kWho = "kernels.quantize_matrix";
  check_shape(kWho, format, rows, cols);
  check_size(kWho, "weights", w.size(), bytes(rows) * bytes(cols));
  check_spans(kWho, format, rows, cols, out);
  pool.parallel_for(bytes(rows), 1, [&](std::size_t begin, std::size_t end) {
    table.quant_rows->quantize(
        format, w.data() + begin * bytes(cols), cols,
        static_cast<long>(end - begin), cols,
        rows_at<QuantRowsOut>(format, cols, out, begin)
    );
  });
}

void dequantize_matrix(
    const Table& table,
    ThreadPool& pool,
    const QuantFormat& format,
    const ConstQuantSpans& in,
    long rows,
    long cols,
    std::span<float> w
) {
  constexpr const char* kWho = "kernels.dequantize_matrix";
  check_shape(kWho, format, rows, cols);
  check_size(kWho, "weights", w.size(), bytes(rows) * bytes(cols));
  check_spans(kWho, format, rows, cols, in);
  pool.parallel_for(bytes(rows), 1, [&](std::size_t begin, std::size_t end) {
    table.quant_rows->dequantize(
        format, rows_at<QuantRows>(format, cols, in, begin),
        static_cast<long>(end - begin), cols, w.data() + begin * bytes(cols),
        cols
    );
  });
}

void pack_matrix(
    ThreadPool& pool,
    const PackedLayout& layout,
    const ConstQuantSpans& in,
    std::span<std::uint8_t> packed
) {
  constexpr const char* kWho = "kernels.pack_matrix";
  check_spans(kWho, layout.format, layout.rows, layout.cols, in);
  check_size(kWho, "packed", packed.size(), layout.bytes());
  const QuantRows rows{in.codes.data(), in.scales.data(), in.biases.data()};
  pool.parallel_for(
      bytes(layout.panels), 1, [&](std::size_t begin, std::size_t end) {
        pack_panels(
            layout, rows, static_cast<long>(begin), static_cast<long>(end),
            packed.data()
        );
      }
  );
}

void unpack_matrix(
    ThreadPool& pool,
    const PackedLayout& layout,
    std::span<const std::uint8_t> packed,
    const QuantSpans& out
) {
  constexpr const char* kWho = "kernels.unpack_matrix";
  check_spans(kWho, layout.format, layout.rows, layout.cols, out);
  check_size(kWho, "packed", packed.size(), layout.bytes());
  const QuantRowsOut rows{
      out.codes.data(), out.scales.data(), out.biases.data()
  };
  pool.parallel_for(
      bytes(layout.panels), 1, [&](std::size_t begin, std::size_t end) {
        unpack_panels(
            layout, packed.data(), static_cast<long>(begin),
            static_cast<long>(end), rows
        );
      }
  );
}

std::size_t quant_product_scratch(
    const PackedLayout& layout,
    long rows,
    QuantCompute compute,
    int threads
) {
  const std::size_t own = padded(thread_scratch(layout, rows, compute)) *
                          static_cast<unsigned>(threads);
  if (compute == QuantCompute::kInt8) {
    return own + place_activations(layout, rows, nullptr).bytes;
  }
  return own + bytes(rows) * bytes(layout.cols) * sizeof(float);
}

std::size_t quant_gradient_scratch(
    const PackedLayout& layout,
    long rows,
    int threads
) {
  const std::size_t own =
      padded(bytes(layout.panels * kRows * kChunk) * sizeof(float));
  return own * static_cast<unsigned>(threads) +
         bytes(rows) * bytes(layout.rows) * sizeof(float);
}

void quant_product(
    const Table& table,
    ThreadPool& pool,
    const PackedLayout& layout,
    const std::uint8_t* packed,
    QuantCompute compute,
    const QuantMatrix& x,
    long rows,
    const QuantMatrix& y,
    void* scratch
) noexcept {
  const QuantMatmulKernels& kernels = *table.quant_matmul;
  const std::size_t own = padded(thread_scratch(layout, rows, compute));
  auto* shared = static_cast<std::byte*>(scratch) +
                 own * static_cast<unsigned>(pool.size());
  const auto mine = [&](int worker) {
    return static_cast<std::byte*>(scratch) +
           own * static_cast<unsigned>(worker);
  };
  const auto share = [&](int worker) {
    // Pairs of panels, so that every worker's tiles are whole.
    return partition(bytes(layout.panels), 2, worker, pool.size());
  };
  if (compute == QuantCompute::kExact) {
    long ld = 0;
    const float* in = as_floats(
        pool, x, rows, layout.cols, reinterpret_cast<float*>(shared), &ld
    );
    pool.run([&](int worker) {
      const Range r = share(worker);
      kernels.exact(
          layout, packed, static_cast<long>(r.begin), static_cast<long>(r.end),
          in, ld, rows, y, mine(worker)
      );
    });
    return;
  }
  const QuantActivations in = place_activations(layout, rows, shared).at;
  pool.parallel_for(bytes(rows), 1, [&](std::size_t begin, std::size_t end) {
    kernels.round_activations(
        layout, x, static_cast<long>(begin), static_cast<long>(end), in
    );
  });
  pool.run([&](int worker) {
    const Range r = share(worker);
    kernels.int8(
        layout, packed, static_cast<long>(r.begin), static_cast<long>(r.end),
        in, rows, y, mine(worker)
    );
  });
}

void quant_gradient(
    const Table& table,
    ThreadPool& pool,
    const PackedLayout& layout,
    const std::uint8_t* packed,
    const QuantMatrix& dy,
    long rows,
    const QuantMatrix& dx,
    void* scratch
) noexcept {
  const std::size_t own =
      padded(bytes(layout.panels * kRows * kChunk) * sizeof(float));
  auto* start = static_cast<std::byte*>(scratch);
  long ld = 0;
  const float* in = as_floats(
      pool, dy, rows, layout.rows,
      reinterpret_cast<float*>(
          start + own * static_cast<unsigned>(pool.size())
      ),
      &ld
  );
  const std::size_t chunks = bytes((layout.columns + kChunk - 1) / kChunk);
  pool.run([&](int worker) {
    const Range r = partition(chunks, 1, worker, pool.size());
    table.quant_matmul->input_gradient(
        layout, packed, static_cast<long>(r.begin), static_cast<long>(r.end),
        in, ld, rows, dx, start + own * static_cast<unsigned>(worker)
    );
  });
}

}  // namespace hearth::kernels
