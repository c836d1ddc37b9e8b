#pragma once
// Saving and restoring where a loader is.
#include <string>

#include "hearth/base/json.h"
#include "hearth/data/loader_plan.h"

namespace hearth::data {

// Of everything that decides the order of batches.
std::string loader_fingerprint(
    const TokenCache& cache,
    const LoaderConfig& config
);
Json position_to_json(
    const PlanPosition& position,
    const std::string& fingerprint
);
// Throws UsageError or FormatError for a position that cannot be one of this
// cache and config.
PlanPosition position_from_json(
    const Json& json,
    const std::string& fingerprint,
    const TokenCache& cache,
    const LoaderConfig& config
);

}  // namespace hearth::data
