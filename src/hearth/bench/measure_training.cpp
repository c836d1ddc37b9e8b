// What a whole training step reaches of the peak, by width: the planner's
// measure of time. Small models, a few steps each.
#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/thread_pool.h"
#include "hearth/bench/measure.h"
#include "hearth/bench/train_step.h"

namespace hearth::bench {
namespace {

constexpr int kWidths[] = {64, 128, 256, 512, 768};
// Timed twice where that is quick.
constexpr int kTimed = 2;
constexpr double kQuick = 0.5;

// Two layers of usual proportions; a vocabulary that is a small part.
StepShape shape_of(int dim, bool bf16) {
  StepShape s;
  s.dim = dim, s.layers = 2, s.heads = std::max(1, dim / 64);
  s.ffn = dim * 8 / 3 / 32 * 32;
  s.vocab = 2048;
  s.rows = dim >= 512 ? 8 : 16, s.length = 256;
  s.bf16 = bf16;
  return s;
}

double best_seconds(TrainStep& step) {
  step();
  double best = 1e30;
  for (int i = 0; i < kTimed; ++i) {
    const double start = seconds_now();
    step();
    best = std::min(best, seconds_now() - start);
    if (best > kQuick) break;
  }
  return best;
}

// The CPU's peaks are what is measured, so the steps are the CPU's too.
class OnCpu {
 public:
  OnCpu() : before_(mlx::core::default_device()) {
    mlx::core::set_default_device(mlx::core::Device::cpu);
  }
  ~OnCpu() { mlx::core::set_default_device(before_); }
  OnCpu(const OnCpu&) = delete;
  OnCpu& operator=(const OnCpu&) = delete;

 private:
  mlx::core::Device before_;
};

}  // namespace

void measure_training(hardware::Peaks& peaks, Progress& progress) {
  const OnCpu cpu;
  const int threads = shared_pool().size();
  for (const char* dtype : {"bf16", "fp32"}) {
    const double peak = hardware::best_gops(peaks, dtype, threads);
    if (peak <= 0) continue;
    for (const int dim : kWidths) {
      progress.update(0, fmt::format("training in {}, width {}", dtype, dim));
      const StepShape shape = shape_of(dim, dtype == std::string_view("bf16"));
      TrainStep step(shape, 1);
      const double rate = step_flops(shape) / best_seconds(step) * 1e-9;
      peaks.training.push_back({dtype, threads, dim, rate / peak});
    }
  }
  mlx::core::clear_cache();
}

}  // namespace hearth::bench
