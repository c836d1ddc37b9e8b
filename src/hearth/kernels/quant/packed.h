#pragma once
// The layout quantised weights are run in. Every format is repacked on load,
// without loss, into panels of 16 output rows, so that one 64-byte load feeds
// 16 rows at once and no kernel ever sums across lanes.
//
// A panel is its codes followed by its scales. Codes come in chunks of 32
// columns, 64 * bits bytes each: a chunk is eight operands of four columns,
// operand j holding byte 4 * row + i for column 4 * j + i, stored as planes:
//   8 bits  eight vectors, operand j whole
//   4 bits  four vectors, low halves operand 2v, high halves operand 2v + 1
//   2 bits  two vectors, bits 2t and 2t + 1 of vector v operand 4v + t
//   1 bit   one vector, bit t operand t
// 3 bits are a 2-bit and a 1-bit plane, 5 a 4 and a 1, 6 a 4 and a 2; codes
// are unsigned (a signed code plus the format's offset). Scales are 16 lanes
// per group in the format's own type; K-quants keep their two levels (a byte
// per sub-block, fp16 per 256 columns). So a packed matrix is as large as the
// file's, but for rounding up to 16 rows, for per-channel rows to 64 columns,
// and Q4_K/Q5_K, whose 6-bit scales take 8 (an eighth of a bit per weight).
#include <cstddef>
#include <cstdint>

#include "hearth/kernels/quant/format.h"

namespace hearth::kernels {

struct PackedLayout {
  static constexpr long kPanelRows = 16;
  static constexpr long kChunkColumns = 32;

  QuantFormat format;
  long rows = 0, cols = 0;
  // The columns a panel holds: cols rounded up to whole units.
  long columns = 0;
  // Columns that share one weight scale and one activation scale.
  int unit = 32;
  // Columns that share one weight scale, and how many such groups there are.
  long group = 32, groups = 0;
  long panels = 0;
  // What the stored code is above the signed one.
  int offset = 0;
  // Whether w = scale * code + min, rather than scale * (code - offset).
  bool has_min = false;
  std::size_t code_bytes = 0, panel_bytes = 0;

  std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(panels) * panel_bytes;
  }
};

// Throws UsageError unless the format and sizes are sound.
PackedLayout packed_layout(const QuantFormat& format, long rows, long cols);

// Panels [begin, end) from rows in the file's layout, and back, bit for bit.
// `in`/`out` point at row 0 of the matrix, `packed` at panel 0.
void pack_panels(
    const PackedLayout& layout,
    const QuantRows& in,
    long begin,
    long end,
    std::uint8_t* packed
) noexcept;
void unpack_panels(
    const PackedLayout& layout,
    const std::uint8_t* packed,
    long begin,
    long end,
    const QuantRowsOut& out
) noexcept;

}  // namespace hearth::kernels
