#include "hearth/base/effort.h"

namespace hearth {

void Effort::look() {
  unseen_ = 0;
  if (cancelled_ && cancelled_->load(std::memory_order_relaxed)) {
    refuse(EffortError::Reason::cancelled);
  }
  if (deadline_ != Clock::time_point::max() && Clock::now() >= deadline_) {
    refuse(EffortError::Reason::deadline);
  }
}

void Effort::refuse(EffortError::Reason reason) {
  switch (reason) {
    case EffortError::Reason::too_large:
      throw EffortError(
          reason,
          "[base.Effort] what is asked for must be less work: it is "
          "too large"
      );
    case EffortError::Reason::deadline:
      throw EffortError(
          reason,
          "[base.Effort] the work must be done before its deadline, "
          "it took too long"
      );
    case EffortError::Reason::cancelled:
      break;
  }
  throw EffortError(reason, "[base.Effort] the work was called off");
}

}  // namespace hearth
