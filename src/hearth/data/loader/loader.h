#pragma once
// Batches from a token cache. What each batch holds is planned in one place,
// in order; worker threads only fill buffers. So the order is the same at any
// worker count, and a position is a few numbers.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/data/cache/cache.h"
#include "hearth/data/loader/loader_shapes.h"

namespace hearth::data {

enum class Arrange {
  kStream,  // documents one after another, rows always full
  kPad,     // one document a row, in buckets of similar length
  kPack,    // several whole documents a row, best fit decreasing
};

// What happens to a document longer than the longest row. kAuto splits one
// whose every token carries loss, such as plain text, and cuts the others: the
// later part of a chat lacks what it answers to. Documents that may be split
// also fill the room that packing leaves in rows, with kSplit or where rows
// have several lengths; with kAuto and one length those that fit stay whole.
enum class Overlong { kAuto, kSplit, kTruncate, kDrop };

struct LoaderConfig {
  Split split = Split::kTrain;
  Arrange arrange = Arrange::kPack;
  Overlong overlong = Overlong::kSplit;
  // Row lengths; one is a fixed length. Several need kStream or kPack.
  std::vector<Shape> shapes = {{1024, 1}};
  std::uint64_t guarantee = 0;  // see ShapeSchedule
  // The tokens of a batch are the same at every step and shape; a multiple of
  // every row length.
  std::uint64_t tokens_per_batch = 16384;
  // kPad: row lengths below the longest. Empty: halves of it, down to 32.
  std::vector<std::uint32_t> buckets;
  // kStream: a row is one text, as GPT-2 was trained; else documents are kept
  // apart as everywhere.
  bool cross_documents = false;
  std::uint32_t window = 4096;  // documents that are arranged together
  std::vector<double> weights;  // of the sources; empty: as they come
  bool shuffle = true;
  std::uint64_t seed = 0;
  std::uint64_t epochs = 0;  // 0: endless
  bool drop_last = false;    // leave out a last batch that is not full
  std::int32_t pad_id = 0;
  int workers = 1;  // 0: fill when asked; -1: choose by measurement
  // The demand that -1 measures against.
  double demand_tokens_per_second = 1e6;
  int prefetch = 4;         // batches made ahead
  int rank = 0, ranks = 1;  // rows are dealt to ranks in equal parts
};

// A stretch of a document in a row. `length` inputs; the target of the last
// one is the document's next token.
struct Sample {
  std::uint32_t row = 0, column = 0, length = 0;
  std::uint32_t source = 0;
  std::uint64_t document = 0;
  std::uint32_t begin = 0;
  bool operator==(const Sample&) const = default;
};

// Row-major [rows, length]. targets[i] is what the token at i must predict,
// with weight weights[i]: 0 for padding, prompts and the end of a document.
// Segments count 1, 2, ... along a row and are 0 for padding; positions start
// at 0 in each. Attention must stay inside a segment.
struct Batch {
  std::uint64_t step = 0, epoch = 0;
  std::uint32_t rows = 0, length = 0;
  std::vector<std::int32_t> ids, targets, segments, positions;
  std::vector<float> weights;
  std::vector<Sample> samples;
  std::uint64_t tokens = 0;   // not padding
  std::uint64_t trained = 0;  // weight above 0
};

struct LoaderStats {
  std::uint64_t batches = 0, tokens = 0, padding = 0, trained = 0;
  std::uint64_t truncated = 0, split = 0, dropped = 0, untrained = 0;
  double stall_seconds = 0;  // the caller waited in next()
  double fill_seconds = 0;   // workers filled buffers, summed
  int workers = 0;
};

// One measurement made to choose the number of workers.
struct WorkerTrial {
  int workers = 0;
  double stall_share = 0;
};

// One thread calls next(), state() and restore(); stats() may be called from
// any.
class Loader {
 public:
  // Throws UsageError when the config cannot be met by the cache.
  Loader(std::shared_ptr<const TokenCache> cache, LoaderConfig config);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch; false at the end. The buffers in `batch` are taken back
  // and used again: hand in the one you are done with.
  bool next(Batch& batch);

  // The position after the last batch that next() gave.
  Json state() const;
  // Goes to such a position. Throws UsageError, saying what differs, when it
  // is of other data or another config; workers and prefetch may differ, and
  // epochs too, where documents are not in the middle of being arranged.
  void restore(const Json& state);

  LoaderStats stats() const;
  const std::vector<WorkerTrial>& trials() const { return trials_; }

 private:
  class Engine;
  std::vector<WorkerTrial> trials_;
  std::unique_ptr<Engine> engine_;
};

// What an epoch loses to documents longer than the longest row.
struct OverlongReport {
  std::uint64_t documents = 0, tokens = 0;  // of the split, in all
  std::uint64_t split = 0, cut = 0, dropped = 0;
  std::uint64_t lost_tokens = 0;  // of cut and dropped ones: never seen

  // A line for people; empty when no document is too long.
  std::string text(std::uint32_t longest) const;
};
OverlongReport find_overlong(
    const TokenCache& cache,
    const LoaderConfig& config
);

// Checks what can be checked without data.
void check_loader_config(const LoaderConfig& config);

// The row lengths of its batches, shortest first. Throws as the loader does.
std::vector<std::uint32_t> row_lengths(const LoaderConfig& config);

// How many batches such a loader gives until its epochs are through, from the
// beginning or from a position (Loader::state), by planning them all; nothing
// is read but lengths. Throws UsageError for an endless one.
std::uint64_t count_batches(
    const std::shared_ptr<const TokenCache>& cache,
    const LoaderConfig& config,
    const Json& from = {}
);

// Tries worker counts against the demand and returns what it saw; the best
// one, the smallest whose stall is under 0.5 % or else the least, is last.
std::vector<WorkerTrial> try_workers(
    const std::shared_ptr<const TokenCache>& cache,
    const LoaderConfig& config
);

}  // namespace hearth::data
