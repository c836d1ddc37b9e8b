#include "hearth/kernels/quant/packed.h"

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/kernels/quant/codes_impl.h"

namespace hearth::kernels {
namespace {

constexpr long kRows = PackedLayout::kPanelRows;
constexpr long kChunk = PackedLayout::kChunkColumns;
constexpr long kSuper = 256;

bool is_k(QuantKind kind) {
  return kind == QuantKind::kQ4_K || kind == QuantKind::kQ5_K ||
         kind == QuantKind::kQ6_K;
}

std::size_t scale_bytes(const PackedLayout& l) {
  const auto groups = static_cast<std::size_t>(l.groups);
  const auto supers = static_cast<std::size_t>(l.columns / kSuper);
  const std::size_t each = is_k(l.format.kind)
                               ? groups + 2 * supers
                               : groups * size_of(l.format.scale);
  return kRows * (l.has_min ? 2 : 1) * each;
}

// Sixteen rows of codes, up to kStretch columns of them.
using Codes = std::uint8_t[kRows][kStretch];

// One plane of a chunk: `width` bits of each code from bit `from` on, as
// 8 / width operands to a vector. Returns the bytes it takes.
long put_plane(
    const std::uint8_t (&operand)[8][64],
    int width,
    int from,
    std::uint8_t* out
) {
  const int per_vector = 8 / width, mask = (1 << width) - 1;
  for (int j = 0; j < 8; ++j) {
    std::uint8_t* v = out + 64 * (j / per_vector);
    const int shift = j % per_vector * width;
    for (int b = 0; b < 64; ++b) {
      const int part = ((operand[j][b] >> from) & mask) << shift;
      v[b] = static_cast<std::uint8_t>(shift == 0 ? part : v[b] | part);
    }
  }
  return 64 * width;
}

long get_plane(
    const std::uint8_t* in,
    int width,
    int from,
    std::uint8_t (&operand)[8][64]
) {
  const int per_vector = 8 / width, mask = (1 << width) - 1;
  for (int j = 0; j < 8; ++j) {
    const std::uint8_t* v = in + 64 * (j / per_vector);
    const int shift = j % per_vector * width;
    for (int b = 0; b < 64; ++b) {
      const int part = ((v[b] >> shift) & mask) << from;
      operand[j][b] |= static_cast<std::uint8_t>(part);
    }
  }
  return 64 * width;
}

int widest_plane(int bits) {
  return bits >= 8 ? 8 : bits >= 4 ? 4 : 2;
}

void put_chunk(const Codes& u, long column, int bits, std::uint8_t* out) {
  std::uint8_t operand[8][64];
  for (int j = 0; j < 8; ++j) {
    for (long r = 0; r < kRows; ++r) {
      std::memcpy(operand[j] + 4 * r, u[r] + column + 4 * j, 4);
    }
  }
  const int wide = widest_plane(bits);
  out += put_plane(operand, wide, 0, out);
  if (bits > wide) put_plane(operand, bits - wide, wide, out);
}

void get_chunk(const std::uint8_t* in, int bits, Codes& u, long column) {
  std::uint8_t operand[8][64] = {};
  const int wide = widest_plane(bits);
  in += get_plane(in, wide, 0, operand);
  if (bits > wide) get_plane(in, bits - wide, wide, operand);
  for (int j = 0; j < 8; ++j) {
    for (long r = 0; r < kRows; ++r) {
      std::memcpy(u[r] + column + 4 * j, operand[j] + 4 * r, 4);
    }
  }
}

// Columns [c, c + n) of a row in the file's layout as unsigned codes.
void read_stretch(
    const QuantFormat& f,
    const std::uint8_t* row,
    long c,
    int n,
    std::uint8_t* u
) {
  if (f.is_gguf()) {
    const long block = f.block_columns();
    for (long b = c / block; b < (c + n) / block; ++b) {
      read_block(
          f.kind, row + b * static_cast<long>(f.block_bytes()),
          u + b * block - c
      );
    }
    return;
  }
  read_bits(row + c * f.bits / 8, f.bits, n, u);
  if (f.kind == QuantKind::kSymmetric) flip_top_bit(u, f.bits, n);
}

void write_stretch(
    const QuantFormat& f,
    std::uint8_t* u,
    long c,
    int n,
    std::uint8_t* row
) {
  if (f.is_gguf()) {
    const long block = f.block_columns();
    for (long b = c / block; b < (c + n) / block; ++b) {
      write_block(
          f.kind, u + b * block - c,
          row + b * static_cast<long>(f.block_bytes())
      );
    }
    return;
  }
  if (f.kind == QuantKind::kSymmetric) flip_top_bit(u, f.bits, n);
  write_bits(u, f.bits, n, row + c * f.bits / 8);
}

int stretch_at(long c, long end) {
  return static_cast<int>(end - c < kStretch ? end - c : kStretch);
}

// Lane `lane` of the panel's scale sections, for K-quants and for the rest.
void put_k_scales(
    const PackedLayout& l,
    const std::uint8_t* row,
    long lane,
    std::uint8_t* at
) {
  const bool six = l.format.kind == QuantKind::kQ6_K;
  const long per = kSuper / l.group, supers = l.columns / kSuper;
  std::uint8_t* mins = at + l.groups * kRows;
  std::uint8_t* tops = at + l.groups * kRows * (six ? 1 : 2);
  for (long b = 0; b < supers; ++b, row += l.format.block_bytes()) {
    std::uint8_t scale[16], min[8];
    if (six) {
      std::memcpy(scale, row + 192, 16);
    } else {
      read_k_scales(row + 4, scale, min);
    }
    for (long j = 0; j < per; ++j) {
      at[(b * per + j) * kRows + lane] = scale[j];
      if (!six) mins[(b * per + j) * kRows + lane] = min[j];
    }
    std::memcpy(tops + 2 * (b * kRows + lane), row + (six ? 208 : 0), 2);
    if (!six) {
      std::memcpy(tops + 2 * ((supers + b) * kRows + lane), row + 2, 2);
    }
  }
}

void get_k_scales(
    const PackedLayout& l,
    const std::uint8_t* at,
    long lane,
    std::uint8_t* row
) {
  const bool six = l.format.kind == QuantKind::kQ6_K;
  const long per = kSuper / l.group, supers = l.columns / kSuper;
  const std::uint8_t* mins = at + l.groups * kRows;
  const std::uint8_t* tops = at + l.groups * kRows * (six ? 1 : 2);
  for (long b = 0; b < supers; ++b, row += l.format.block_bytes()) {
    std::uint8_t scale[16], min[8];
    for (long j = 0; j < per; ++j) {
      scale[j] = at[(b * per + j) * kRows + lane];
      if (!six) min[j] = mins[(b * per + j) * kRows + lane];
    }
    std::memcpy(row + (six ? 208 : 0), tops + 2 * (b * kRows + lane), 2);
    if (six) {
      std::memcpy(row + 192, scale, 16);
    } else {
      std::memcpy(row + 2, tops + 2 * ((supers + b) * kRows + lane), 2);
      write_k_scales(scale, min, row + 4);
    }
  }
}

// Where the scale (which = 0) or minimum (1) of group g of a row lies in the
// file's layout of a format that is no K-quant.
long scale_offset(const PackedLayout& l, long row, long g, int which) {
  if (!l.format.is_gguf()) {
    return (row * l.groups + g) * static_cast<long>(size_of(l.format.scale));
  }
  const auto bytes = static_cast<long>(l.format.block_bytes());
  return (row * l.groups + g) * bytes + 2 * which;
}

void put_scales(
    const PackedLayout& l,
    const QuantRows& in,
    long row,
    long lane,
    std::uint8_t* at
) {
  const std::size_t size = size_of(l.format.scale);
  for (int which = 0; which < (l.has_min ? 2 : 1); ++which) {
    const void* source = l.format.is_gguf() ? in.codes
                         : which == 0       ? in.scales
                                            : in.biases;
    for (long g = 0; g < l.groups; ++g) {
      const auto slot =
          static_cast<std::size_t>((which * l.groups + g) * kRows + lane);
      std::memcpy(
          at + slot * size,
          static_cast<const std::uint8_t*>(source) +
              scale_offset(l, row, g, which),
          size
      );
    }
  }
}

void get_scales(
    const PackedLayout& l,
    const std::uint8_t* at,
    long row,
    long lane,
    const QuantRowsOut& out
) {
  const std::size_t size = size_of(l.format.scale);
  for (int which = 0; which < (l.has_min ? 2 : 1); ++which) {
    void* target = l.format.is_gguf() ? out.codes
                   : which == 0       ? out.scales
                                      : out.biases;
    for (long g = 0; g < l.groups; ++g) {
      const auto slot =
          static_cast<std::size_t>((which * l.groups + g) * kRows + lane);
      std::memcpy(
          static_cast<std::uint8_t*>(target) + scale_offset(l, row, g, which),
          at + slot * size, size
      );
    }
  }
}

}  // namespace

PackedLayout packed_layout(const QuantFormat& format, long rows, long cols) {
  format.check("kernels.packed_layout", cols);
  if (rows <= 0 || rows > (1L << 31) || cols > (1L << 31)) {
    throw UsageError(
        fmt::format(
            "[kernels.packed_layout] rows and columns must be in 1..2^31, got "
            "{} "
            "and {}",
            rows, cols
        )
    );
  }
  PackedLayout l;
  l.format = format, l.rows = rows, l.cols = cols;
  const int group = format.group;
  l.unit = group % 64 == 0 ? 64 : group % 32 == 0 ? 32 : 16;
  l.columns = (cols + l.unit - 1) / l.unit * l.unit;
  l.group = group == 0 ? l.columns : group;
  l.groups = l.columns / l.group;
  l.panels = (rows + kRows - 1) / kRows;
  l.offset = code_offset(format);
  l.has_min = l.offset == 0;
  l.code_bytes = static_cast<std::size_t>(l.columns * kRows * format.bits / 8);
  l.panel_bytes = (l.code_bytes + scale_bytes(l) + 63) / 64 * 64;
  return l;
}

void pack_panels(
    const PackedLayout& l,
    const QuantRows& in,
    long begin,
    long end,
    std::uint8_t* packed
) noexcept {
  const int bits = l.format.bits;
  const auto row_bytes = static_cast<long>(l.format.code_bytes(l.cols));
  for (long p = begin; p < end; ++p) {
    std::uint8_t* panel = packed + static_cast<std::size_t>(p) * l.panel_bytes;
    std::memset(panel, 0, l.panel_bytes);
    const long lanes = l.rows - p * kRows < kRows ? l.rows - p * kRows : kRows;
    Codes u;
    for (long c = 0; c < l.columns; c += kStretch) {
      std::memset(u, l.offset, sizeof(u));
      for (long r = 0; r < lanes && c < l.cols; ++r) {
        const std::uint8_t* row = in.codes + (p * kRows + r) * row_bytes;
        read_stretch(l.format, row, c, stretch_at(c, l.cols), u[r]);
      }
      for (long k = 0; k < stretch_at(c, l.columns); k += kChunk) {
        put_chunk(u, k, bits, panel + (c + k) / kChunk * 64 * bits);
      }
    }
    for (long r = 0; r < lanes; ++r) {
      const long row = p * kRows + r;
      if (is_k(l.format.kind)) {
        put_k_scales(l, in.codes + row * row_bytes, r, panel + l.code_bytes);
      } else {
        put_scales(l, in, row, r, panel + l.code_bytes);
      }
    }
  }
}

void unpack_panels(
    const PackedLayout& l,
    const std::uint8_t* packed,
    long begin,
    long end,
    const QuantRowsOut& out
) noexcept {
  const int bits = l.format.bits;
  const auto row_bytes = static_cast<long>(l.format.code_bytes(l.cols));
  for (long p = begin; p < end; ++p) {
    const std::uint8_t* panel =
        packed + static_cast<std::size_t>(p) * l.panel_bytes;
    const long lanes = l.rows - p * kRows < kRows ? l.rows - p * kRows : kRows;
    Codes u;
    for (long c = 0; c < l.cols; c += kStretch) {
      for (long k = 0; k < stretch_at(c, l.columns); k += kChunk) {
        get_chunk(panel + (c + k) / kChunk * 64 * bits, bits, u, k);
      }
      for (long r = 0; r < lanes; ++r) {
        std::uint8_t* row = out.codes + (p * kRows + r) * row_bytes;
        write_stretch(l.format, u[r], c, stretch_at(c, l.cols), row);
      }
    }
    for (long r = 0; r < lanes; ++r) {
      const long row = p * kRows + r;
      if (is_k(l.format.kind)) {
        get_k_scales(l, panel + l.code_bytes, r, out.codes + row * row_bytes);
      } else {
        get_scales(l, panel + l.code_bytes, row, r, out);
      }
    }
  }
}

}  // namespace hearth::kernels
