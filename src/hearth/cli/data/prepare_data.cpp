#include "hearth/cli/data/prepare_data.h"

#include "hearth/cli/interrupt.h"

namespace hearth::cli {

void StepProgress::update(const data::DataStep& step) {
  if (!line_ || title_ != step.title) {
    finish();
    title_ = step.title;
    line_ = std::make_unique<Progress>(
        Progress::Options{step.title, step.unit, step.total}
    );
  }
  line_->update(step.done, step.note);
}

void StepProgress::finish() {
  if (line_) line_->finish();
  line_.reset();
}

data::PreparedData prepare_with_progress(
    const Context& context,
    const data::DataConfig& config,
    bool force
) {
  StepProgress progress;
  data::PrepareDataOptions options;
  options.threads = context.common.threads;
  options.force = force;
  options.progress = [&](const data::DataStep& step) { progress.update(step); };
  const InterruptGuard guard;
  options.stop = [] { return InterruptGuard::interrupted(); };
  auto prepared = data::prepare_data(config, options);
  progress.finish();
  return prepared;
}

}  // namespace hearth::cli
