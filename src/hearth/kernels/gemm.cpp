// Which of a table's two bf16 product families is the faster one here.
#include "hearth/kernels/gemm.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "hearth/base/clock.h"
#include "hearth/kernels/table.h"

namespace hearth::kernels {
namespace {

double seconds_per_operation(PeakLoop loop, long rounds) {
  const double start = seconds_now();
  const double operations = loop(rounds);
  return (seconds_now() - start) / operations;
}

// Runs both loops alternately and compares the best rate of each, so that a
// disturbance of one round is not mistaken for the processor's speed. The rates
// differ by a factor of two or more.
bool bf16_products_win(const PeakKernels& peak) {
  if (!peak.bf16) return false;
  constexpr int kTurns = 5;
  constexpr long kRounds = 800;
  double bf16 = 1.0, fp32 = 1.0;
  peak.bf16(kRounds), peak.fp32(kRounds);
  for (int i = 0; i < kTurns; ++i) {
    bf16 = std::min(bf16, seconds_per_operation(peak.bf16, kRounds));
    fp32 = std::min(fp32, seconds_per_operation(peak.fp32, kRounds));
  }
  return bf16 < fp32;
}

}  // namespace

const GemmFamily& bf16_gemm(const Table& table) {
  static std::mutex mutex;
  static std::array<const GemmFamily*, 16> chosen{};
  const auto all = tables();
  const auto index = static_cast<std::size_t>(
      std::find(all.begin(), all.end(), &table) - all.begin()
  );
  const std::lock_guard lock(mutex);
  const GemmFamily*& family = chosen.at(index);
  if (!family) {
    family = bf16_products_win(*table.peak) ? &table.gemm->bf16
                                            : &table.gemm->bf16_widened;
  }
  return *family;
}

}  // namespace hearth::kernels
