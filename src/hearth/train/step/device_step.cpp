#include "hearth/train/step/device_step.h"

#include <algorithm>
#include <deque>
#include <string_view>

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/ops/op.h"
#include "hearth/train/step/accumulator.h"
#include "hearth/train/step/device_update.h"
#include "hearth/train/step/memory_bound.h"

namespace hearth::train {
namespace {

// MLX says so in words alone.
bool memory_ran_out(std::string_view what) {
  return what.find("nable to allocate") != std::string_view::npos ||
         what.find("out of memory") != std::string_view::npos ||
         what.find("maximum allowed buffer size") != std::string_view::npos;
}

class DeviceStep : public Step {
 public:
  DeviceStep(const StepParts& parts, const StepConfig& config)
      : Step(config),
        parts_(parts),
        gradient_(parts, config.compute),
        update_(parts, config) {}

  // In float16 the next step's loss scale hangs on this one's gradients.
  std::size_t most_under_way() const override {
    return config_.compute == mx::float16 ? 1 : 2;
  }

  void send(const data::Batch& batch, const StepRequest& how) override {
    set_gates(parts_.model, how.number);
    Sent sent;
    sent.start = seconds_now();
    std::uint32_t rows =
        whole_groups(how.rows, parts_.objective.row_group(), batch.rows);
    auto sums = gradients(batch, how, rows, sent);
    sent.rows = rows;
    sent.numbers = update_.send(
        std::move(sums), {how.lr, config_.loss_scale.scale(), how.limits}
    );
    if (sent.learns) bound_.learnt(*sent.learns);
    sent_.push_back(std::move(sent));
  }

  StepResult take() override {
    Sent sent = std::move(sent_.front());
    sent_.pop_front();
    const auto numbers = UpdateFunction::numbers(std::move(sent.numbers));
    StepResult result;
    result.loss = numbers.loss_sum / numbers.weight_sum;
    result.weight = numbers.weight_sum;
    result.norm = numbers.norm;
    result.rows = sent.rows;
    result.shrunk = sent.shrunk;
    result.peak = mx::get_peak_memory();
    const double now = seconds_now();
    result.gradient_seconds = now - std::max(sent.start, taken_);
    taken_ = now;
    if (numbers.applied) return result;
    parts_.optimizer.uncount();
    if (numbers.weight_sum <= 0) {
      result.outcome = StepOutcome::weightless;
    } else if (overflows(result.loss, result.norm)) {
      result.outcome = StepOutcome::overflowed;
    } else {
      result.outcome = StepOutcome::refused;
    }
    return result;
  }

  void weights_changed() override { update_.forget(); }

  void make_room_for(std::uint64_t tokens) override {
    bound_.lift();
    Step::make_room_for(tokens);
  }

 private:
  // A step that the device may be at still.
  struct Sent {
    mx::array numbers{0.0f};
    std::uint32_t rows = 0;
    bool shrunk = false;
    double start = 0;
    std::optional<MemoryBound::Shape> learns;
  };

  StepParts parts_;
  GradientFunction gradient_;
  UpdateFunction update_;
  MemoryBound bound_;
  std::deque<Sent> sent_;
  double taken_ = 0;

  // Halves the rows of a micro-batch where memory runs out: the weights are as
  // they were then.
  GradientFunction::Sums gradients(
      const data::Batch& batch,
      const StepRequest& how,
      std::uint32_t& rows,
      Sent& sent
  ) {
    const std::uint32_t together = parts_.objective.row_group();
    for (;;) {
      std::string why;
      try {
        return gradients_by(batch, how, rows, sent);
      } catch (const OutOfMemory& e) {
        why = e.what();
      } catch (const std::exception& e) {
        if (!memory_ran_out(e.what())) throw;
        why = e.what();
      }
      mx::synchronize();
      mx::clear_cache();
      if (rows <= together) throw_no_room(batch, why);
      const std::uint32_t before = rows;
      rows = fewer_rows(rows, together);
      sent.shrunk = true;
      if (how.shrunk) how.shrunk(before, rows, why);
    }
  }

  GradientFunction::Sums gradients_by(
      const data::Batch& batch,
      const StepRequest& how,
      std::uint32_t rows,
      Sent& sent
  ) {
    std::optional<RandomKey> noise;
    if (config_.noise) {
      noise = config_.noise->fold(static_cast<std::uint64_t>(how.number));
    }
    const mx::array scale(static_cast<float>(config_.loss_scale.scale()));
    const bool alone = rows >= batch.rows;
    std::optional<GradientFunction::Sums> sums;
    for (std::uint32_t begin = 0; begin < batch.rows; begin += rows) {
      const auto micro = make_micro_batch(
          parts_.objective, batch, begin, std::min(begin + rows, batch.rows),
          noise
      );
      const MemoryBound::Shape shape{
          static_cast<std::uint32_t>(micro.rows), batch.length,
          micro.segments.has_value(), sums.has_value()
      };
      const bool learns = bound_.begin(shape);
      sums = gradient_(update_.weights(), micro, scale, std::move(sums), alone);
      std::vector<mx::array> all = sums->gradients;
      all.insert(all.end(), {sums->loss, sums->weight});
      mx::async_eval(all);
      // The last one's is known once the update has run, too.
      if (learns && begin + rows < batch.rows) bound_.learnt(shape);
      if (learns) sent.learns = shape;
    }
    return std::move(*sums);
  }

  [[noreturn]] static void throw_no_room(
      const data::Batch& batch,
      const std::string& why
  ) {
    throw OutOfMemory(
        fmt::format(
            "one row of {} tokens does not fit in the device's memory: {}",
            batch.length, why
        ),
        "shorten data.length, set train.checkpointing=all, use lora, or a "
        "smaller model"
    );
  }
};

}  // namespace

std::unique_ptr<Step> make_device_step(
    const StepParts& parts,
    const StepConfig& config
) {
  return std::make_unique<DeviceStep>(parts, config);
}

}  // namespace hearth::train
