#include "hearth/optim/update_rule.h"

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::optim {

std::vector<NamedArray> UpdateRule::state() const {
  std::vector<NamedArray> out;
  // slots() hands out places to write to; here they are only read.
  for (const Slot& slot : const_cast<UpdateRule*>(this)->slots()) {
    out.push_back({slot.name, *slot.array});
  }
  return out;
}

void UpdateRule::adopt(std::span<const mx::array> state) {
  const std::vector<Slot> own = slots();
  if (state.size() != own.size()) {
    throw UsageError(
        fmt::format(
            "[optim.adopt] the state must have {} arrays, got {}", own.size(),
            state.size()
        )
    );
  }
  for (std::size_t i = 0; i < own.size(); ++i) {
    const mx::array &old = *own[i].array, &now = state[i];
    if (now.shape() == old.shape() && now.dtype() == old.dtype()) continue;
    throw UsageError(
        fmt::format(
            "[optim.adopt] {} must keep its shape and dtype, got others",
            own[i].name
        )
    );
  }
  for (std::size_t i = 0; i < own.size(); ++i) *own[i].array = state[i];
}

MemoryZone state_zone() {
  return MemoryZone::named("optimizer state");
}

}  // namespace hearth::optim
