// How many batches an epoch has, counted without filling one.
#include "hearth/base/error.h"
#include "hearth/data/loader/loader_engine_impl.h"
#include "hearth/data/loader/loader_plan.h"
#include "hearth/data/loader/loader_state_impl.h"

namespace hearth::data {

std::uint64_t count_batches(
    const std::shared_ptr<const TokenCache>& cache,
    const LoaderConfig& config,
    const Json& from
) {
  if (config.epochs == 0) {
    throw UsageError(
        "[data.count_batches] an endless loader has no number of batches"
    );
  }
  const LoaderConfig whole = complete_config(config);
  Planner planner(cache, whole);
  if (!from.is_null()) {
    const Json parts = loader_parts(*cache, whole);
    planner.seek(position_from_json(from, parts, *cache, whole));
  }
  BatchPlan plan;
  std::uint64_t batches = 0;
  while (planner.next(plan)) ++batches;
  return batches;
}

}  // namespace hearth::data
