#include "hearth/optim/update_rule.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/kernels/arithmetic.h"

namespace hearth::optim {

RuleState make_rule_state(const ops::StateArrays& described) {
  const ops::Arrays arrays = ops::make_state(described, state_zone());
  RuleState out;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    out.push_back({described[i].name, arrays[i]});
  }
  return out;
}

void UpdateRule::adopt(std::span<const mx::array> state) {
  if (state.size() != state_.size()) {
    throw UsageError(
        fmt::format(
            "[optim.adopt] the state must have {} arrays, got {}",
            state_.size(), state.size()
        )
    );
  }
  for (std::size_t i = 0; i < state_.size(); ++i) {
    const mx::array &old = state_[i].array, &now = state[i];
    if (now.shape() == old.shape() && now.dtype() == old.dtype()) continue;
    throw UsageError(
        fmt::format(
            "[optim.adopt] {} must keep its shape and dtype, got others",
            state_[i].name
        )
    );
  }
  for (std::size_t i = 0; i < state_.size(); ++i) state_[i].array = state[i];
}

void apply_update(
    const ops::Parameter& p,
    const mx::array& update,
    float keep,
    float factor
) {
  mx::array weight = p.weight;
  float* w = weight.data<float>();
  const float* u = update.data<float>();
  const auto piece = [&](const ops::Execution& e, std::size_t begin,
                         std::size_t end) {
    const auto& f = *e.kernels.arithmetic;
    const auto n = static_cast<long>(end - begin);
    f.scale(w)(n, keep, w + begin, w + begin);
    f.accumulate(w)(n, factor, u + begin, w + begin);
    if (p.refresh) p.refresh(e, begin, end);
  };
  const auto stream = mx::default_stream(mx::Device::cpu);
  ops::run_on_stream("Muon", stream, [&](const ops::Execution& e) {
    e.pool.parallel_for(
        weight.size(), p.grain, [&](std::size_t begin, std::size_t end) {
          for (std::size_t i = begin; i < end; i += p.grain) {
            piece(e, i, std::min(end, i + p.grain));
          }
        }
    );
  });
}

MemoryZone state_zone() {
  return MemoryZone::named("optimizer state");
}

}  // namespace hearth::optim
