#pragma once
// Preparing a recipe's data with a progress line a step; Ctrl-C stops it with
// what is done kept.
#include <memory>
#include <string>

#include "hearth/base/progress.h"
#include "hearth/cli/command.h"
#include "hearth/data/prepared_data.h"

namespace hearth::cli {

// One progress line a step; a new title is a new step.
class StepProgress {
 public:
  void update(const data::DataStep& step);
  void finish();

 private:
  std::string title_;
  std::unique_ptr<Progress> line_;
};

data::PreparedData prepare_with_progress(
    const Context& context,
    const data::DataConfig& config,
    bool force = false
);

}  // namespace hearth::cli
