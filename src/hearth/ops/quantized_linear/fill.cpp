#include "hearth/ops/quantized_linear/fill.h"

#include <algorithm>

#include "hearth/ops/leaf.h"

namespace hearth::ops {
namespace {

constexpr long kGrain = QuantizedFill::kRowGrain;

std::size_t padded(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

// Where a panel's rows lie between rounding and packing.
struct Staging {
  std::size_t codes, scales, biases;

  explicit Staging(const kernels::PackedLayout& l) {
    const std::size_t size = kernels::size_of(l.format.scale);
    codes = padded(kGrain * l.format.code_bytes(l.cols));
    scales = padded(kGrain * l.format.scale_count(l.cols) * size);
    biases = padded(kGrain * l.format.bias_count(l.cols) * size);
  }
};

}  // namespace

QuantizedFill::QuantizedFill(const QuantFormat& format, long rows, long cols)
    : layout_(kernels::packed_layout(format, rows, cols)),
      packed_(make_leaf(
          {static_cast<int>(layout_.panels),
           static_cast<int>(layout_.panel_bytes)},
          mx::uint8,
          MemoryZone::named("weights"),
          AlignedBuffer::Kept::long_time
      )) {}

std::size_t QuantizedFill::scratch_bytes() const {
  const Staging s(layout_);
  return s.codes + s.scales + s.biases;
}

std::uint8_t* QuantizedFill::panel(long row) {
  return packed_.data<std::uint8_t>() +
         static_cast<std::size_t>(row / kGrain) * layout_.panel_bytes;
}

void QuantizedFill::round_rows(
    const kernels::Table& table,
    const float* w,
    long begin,
    long end,
    void* scratch
) noexcept {
  const Staging staging(layout_);
  auto* codes = static_cast<std::uint8_t*>(scratch);
  const kernels::QuantRowsOut out{
      codes, codes + staging.codes, codes + staging.codes + staging.scales
  };
  // A panel as a matrix of its own, so that row 0 is the panel's first.
  kernels::PackedLayout one = layout_;
  one.panels = 1;
  for (long row = begin; row < end; row += kGrain) {
    one.rows = std::min(kGrain, end - row);
    table.quant_rows->quantize(
        layout_.format, w + (row - begin) * layout_.cols, layout_.cols,
        one.rows, layout_.cols, out
    );
    kernels::pack_panels(
        one, {out.codes, out.scales, out.biases}, 0, 1, panel(row)
    );
  }
}

void QuantizedFill::take_rows(
    const kernels::QuantRows& rows_alone,
    long begin,
    long end
) noexcept {
  // A matrix of its own, so that row 0 is the first of these.
  kernels::PackedLayout part = layout_;
  part.rows = end - begin;
  part.panels = (part.rows + kGrain - 1) / kGrain;
  kernels::pack_panels(part, rows_alone, 0, part.panels, panel(begin));
}

std::shared_ptr<const QuantizedWeight> QuantizedFill::finish() {
  return std::make_shared<const QuantizedWeight>(
      QuantizedWeight::of_packed(layout_, packed_)
  );
}

}  // namespace hearth::ops
