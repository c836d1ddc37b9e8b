#pragma once
// One optimiser step, from a batch to moved weights: micro-batches are summed
// to gradients (scaled loss, noise, scheduled gates), their norm is taken and
// clipped, the optimiser moves the weights. The training loop, the trials of
// `hearth tune` and the bench all make their steps here, so that what is
// measured is what trains. How a device makes a step is a child of Step.
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "hearth/base/random.h"
#include "hearth/optim/loss_scale.h"
#include "hearth/optim/optimizer.h"
#include "hearth/train/objectives/objective.h"

namespace hearth::train {

// What is the same for all steps of a run.
struct StepConfig {
  mx::Dtype compute = mx::bfloat16;
  int eval_interval = 1;  // micro-batches evaluated together
  double clip = 1;        // limit of the norm; 0: none
  optim::LossScale loss_scale = optim::LossScale::off();
  // Each step folds its number into it; absent where nothing is random.
  std::optional<RandomKey> noise;
};

// What a step works on. All of it must outlive the step.
struct StepParts {
  models::Decoder& model;
  const Objective& objective;
  optim::Optimizer& optimizer;
};

// Beyond them a step is left out. They are known before it begins, since a
// device that works ahead of the host decides by itself.
struct StepLimits {
  double loss = std::numeric_limits<double>::infinity();
  double norm = std::numeric_limits<double>::infinity();

  // Whether both are finite and within.
  bool hold(double mean_loss, double gradient_norm) const;
};

enum class StepOutcome : unsigned char {
  applied,
  refused,     // beyond the limits, or not finite
  overflowed,  // gradients were beyond float16; the loss is scaled less now
  weightless,  // no token of the batch counts
};

struct StepResult {
  double loss = 0;    // mean over what counts
  double weight = 0;  // how much counts: the mean is the sum divided by it
  double norm = 0;    // of the mean's gradients, before clipping
  StepOutcome outcome = StepOutcome::applied;
  std::uint32_t rows = 0;  // of a micro-batch
  bool shrunk = false;     // they are fewer than asked: memory ran out
  double gradient_seconds = 0, update_seconds = 0;
  std::size_t peak = 0;  // bytes
};

struct StepRequest {
  std::int64_t number = 0;  // steps made before: noise and gates go by it
  std::uint32_t rows = 1;   // of a micro-batch; fewer where memory runs out
  double lr = 0;
  StepLimits limits = {};
  // Told when rows had to be halved: from, to, why.
  std::function<void(std::uint32_t, std::uint32_t, const std::string&)> shrunk =
      nullptr;
};

class Step {
 public:
  explicit Step(const StepConfig& config) : config_(config) {}
  virtual ~Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // Makes a step or, on a device, sends it, without waiting for those that were
  // sent before. Throws OutOfMemory, with the weights as they were, when not
  // even one row fits.
  virtual void send(const data::Batch& batch, const StepRequest& how) = 0;
  // Waits for the oldest step that was sent.
  virtual StepResult take() = 0;
  StepResult run(const data::Batch& batch, const StepRequest& how) {
    send(batch, how);
    return take();
  }
  // So many steps may be sent before the first is taken. While more than none
  // are, weights and optimiser are those of the last that was sent.
  virtual std::size_t most_under_way() const { return 1; }
  // Told when somebody else has changed weights or the optimiser's state.
  virtual void weights_changed() {}

  // Before passes of micro-batches of so many tokens that steps do not make (a
  // validation): gives back what passes of another size have left behind to be
  // used again.
  virtual void make_room_for(std::uint64_t tokens);

  optim::LossScale& loss_scale() { return config_.loss_scale; }
  const optim::LossScale& loss_scale() const { return config_.loss_scale; }

 protected:
  StepConfig config_;

  // Whether gradients went beyond float16 and a smaller scale of the loss,
  // which is set here, is the answer.
  bool overflows(double loss, double norm);

 private:
  std::uint64_t kept_tokens_ = 0;  // of the micro-batches of the last pass
};

// The step for the device that arrays are on.
std::unique_ptr<Step> make_step(
    const StepParts& parts,
    const StepConfig& config
);

// Moves scheduled gates to where they stand after so many steps.
void set_gates(models::Decoder& model, std::int64_t step);

}  // namespace hearth::train
