#pragma once
// Checkpoints of a run, RUN/checkpoints/step-000120/:
//   weights.safetensors    float32 masters of what is trained
//   optimizer.safetensors  the optimiser's state
//   state.json             the loop's own: loader, seed, schedule, ...
//   checksums.json         size and XXH64 of each of them
// A checkpoint is there whole or not at all, whatever ends the process. What
// the state means is the loop's business. One process writes at a time (see
// RunDirectory); any may read.
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/io/safetensors.h"
#include "hearth/nn/parameter_set.h"
#include "hearth/optim/optimizer.h"

namespace hearth::train {
namespace mx = mlx::core;
using optim::NamedArray;

struct CheckpointContent {
  long step = 0;
  // Evaluated and row-major.
  std::vector<NamedArray> weights, optimizer;
  Json state = Json::object();
};

// The masters of trained parameters, not copied.
std::vector<NamedArray> weights_of(std::span<nn::Weight* const> parameters);

// Writes it and returns its folder. It takes the place of one of the same step.
// When it fails (a full disk) it throws IoError, what was begun is removed and
// earlier checkpoints stand.
std::string save_checkpoint(
    const std::string& run,
    const CheckpointContent& content
);

// Puts right what an interrupted save has left. For the one who writes, before
// the first look.
void clear_leftovers(const std::string& run);

class Checkpoint {
 public:
  // Reads everything once and compares the checksums. Throws IoError or
  // FormatError, one line that names the file.
  static Checkpoint load(const std::string& folder);

  long step() const { return step_; }
  const std::string& path() const { return path_; }
  const Json& state() const { return state_; }
  std::span<const io::TensorInfo> weights() const {
    return weights_->tensors();
  }

  // Copies the weights into the masters and packs companions anew. Throws
  // FormatError, having changed nothing, unless names and shapes are the same.
  // Each tensor goes from the mapped file into its place, so that a run that
  // fits its budget can be gone on with under it.
  void copy_weights(std::span<nn::Weight* const> parameters) const;
  // The same with the optimiser's state.
  void copy_optimizer(optim::Optimizer& optimizer) const;
  // As the file has it; valid as long as this.
  std::vector<optim::StoredArray> optimizer_state() const;

 private:
  long step_ = 0;
  std::string path_;
  Json state_;
  std::shared_ptr<const io::SafetensorsFile> weights_, optimizer_;
};

// Steps that have a folder, ascending; whether they are valid is not asked.
std::vector<long> checkpoint_steps(const std::string& run);
std::string checkpoint_path(const std::string& run, long step);

// From the newest up to the step `most` back, the first that loads; what was
// passed over is named, a sentence each.
struct LatestCheckpoint {
  std::optional<Checkpoint> checkpoint;
  std::vector<std::string> skipped;
};
LatestCheckpoint latest_valid(
    const std::string& run,
    long most = std::numeric_limits<long>::max()
);

// Where the gates' schedule stood at a checkpoint; none of a model without
// gates, or where it was not written down. Throws as Checkpoint::load does.
std::optional<long> gate_step(const std::string& folder);

// RUN/best.json names the step with the lowest validation loss.
struct BestCheckpoint {
  long step = 0;
  double loss = 0;
};
void set_best(const std::string& run, const BestCheckpoint& best);
void clear_best(const std::string& run);
// Nothing when there is none; throws FormatError when the file is broken.
std::optional<BestCheckpoint> best_checkpoint(const std::string& run);

// What training finds in the weights of a step is in the steps after it. From
// that many on, a checkpoint before them counts as healthy.
inline constexpr long kProvingSteps = 8;

struct KeptCheckpoints {
  int last = 2;    // the newest so many that are whole, by their files' sizes
  long best = -1;  // a step that stays; -1: none. So do the best ones that
                   // the states of those that stay name as `best_step`.
  // The last step that was not in trouble. The newest checkpoint that is
  // healthy by then stays, and the one that is next to be.
  long settled = 0;
};
// Removes all others, and what an interrupted save has left. Returns the
// removed steps.
std::vector<long> prune_checkpoints(
    const std::string& run,
    const KeptCheckpoints& kept
);
// Removes those after a step that training went back to.
void remove_checkpoints_after(const std::string& run, long step);

}  // namespace hearth::train
