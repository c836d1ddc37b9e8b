#include "hearth/data/loader/loader_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::data {
namespace {

std::uint32_t unit_of(const std::vector<DocumentSet>& sets) {
  std::uint32_t unit = 0;
  for (const auto& set : sets) {
    if (set.documents() == 0) continue;
    const std::uint32_t own = set.pairs() ? 2 : 1;
    if (unit != 0 && own != unit) {
      throw UsageError(
          "[data.loader] preferences cannot be mixed with other examples"
      );
    }
    unit = own;
  }
  if (unit == 0) {
    throw UsageError("[data.loader] this split of the cache has no documents");
  }
  return unit;
}

std::vector<OrderSource> order_sources(
    const std::vector<DocumentSet>& sets,
    const LoaderConfig& config
) {
  const std::uint32_t unit = unit_of(sets);
  if (!config.weights.empty() && config.weights.size() != sets.size()) {
    throw UsageError(
        fmt::format(
            "[data.loader] {} sources need as many weights, got {}",
            sets.size(), config.weights.size()
        )
    );
  }
  std::vector<OrderSource> sources;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const double weight = config.weights.empty() ? 0 : config.weights[i];
    sources.push_back({sets[i].documents() / unit, sets[i].tokens(), weight});
  }
  return sources;
}

}  // namespace

Planner::Planner(
    std::shared_ptr<const TokenCache> cache,
    const LoaderConfig& config
)
    : cache_(std::move(cache)),
      config_(config),
      shapes_(
          config.shapes,
          config.guarantee,
          RandomKey(config.seed).fold("loader.shapes")
      ),
      order_(
          order_sources(cache_->sets(config.split), config),
          RandomKey(config.seed).fold("loader.order"),
          config.shuffle
      ),
      key_(RandomKey(config.seed).fold("loader.window")),
      unit_(unit_of(cache_->sets(config.split))) {
  if (unit_ == 2 && config_.arrange != Arrange::kPad) {
    throw UsageError(
        "[data.loader] preferences need one document a row (data.pack: false)"
    );
  }
  for (const auto bucket : config_.buckets) {
    const auto rows = config_.tokens_per_batch / bucket /
                      static_cast<std::uint64_t>(config_.ranks);
    if (rows % unit_ != 0) {
      throw UsageError(
          fmt::format(
              "[data.loader] preferences need an even number of rows, got {} "
              "of {}",
              rows, bucket
          )
      );
    }
  }
}

std::uint64_t Planner::length_of(
    std::uint32_t source,
    std::uint64_t document
) const {
  return cache_->sets(config_.split)[source].length(document);
}

bool Planner::trains(const DocumentPart& piece) const {
  const auto place =
      cache_->sets(config_.split)[piece.source].place(piece.document);
  if (!place.shard->has_spans()) return true;
  const std::uint64_t first = piece.begin + std::uint64_t{1};
  for (const auto& span : place.shard->spans(place.index)) {
    if (span.end > first && span.begin < first + piece.length) return true;
  }
  return false;
}

bool Planner::may_split(std::uint32_t source, std::uint64_t document) const {
  if (config_.overlong != Overlong::kAuto) {
    return config_.overlong == Overlong::kSplit;
  }
  return cache_->sets(config_.split)[source].all_trained(document);
}

bool Planner::at_end(const PlanPosition& p) const {
  return config_.epochs > 0 && p.epoch >= config_.epochs;
}

bool Planner::next(BatchPlan& plan) {
  plan.samples.clear();
  plan.overlapped = false;
  return config_.arrange == Arrange::kStream ? next_stream(plan)
                                             : next_windowed(plan);
}

void Planner::seek(const PlanPosition& position) {
  position_ = position;
  counts_ = position.counts;
  have_window_ = false;
}

// Takes up to `want` inputs of the document at p and moves p behind them.
bool Planner::take_stream(
    PlanPosition& p,
    std::uint32_t want,
    DocumentPart& piece
) const {
  // Kept apart, a document's last token is a target only.
  const std::uint64_t unused = config_.cross_documents ? 0 : 1;
  for (std::uint64_t tried = 0; !at_end(p); ++tried) {
    if (tried > order_.size()) {
      throw UsageError("[data.loader] no document has two tokens or more");
    }
    const auto item = order_.at(p.epoch, p.index);
    const std::uint64_t length = length_of(item.source, item.index);
    const std::uint64_t usable = length > unused ? length - unused : 0;
    if (p.offset < usable) {
      const auto take = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(want, usable - p.offset)
      );
      piece = {item.source, p.offset, take, item.index};
      p.offset += take;
      if (p.offset < usable) return true;
    }
    p.offset = 0;
    if (++p.index == order_.size()) p.index = 0, ++p.epoch;
    if (usable > 0) return true;
  }
  return false;
}

bool Planner::next_stream(BatchPlan& plan) {
  PlanPosition p = position_;
  plan.step = p.step;
  plan.epoch = p.epoch;
  plan.length = shapes_.length_at(p.step);
  plan.rows =
      static_cast<std::uint32_t>(config_.tokens_per_batch / plan.length);
  plan.overlapped = config_.cross_documents;
  bool full = true;
  for (std::uint32_t row = 0; row < plan.rows && full; ++row) {
    std::uint32_t column = 0;
    DocumentPart piece;
    while (column < plan.length &&
           (full = take_stream(p, plan.length - column, piece))) {
      plan.samples.push_back(
          {row, column, piece.length, piece.source, piece.document, piece.begin}
      );
      column += piece.length;
    }
    PlanPosition peek = p;
    if (plan.overlapped && full && take_stream(peek, 1, piece)) {
      plan.samples.push_back(
          {row, column, 1, piece.source, piece.document, piece.begin}
      );
    }
  }
  if (plan.samples.empty() || (!full && config_.drop_last)) return false;
  position_ = std::move(p);
  ++position_.step;
  return true;
}

}  // namespace hearth::data
