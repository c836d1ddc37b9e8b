// Measures how long a consumer of a given speed waits for batches:
//   hearth_loader_driver CACHE WORKERS TOKENS_PER_SECOND SECONDS ARRANGE
// The consumer is busy on its own core between batches, as a trainer is.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "hearth/base/error.h"
#include "hearth/data/loader/loader.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int measure(char** argv) {
  using hearth::data::Arrange;
  hearth::data::LoaderConfig config;
  config.workers = std::atoi(argv[2]);
  config.prefetch = 4;
  config.tokens_per_batch = 16384;
  const double demand = std::atof(argv[3]), budget = std::atof(argv[4]);
  const std::string arrange = argv[5];
  config.arrange = arrange == "pack"  ? Arrange::kPack
                   : arrange == "pad" ? Arrange::kPad
                                      : Arrange::kStream;
  config.demand_tokens_per_second = demand;
  hearth::data::Loader loader(
      std::make_shared<hearth::data::TokenCache>(argv[1]), config
  );
  for (const auto& t : loader.trials()) {
    std::printf(
        "tried %d workers: stall %.3f %%\n", t.workers, 100 * t.stall_share
    );
  }
  hearth::data::Batch batch;
  loader.next(batch);
  const double step = static_cast<double>(config.tokens_per_batch) / demand;
  const double before = loader.stats().stall_seconds;
  const auto start = Clock::now();
  while (seconds_since(start) < budget && loader.next(batch)) {
    const auto busy = Clock::now();
    while (seconds_since(busy) < step) {
    }
  }
  const double spent = seconds_since(start);
  const auto stats = loader.stats();
  std::printf(
      "%s, %d workers: %llu batches, %.0f tokens/s, stall %.3f %%, fill %.3f "
      "ms a batch\n",
      arrange.c_str(), stats.workers,
      static_cast<unsigned long long>(stats.batches),
      static_cast<double>(stats.tokens) / spent,
      100 * (stats.stall_seconds - before) / spent,
      1e3 * stats.fill_seconds / static_cast<double>(stats.batches)
  );
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fputs("CACHE WORKERS TOKENS_PER_SECOND SECONDS ARRANGE\n", stderr);
    return 2;
  }
  try {
    return measure(argv);
  } catch (const hearth::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
