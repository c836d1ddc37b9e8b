// The optimiser's update as a graph of arrays, for a device that compiles it.
#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/optim/optimizer.h"

namespace hearth::optim {

ops::Arrays Optimizer::arrays() const {
  ops::Arrays out;
  for (const Entry& e : entries_) {
    out.push_back(e.parameter->value());
    for (const NamedArray& a : e.rule->state()) out.push_back(a.array);
  }
  return out;
}

std::vector<std::size_t> Optimizer::places() const {
  std::vector<std::size_t> out;
  std::size_t at = 0;
  for (const Entry& e : entries_) {
    out.push_back(at);
    at += 1 + e.rule->state().size();
  }
  return out;
}

ops::StepScalars Optimizer::scalars(double lr, double gradient_scale) const {
  ops::StepNumbers n = numbers_;
  n.learning_rate = lr;
  n.gradient_scale = gradient_scale;
  n.step = steps_ + 1;
  return ops::step_scalars(n);
}

ops::Arrays Optimizer::step_graph(
    const ops::Arrays& before,
    std::span<const mx::array> gradients,
    const ops::StepScalars& scalars,
    mx::StreamOrDevice s
) const {
  check_counts(before.size(), gradients.size());
  ops::Arrays after;
  const auto at = places();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const auto begin = before.begin() + static_cast<std::ptrdiff_t>(at[i]);
    const auto end =
        i + 1 < at.size()
            ? before.begin() + static_cast<std::ptrdiff_t>(at[i + 1])
            : before.end();
    for (mx::array& a : entries_[i].rule->step_graph(
             {{begin, end}, gradients[i], scalars, s}, entries_[i].decay
         )) {
      after.push_back(std::move(a));
    }
  }
  return after;
}

void Optimizer::adopt(std::span<const mx::array> after) {
  check_counts(after.size(), entries_.size());
  const auto at = places();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const nn::Weight& p = *entries_[i].parameter;
    const mx::array& master = after[at[i]];
    if (!p.packed() && master.shape() == p.shape &&
        master.dtype() == mx::float32) {
      continue;
    }
    throw UsageError(
        fmt::format(
            "[optim.adopt] {} must have no packed companion and its master "
            "must stay float32 of its shape",
            p.name
        )
    );
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const std::size_t end = i + 1 < at.size() ? at[i + 1] : after.size();
    entries_[i].rule->adopt(after.subspan(at[i] + 1, end - at[i] - 1));
    entries_[i].parameter->follow(after[at[i]]);
  }
  ++steps_;
}

void Optimizer::check_counts(std::size_t arrays, std::size_t gradients) const {
  std::size_t wanted = 0;
  for (const Entry& e : entries_) wanted += 1 + e.rule->state().size();
  if (arrays == wanted && gradients == entries_.size()) return;
  throw UsageError(
      fmt::format(
          "[optim.step_graph] {} parameters have {} arrays and as many "
          "gradients as parameters, got {} and {}",
          entries_.size(), wanted, arrays, gradients
      )
  );
}

}  // namespace hearth::optim
