#pragma once
// Saving and restoring where a loader is.
#include <string>

#include "hearth/base/json.h"
#include "hearth/data/loader/loader_plan.h"

namespace hearth::data {

// Everything that decides the order of batches, by name.
Json loader_parts(const TokenCache& cache, const LoaderConfig& config);
Json position_to_json(
    const PlanPosition& position,
    const Json& parts,
    const LoaderConfig& config
);
// Throws UsageError or FormatError for a position that cannot be one of this
// cache and config, saying what differs.
PlanPosition position_from_json(
    const Json& json,
    const Json& parts,
    const TokenCache& cache,
    const LoaderConfig& config
);

}  // namespace hearth::data
