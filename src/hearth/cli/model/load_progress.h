#pragma once
// A load on the terminal: bytes, rate, time left, and the time of each shard
// when it is done.
#include <cstddef>
#include <optional>

#include "hearth/base/progress.h"
#include "hearth/models/load_report.h"

namespace hearth::cli {

class LoadProgress {
 public:
  void update(const models::LoadStep& step);

 private:
  std::optional<Progress> bar_;
};

}  // namespace hearth::cli
