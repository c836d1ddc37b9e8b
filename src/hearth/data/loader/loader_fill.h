#pragma once
// Turns a plan into a batch's buffers. Reads the cache, changes nothing else;
// any number of threads may fill different batches.
#include "hearth/data/loader/loader_plan.h"

namespace hearth::data {

// Only the rows of config.rank are filled.
void fill_batch(
    const TokenCache& cache,
    const LoaderConfig& config,
    const BatchPlan& plan,
    Batch& batch
);

}  // namespace hearth::data
