#include "hearth/data/loader/loader_fill.h"

#include <algorithm>
#include <numeric>

namespace hearth::data {
namespace {

struct Rows {
  const TokenCache& cache;
  const LoaderConfig& config;
  Batch& batch;

  std::size_t at(const Sample& s) const {
    return std::size_t{s.row} * batch.length + s.column;
  }

  // Weight 1 where the token at [begin, begin + count) of the document carries
  // loss.
  void weigh(
      const DocumentSet::Place& place,
      std::uint64_t begin,
      std::size_t count,
      float* out
  ) const {
    if (!place.shard->has_spans()) {
      std::fill_n(out, count, 1.0f);
      return;
    }
    for (const auto& span : place.shard->spans(place.index)) {
      const std::uint64_t from = std::max<std::uint64_t>(span.begin, begin);
      const std::uint64_t to = std::min<std::uint64_t>(span.end, begin + count);
      if (from < to) std::fill(out + (from - begin), out + (to - begin), 1.0f);
    }
  }

  void put(const Sample& s, std::int32_t segment) const {
    const auto place = cache.sets(config.split)[s.source].place(s.document);
    const std::size_t first = at(s);
    const std::size_t count = s.length;
    place.shard->read(place.index, s.begin, {batch.ids.data() + first, count});
    // The target of the last input is read; the others are at hand.
    std::copy_n(
        batch.ids.data() + first + 1, count - 1, batch.targets.data() + first
    );
    place.shard->read(
        place.index, s.begin + std::uint64_t{s.length},
        {batch.targets.data() + first + count - 1, 1}
    );
    weigh(
        place, s.begin + std::uint64_t{1}, count, batch.weights.data() + first
    );
    std::fill_n(batch.segments.data() + first, count, segment);
    std::iota(
        batch.positions.begin() + static_cast<long>(first),
        batch.positions.begin() + static_cast<long>(first + count), 0
    );
  }

  // One text a row: token c of the row is the target of token c - 1.
  void put_overlapped(const Sample& s) const {
    const auto place = cache.sets(config.split)[s.source].place(s.document);
    const std::size_t row = std::size_t{s.row} * batch.length;
    std::vector<std::int32_t> ids(s.length);
    std::vector<float> weights(s.length);
    place.shard->read(place.index, s.begin, ids);
    weigh(place, s.begin, s.length, weights.data());
    for (std::uint32_t i = 0; i < s.length; ++i) {
      const std::size_t column = s.column + i;
      if (column < batch.length) {
        batch.ids[row + column] = ids[i];
        batch.segments[row + column] = 1;
        batch.positions[row + column] = static_cast<std::int32_t>(column);
      }
      if (column > 0) {
        batch.targets[row + column - 1] = ids[i];
        batch.weights[row + column - 1] = weights[i];
      }
    }
  }
};

}  // namespace

void fill_batch(
    const TokenCache& cache,
    const LoaderConfig& config,
    const BatchPlan& plan,
    Batch& batch
) {
  batch.step = plan.step;
  batch.epoch = plan.epoch;
  batch.rows = plan.rows / static_cast<std::uint32_t>(config.ranks);
  batch.length = plan.length;
  const std::size_t size = std::size_t{batch.rows} * batch.length;
  batch.ids.assign(size, config.pad_id);
  batch.targets.assign(size, config.pad_id);
  batch.segments.assign(size, 0);
  batch.positions.assign(size, 0);
  batch.weights.assign(size, 0.0f);
  batch.samples.clear();
  const Rows rows{cache, config, batch};
  const std::uint32_t first =
      batch.rows * static_cast<std::uint32_t>(config.rank);
  std::uint32_t row = ~0u;
  std::int32_t segment = 0;
  for (Sample s : plan.samples) {
    if (s.row < first || s.row >= first + batch.rows) continue;
    segment = s.row == row ? segment + 1 : 1;
    row = s.row;
    s.row -= first;
    if (plan.overlapped) {
      rows.put_overlapped(s);
    } else {
      rows.put(s, segment);
    }
    if (s.column < batch.length) batch.samples.push_back(s);
  }
  batch.tokens = static_cast<std::uint64_t>(
      std::count_if(batch.segments.begin(), batch.segments.end(), [](auto v) {
        return v != 0;
      })
  );
  batch.trained = static_cast<std::uint64_t>(std::count_if(
      batch.weights.begin(), batch.weights.end(), [](float v) { return v > 0; }
  ));
}

}  // namespace hearth::data
