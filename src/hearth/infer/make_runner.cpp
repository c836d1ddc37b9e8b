#include "hearth/infer/make_runner.h"

#include "hearth/infer/model_runner.h"

namespace hearth::infer {

std::unique_ptr<Runner> make_runner(
    const models::LoadedModel& model,
    const RunnerOptions& options
) {
  return std::make_unique<ModelRunner>(model, options);
}

}  // namespace hearth::infer
