// Keys and values on a GPU: blocks with room for more tokens, which a step
// writes where they lie. Joined to what came before instead, each token would
// copy all of them.
#include "hearth/ops/compiled.h"
#include "hearth/ops/kv_cache/op.h"

namespace hearth::ops {
namespace {

// Tokens a block grows by. MLX's attention knows blocks of a multiple of 256
// for what they are.
constexpr int kStep = 256;
constexpr float kLevels = 127;

// rows -> int8 codes, and the scale of each token and head. A row of zeros has
// codes of zero whatever its scale.
Arrays quantized(const Arrays& in, mx::StreamOrDevice s) {
  const auto x = mx::astype(in[0], mx::float32, s);
  const auto most = mx::max(mx::abs(x, s), -1, true, s);
  const auto scale = mx::divide(most, mx::array(kLevels), s);
  const auto zero = mx::equal(most, mx::array(0.0f), s);
  const auto divisor = mx::where(zero, mx::array(1.0f), scale, s);
  const auto codes = mx::round(mx::divide(x, divisor, s), s);
  return {mx::astype(codes, mx::int8, s), scale};
}

Arrays dequantized(const Arrays& in, mx::StreamOrDevice s, mx::Dtype dtype) {
  const auto x = mx::multiply(mx::astype(in[0], mx::float32, s), in[1], s);
  return {mx::astype(x, dtype, s)};
}

mx::array rows_between(
    const mx::array& x,
    int begin,
    int end,
    mx::StreamOrDevice s
) {
  return mx::slice(x, {0, begin, 0, 0}, {1, end, x.shape(2), x.shape(3)}, s);
}

// The update writes `to` where it lies if nothing else holds it when it runs.
mx::array written(
    const mx::array& to,
    const mx::array& rows,
    int from,
    mx::StreamOrDevice s
) {
  mx::Shape start(4, 0), stop = to.shape();
  start[1] = from, stop[1] = from + rows.shape(1);
  return mx::slice_update(to, rows, start, stop, s);
}

// A block with room for `capacity` tokens that begins as `old` does.
mx::array grown(
    const std::optional<mx::array>& old,
    const mx::array& like,
    int capacity,
    int before,
    mx::StreamOrDevice s
) {
  auto shape = like.shape();
  shape[1] = capacity;
  auto block = mx::zeros(shape, like.dtype(), s);
  if (!old || before == 0) return block;
  return written(block, rows_between(*old, 0, before, s), 0, s);
}

}  // namespace

std::size_t KvCache::Block::nbytes() const {
  return rows.nbytes() + (scales ? scales->nbytes() : 0);
}

void KvCache::append(
    std::optional<Block>& block,
    const mx::array& rows,
    int before,
    mx::StreamOrDevice s
) const {
  Arrays parts{mx::astype(rows, dtype_ == mx::int8 ? rows.dtype() : dtype_, s)};
  if (dtype_ == mx::int8) parts = compiled(quantized, {rows}, s);
  const int after = before + rows.shape(1);
  const int step = page_ > 0 ? page_ : kStep;
  const int capacity = (after + step - 1) / step * step;
  const bool fits = block && block->rows.shape(1) >= after;
  const auto put = [&](std::optional<mx::array> old, const mx::array& part) {
    auto to = fits ? std::move(*old) : grown(old, part, capacity, before, s);
    old.reset();
    return written(to, part, before, s);
  };
  // Taken out of the block, so that the update is the only holder.
  std::optional<mx::array> old_rows, old_scales;
  if (block) {
    old_rows = std::move(block->rows);
    old_scales = std::move(block->scales);
    block.reset();
  }
  auto new_rows = put(std::move(old_rows), parts[0]);
  std::optional<mx::array> new_scales;
  if (parts.size() > 1) new_scales = put(std::move(old_scales), parts[1]);
  block.emplace(Block{std::move(new_rows), std::move(new_scales)});
}

mx::array KvCache::rows_of(
    const Block& block,
    int begin,
    int end,
    mx::Dtype dtype,
    mx::StreamOrDevice s
) {
  const auto rows = rows_between(block.rows, begin, end, s);
  if (!block.scales) return mx::astype(rows, dtype, s);
  const auto scales = rows_between(*block.scales, begin, end, s);
  return compiled(dequantized, {rows, scales}, s, dtype)[0];
}

}  // namespace hearth::ops
