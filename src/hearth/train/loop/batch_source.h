#pragma once
// Where the loop's batches come from: the session's own data, or what a caller
// makes as it goes (answers that a model samples, rows that a teacher scores).
#include <cstdint>
#include <memory>
#include <optional>

#include "hearth/data/loader/loader.h"

namespace hearth::train {

struct Session;

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // The next batch; false at the end. The buffers in `batch` may be taken back.
  virtual bool next(data::Batch& batch) = 0;
  // The place after the last batch, kept in checkpoints, and the way back.
  virtual Json state() const = 0;
  virtual void restore(const Json& state) = 0;
  // Batches from here to the end, for a run by epochs; nothing when it never
  // ends.
  virtual std::optional<std::uint64_t> left() const { return {}; }
  // How long the loop has waited in next(), in all.
  virtual double stall_seconds() const { return 0; }
};

// The session's training split as its recipe arranges it; with train.epochs it
// ends with the last of them.
std::unique_ptr<BatchSource> session_batches(const Session& session);

}  // namespace hearth::train
