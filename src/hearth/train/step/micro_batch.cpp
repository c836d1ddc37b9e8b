#include "hearth/train/step/micro_batch.h"

#include <algorithm>

namespace hearth::train {
namespace {

template <class T>
mx::array rows_of(
    const std::vector<T>& all,
    const data::Batch& batch,
    std::uint32_t begin,
    std::uint32_t end
) {
  const auto length = static_cast<std::size_t>(batch.length);
  return mx::array(
      all.data() + begin * length,
      {static_cast<int>(end - begin), static_cast<int>(batch.length)}
  );
}

mx::array noise_keys(
    const data::Batch& batch,
    std::uint32_t begin,
    std::uint32_t end,
    RandomKey step
) {
  const auto length = static_cast<std::size_t>(batch.length);
  std::vector<std::uint64_t> keys((end - begin) * length, 0);
  for (const data::Sample& s : batch.samples) {
    if (s.row < begin || s.row >= end) continue;
    const RandomKey document = step.fold(s.source).fold(s.document);
    for (std::uint32_t i = 0; i < s.length; ++i) {
      keys[(s.row - begin) * length + s.column + i] =
          document.fold(s.begin + i).bits();
    }
  }
  return mx::array(
      keys.data(), {static_cast<int>(end - begin), static_cast<int>(length)}
  );
}

}  // namespace

MicroBatch make_micro_batch(
    const data::Batch& batch,
    std::uint32_t begin,
    std::uint32_t end,
    std::optional<RandomKey> noise
) {
  MicroBatch m;
  m.rows = static_cast<int>(end - begin);
  m.length = static_cast<int>(batch.length);
  m.ids = rows_of(batch.ids, batch, begin, end);
  m.targets = rows_of(batch.targets, batch, begin, end);
  m.positions = rows_of(batch.positions, batch, begin, end);
  m.weights = rows_of(batch.weights, batch, begin, end);
  const auto first = batch.segments.begin() +
                     static_cast<std::ptrdiff_t>(begin) * batch.length;
  const auto last =
      batch.segments.begin() + static_cast<std::ptrdiff_t>(end) * batch.length;
  if (!std::all_of(first, last, [](std::int32_t s) { return s == 1; })) {
    m.segments = rows_of(batch.segments, batch, begin, end);
  }
  if (noise) m.noise = noise_keys(batch, begin, end, *noise);
  return m;
}

}  // namespace hearth::train
