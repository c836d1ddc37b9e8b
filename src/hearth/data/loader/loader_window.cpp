// Rows from a window of documents: packed or padded.
#include <algorithm>
#include <map>
#include <set>

#include "hearth/base/error.h"
#include "hearth/data/loader/loader_plan.h"

namespace hearth::data {
namespace {

template <class T>
void shuffle(std::vector<T>& items, RandomStream& random) {
  for (std::size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[random.below(i)]);
  }
}

std::uint64_t total_length(const std::vector<DocumentPart>& pieces) {
  std::uint64_t total = 0;
  for (const auto& p : pieces) total += p.length;
  return total;
}

// Fills the room left in bins with the beginnings of pieces that did not fit:
// of those that may be split whatever the room, of others where half of a bin
// would stay empty.
class GapFiller {
 public:
  GapFiller(std::vector<DocumentPart>& pieces, std::vector<bool> may_split)
      : pieces_(pieces), may_split_(std::move(may_split)) {}

  void fill(std::vector<DocumentPart>& bin, std::uint32_t capacity) {
    std::uint64_t room = capacity - total_length(bin);
    while (room > 0 && take(true, bin, room)) {
    }
    while (room > 0 && 2 * room >= capacity && take(false, bin, room)) {
    }
  }
  // Gives out what is left of the pieces, in their order; returns how many were
  // cut.
  std::uint64_t finish() {
    std::erase_if(pieces_, [](const auto& p) { return p.length == 0; });
    return cuts_;
  }

 private:
  std::vector<DocumentPart>& pieces_;
  std::vector<bool> may_split_;
  std::size_t next_[2] = {0, 0};  // of either kind
  std::uint64_t cuts_ = 0;

  bool take(bool kind, std::vector<DocumentPart>& bin, std::uint64_t& room) {
    std::size_t& at = next_[kind];
    while (at < pieces_.size() &&
           (may_split_[at] != kind || pieces_[at].length == 0)) {
      ++at;
    }
    if (at == pieces_.size()) return false;
    DocumentPart& from = pieces_[at];
    DocumentPart part = from;
    part.length =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(room, from.length));
    bin.push_back(part);
    room -= part.length;
    from.begin += part.length;
    from.length -= part.length;
    cuts_ += from.length > 0;
    return true;
  }
};

void add_row(
    BatchPlan& plan,
    std::uint32_t row,
    const std::vector<DocumentPart>& pieces
) {
  std::uint32_t column = 0;
  for (const auto& p : pieces) {
    plan.samples.push_back(
        {row, column, p.length, p.source, p.document, p.begin}
    );
    column += p.length;
  }
}

}  // namespace

std::vector<std::vector<DocumentPart>> best_fit_decreasing(
    std::vector<DocumentPart>& pieces,
    const std::vector<std::uint32_t>& capacities,
    std::size_t first
) {
  std::vector<std::uint32_t> by_length(pieces.size());
  for (std::uint32_t i = 0; i < pieces.size(); ++i) by_length[i] = i;
  const auto longer = [&](auto a, auto b) {
    return pieces[a].length > pieces[b].length;
  };
  const auto middle = by_length.begin() + static_cast<long>(first);
  std::stable_sort(by_length.begin(), middle, longer);
  std::stable_sort(middle, by_length.end(), longer);
  std::set<std::pair<std::uint32_t, std::uint32_t>> rooms;
  for (std::uint32_t b = 0; b < capacities.size(); ++b) {
    rooms.insert({capacities[b], b});
  }
  std::vector<std::vector<DocumentPart>> bins(capacities.size());
  std::vector<bool> placed(pieces.size());
  for (const auto i : by_length) {
    const auto bin = rooms.lower_bound({pieces[i].length, 0});
    if (bin == rooms.end()) continue;
    auto node = rooms.extract(bin);
    bins[node.value().second].push_back(pieces[i]);
    node.value().first -= pieces[i].length;
    placed[i] = true;
    if (node.value().first > 0) rooms.insert(std::move(node));
  }
  std::vector<DocumentPart> rest;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (!placed[i]) rest.push_back(pieces[i]);
  }
  pieces = std::move(rest);
  return bins;
}

bool Planner::next_windowed(BatchPlan& plan) {
  if (!have_window_ && !build_window()) return false;
  while (position_.emitted == window_.size()) {
    if (at_end(after_window_) && after_window_.carried.empty()) return false;
    position_ = after_window_;
    if (!build_window()) return false;
  }
  plan = window_[position_.emitted++];
  // Behind its last batch a window is done with, so that the position does not
  // depend on how it was arranged.
  if (position_.emitted == window_.size()) {
    position_ = after_window_;
    have_window_ = false;
  }
  return true;
}

// Plans from position_ on; what was emitted of it stays emitted.
bool Planner::build_window() {
  have_window_ = true;
  window_.clear();
  position_.counts = counts_;
  after_window_ = position_;
  after_window_.emitted = 0;
  std::vector<DocumentPart> pieces = collect(after_window_);
  const bool last = at_end(after_window_);
  if (config_.arrange == Arrange::kPack) {
    arrange_pack(pieces, position_.carried.size(), last);
  } else {
    arrange_pad(pieces, last);
  }
  after_window_.carried = std::move(pieces);
  after_window_.counts = counts_;
  for (auto& plan : window_) {
    plan.step = after_window_.step++;
    plan.epoch = position_.epoch;
  }
  if (position_.emitted > window_.size()) {
    throw UsageError(
        "[data.loader] the saved position is not one of this data"
    );
  }
  return !window_.empty();
}

std::vector<DocumentPart> Planner::collect(PlanPosition& p) {
  std::vector<DocumentPart> pieces = std::move(p.carried);
  p.carried.clear();
  std::uint64_t tokens = total_length(pieces), fruitless = 0;
  while (!at_end(p) && (pieces.size() < config_.window ||
                        tokens < 3 * config_.tokens_per_batch)) {
    const std::size_t had = pieces.size();
    add_document(order_.at(p.epoch, p.index), pieces);
    if (++p.index == order_.size()) p.index = 0, ++p.epoch;
    for (std::size_t i = had; i < pieces.size(); ++i) {
      tokens += pieces[i].length;
    }
    fruitless = pieces.size() > had ? 0 : fruitless + 1;
    if (fruitless > order_.size()) {
      throw UsageError(
          "[data.loader] no document of this split can be trained on",
          "what carries loss must lie within a row: longer rows (data.length, "
          "train.seq_lengths) or another data.mask may help"
      );
    }
  }
  return pieces;
}

void Planner::add_document(
    const DocumentOrder::Item& item,
    std::vector<DocumentPart>& pieces
) {
  const std::uint32_t longest = shapes_.longest();
  const std::size_t had = pieces.size();
  bool trained = unit_ > 1;
  for (std::uint64_t d = item.index * unit_; d < (item.index + 1) * unit_;
       ++d) {
    const std::uint64_t tokens = length_of(item.source, d);
    std::uint64_t inputs = tokens > 0 ? tokens - 1 : 0;
    const bool over = inputs > longest;
    if (inputs == 0 || (over && config_.overlong == Overlong::kDrop)) {
      pieces.resize(had);
      ++counts_.dropped;
      return;
    }
    if (over && (unit_ > 1 || !may_split(item.source, d))) {
      inputs = longest;
      ++counts_.truncated;
    }
    for (std::uint64_t at = 0; at < inputs; at += longest) {
      const DocumentPart piece{
          item.source, static_cast<std::uint32_t>(at),
          static_cast<std::uint32_t>(
              std::min<std::uint64_t>(longest, inputs - at)
          ),
          d
      };
      counts_.split += at > 0;
      if (unit_ > 1 || trains(piece)) {
        pieces.push_back(piece);
        trained = true;
      }
    }
  }
  counts_.untrained += !trained;
}

void Planner::arrange_pack(
    std::vector<DocumentPart>& pieces,
    std::size_t waiting,
    bool last
) {
  const std::uint64_t per_batch = config_.tokens_per_batch;
  RandomStream random(key_.fold(position_.step));
  while (!pieces.empty()) {
    const std::uint64_t total = total_length(pieces);
    std::uint64_t steps = total / per_batch;
    if (last && !config_.drop_last) {
      steps = std::max<std::uint64_t>(steps, 1);
    } else if (!last) {
      // The last rows are filled from the pieces that stay in the window.
      steps = steps > 1 ? steps - 1 : steps;
    }
    if (steps == 0) break;
    const std::size_t first = window_.size();
    std::vector<std::uint32_t> capacities;
    for (std::uint64_t s = 0; s < steps; ++s) {
      BatchPlan plan;
      plan.length = shapes_.length_at(position_.step + window_.size());
      plan.rows = static_cast<std::uint32_t>(per_batch / plan.length);
      capacities.insert(capacities.end(), plan.rows, plan.length);
      window_.push_back(std::move(plan));
    }
    auto bins = best_fit_decreasing(pieces, capacities, waiting);
    waiting = 0;
    fill_gaps(bins, capacities, pieces);
    deal_rows(first, bins, capacities, random);
    if (!last) break;
  }
  if (last) pieces.clear();
}

void Planner::fill_gaps(
    std::vector<std::vector<DocumentPart>>& bins,
    const std::vector<std::uint32_t>& capacities,
    std::vector<DocumentPart>& pieces
) {
  const bool fills =
      config_.overlong == Overlong::kSplit || config_.shapes.size() > 1;
  std::vector<bool> splits;
  for (const auto& p : pieces) {
    splits.push_back(fills && may_split(p.source, p.document));
  }
  GapFiller filler(pieces, std::move(splits));
  for (std::size_t b = 0; b < bins.size(); ++b) {
    filler.fill(bins[b], capacities[b]);
  }
  counts_.split += filler.finish();
}

// The longest pieces came first, so the rows of each length are shuffled
// before the batches get them.
void Planner::deal_rows(
    std::size_t first,
    const std::vector<std::vector<DocumentPart>>& bins,
    const std::vector<std::uint32_t>& capacities,
    RandomStream& random
) {
  std::map<std::uint32_t, std::vector<std::size_t>> of_length;
  for (std::size_t b = 0; b < bins.size(); ++b) {
    of_length[capacities[b]].push_back(b);
  }
  for (auto& [length, indices] : of_length) {
    if (config_.shuffle) shuffle(indices, random);
    std::reverse(indices.begin(), indices.end());
  }
  for (std::size_t w = first; w < window_.size(); ++w) {
    for (std::uint32_t row = 0; row < window_[w].rows; ++row) {
      auto& indices = of_length[window_[w].length];
      add_row(window_[w], row, bins[indices.back()]);
      indices.pop_back();
    }
  }
}

void Planner::arrange_pad(std::vector<DocumentPart>& pieces, bool last) {
  std::vector<std::vector<std::size_t>> groups(config_.buckets.size());
  for (std::size_t i = 0; i < pieces.size(); i += unit_) {
    std::uint32_t length = pieces[i].length;
    if (unit_ > 1) length = std::max(length, pieces[i + 1].length);
    const auto bucket = std::lower_bound(
        config_.buckets.begin(), config_.buckets.end(), length
    );
    groups[static_cast<std::size_t>(bucket - config_.buckets.begin())]
        .push_back(i);
  }
  std::vector<std::size_t> left;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto rest = pad_rows(pieces, groups[g], config_.buckets[g], last);
    left.insert(left.end(), rest.begin(), rest.end());
  }
  if (config_.shuffle) {
    RandomStream random(key_.fold(position_.step));
    shuffle(window_, random);
  }
  // The pieces are sorted by arrival, so that none waits for ever.
  std::sort(left.begin(), left.end());
  std::vector<DocumentPart> kept;
  for (const auto i : left) {
    const auto from = pieces.begin() + static_cast<long>(i);
    if (!last) kept.insert(kept.end(), from, from + unit_);
  }
  pieces = std::move(kept);
}

// Makes batches of one bucket's units; returns the units that fill none.
std::vector<std::size_t> Planner::pad_rows(
    const std::vector<DocumentPart>& pieces,
    const std::vector<std::size_t>& units,
    std::uint32_t length,
    bool last
) {
  BatchPlan empty;
  empty.length = length;
  empty.rows = static_cast<std::uint32_t>(config_.tokens_per_batch / length);
  const std::size_t per_batch = empty.rows / unit_;
  std::size_t at = 0;
  while (at < units.size()) {
    const std::size_t count = std::min(per_batch, units.size() - at);
    if (count < per_batch && (!last || config_.drop_last)) break;
    BatchPlan plan = empty;
    for (std::uint32_t row = 0; row < count * unit_; ++row) {
      add_row(plan, row, {pieces[units[at + row / unit_] + row % unit_]});
    }
    window_.push_back(std::move(plan));
    at += count;
  }
  return {units.begin() + static_cast<long>(at), units.end()};
}

}  // namespace hearth::data
