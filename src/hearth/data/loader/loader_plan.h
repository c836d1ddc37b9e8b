#pragma once
// Decides what each batch holds, from document lengths alone. One thread at a
// time; what it decides depends on its position and the config, on nothing
// else.
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "hearth/data/loader/loader.h"
#include "hearth/data/loader/loader_order.h"

namespace hearth::data {

struct DocumentPart {
  std::uint32_t source = 0, begin = 0, length = 0;
  std::uint64_t document = 0;
};

struct BatchPlan {
  std::uint64_t step = 0, epoch = 0;
  std::uint32_t rows = 0, length = 0;
  std::vector<Sample> samples;
  // kStream across documents: each row lists one token more than it holds,
  // the last one's target.
  bool overlapped = false;
};

// Where the planner is. For kPad and kPack: where its window began, and how
// many of the window's batches were given out.
struct PlanPosition {
  std::uint64_t step = 0, epoch = 0, index = 0;
  std::uint32_t offset = 0;  // kStream: into the document
  std::uint64_t emitted = 0;
  std::vector<DocumentPart> carried;  // left over from the window before
  LoaderStats counts;  // of documents, so that a restart keeps them
};

class Planner {
 public:
  Planner(std::shared_ptr<const TokenCache> cache, const LoaderConfig& config);
  // False at the end of the last epoch.
  bool next(BatchPlan& plan);
  PlanPosition position() const { return position_; }
  // The document counters now.
  const LoaderStats& counts() const { return counts_; }
  void seek(const PlanPosition& position);

  const TokenCache& cache() const { return *cache_; }
  const LoaderConfig& config() const { return config_; }

 private:
  std::shared_ptr<const TokenCache> cache_;
  LoaderConfig config_;
  ShapeSchedule shapes_;
  DocumentOrder order_;
  RandomKey key_;
  std::uint32_t unit_ = 1;  // documents that stay together
  PlanPosition position_;
  LoaderStats counts_;
  // The window's batches, in order, and what follows the window.
  std::vector<BatchPlan> window_;
  PlanPosition after_window_;
  bool have_window_ = false;

  std::uint64_t length_of(std::uint32_t source, std::uint64_t doc) const;
  bool trains(const DocumentPart& piece) const;
  bool may_split(std::uint32_t source, std::uint64_t document) const;
  bool at_end(const PlanPosition& p) const;
  // kStream
  bool next_stream(BatchPlan& plan);
  bool take_stream(
      PlanPosition& p,
      std::uint32_t want,
      DocumentPart& piece
  ) const;
  // kPad, kPack
  bool next_windowed(BatchPlan& plan);
  bool build_window();
  std::vector<DocumentPart> collect(PlanPosition& p);
  void add_document(
      const DocumentOrder::Item& item,
      std::vector<DocumentPart>& pieces
  );
  void arrange_pack(
      std::vector<DocumentPart>& pieces,
      std::size_t waiting,
      bool last
  );
  void fill_gaps(
      std::vector<std::vector<DocumentPart>>& bins,
      const std::vector<std::uint32_t>& capacities,
      std::vector<DocumentPart>& pieces
  );
  void deal_rows(
      std::size_t first,
      const std::vector<std::vector<DocumentPart>>& bins,
      const std::vector<std::uint32_t>& capacities,
      RandomStream& random
  );
  void arrange_pad(std::vector<DocumentPart>& pieces, bool last);
  std::vector<std::size_t> pad_rows(
      const std::vector<DocumentPart>& pieces,
      const std::vector<std::size_t>& units,
      std::uint32_t length,
      bool last
  );
};

// Puts pieces into bins of given capacities, best fit decreasing: the longest
// piece first, each into the bin with the least room that still holds it. The
// `first` pieces go before all others: the shortest are left over each time
// and would wait for ever. Returns the bins' contents and keeps what did not
// fit in `pieces`.
std::vector<std::vector<DocumentPart>> best_fit_decreasing(
    std::vector<DocumentPart>& pieces,
    const std::vector<std::uint32_t>& capacities,
    std::size_t first = 0
);

}  // namespace hearth::data
