// How many workers a loader needs, by trying.
#include <algorithm>
#include <chrono>
#include <thread>

#include "hearth/base/clock.h"
#include "hearth/base/thread_pool.h"
#include "hearth/data/loader/loader.h"

namespace hearth::data {
namespace {

constexpr double kTrialSeconds = 0.15;
constexpr double kEnough = 0.005;

// The share of time a consumer of the given demand would wait.
double stall_share(
    const std::shared_ptr<const TokenCache>& cache,
    LoaderConfig config,
    int workers
) {
  config.workers = workers;
  config.epochs = 0;
  Loader loader(cache, config);
  Batch batch;
  const std::chrono::duration<double> step(
      static_cast<double>(config.tokens_per_batch) /
      config.demand_tokens_per_second
  );
  // The first batches fill the queue and touch the pages.
  loader.next(batch);
  std::this_thread::sleep_for(step);
  const double warm = loader.stats().stall_seconds;
  const auto start = Clock::now();
  std::chrono::duration<double> spent{};
  for (int i = 0; i < 8 || (i < 1000 && spent.count() < kTrialSeconds); ++i) {
    loader.next(batch);
    std::this_thread::sleep_for(step);
    spent = Clock::now() - start;
    if (spent.count() > 4 * kTrialSeconds) break;
  }
  return (loader.stats().stall_seconds - warm) / spent.count();
}

}  // namespace

std::vector<WorkerTrial> try_workers(
    const std::shared_ptr<const TokenCache>& cache,
    const LoaderConfig& config
) {
  std::vector<WorkerTrial> trials;
  const int most = std::max(1, usable_cores());
  for (int workers = 0; workers <= most; workers = workers ? workers * 2 : 1) {
    trials.push_back({workers, stall_share(cache, config, workers)});
    if (trials.back().stall_share < kEnough) return trials;
  }
  const auto best = std::min_element(
      trials.begin(), trials.end(),
      [](const auto& a, const auto& b) { return a.stall_share < b.stall_share; }
  );
  std::rotate(best, best + 1, trials.end());
  return trials;
}

}  // namespace hearth::data
