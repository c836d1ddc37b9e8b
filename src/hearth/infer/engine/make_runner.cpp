#include "hearth/infer/engine/make_runner.h"

#include "hearth/infer/cpu/runner.h"
#include "hearth/infer/graph/model_runner.h"
#include "hearth/infer/graph/paged_runner.h"
#include "hearth/models/adapters.h"

namespace hearth::infer {

std::unique_ptr<Runner> make_runner(
    const models::LoadedModel& model,
    const RunnerOptions& options
) {
  if (!options.graph) {
    LoraSets adapters;
    for (const auto& folder : options.adapters) {
      adapters.push_back(models::read_adapter(model, folder));
    }
    auto runner = CpuRunner::make(model, options, adapters);
    if (runner) return runner;
    auto paged = PagedRunner::make(model, options, std::move(adapters));
    if (paged) return paged;
  }
  return std::make_unique<ModelRunner>(model, options);
}

}  // namespace hearth::infer
