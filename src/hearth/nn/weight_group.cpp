#include "hearth/nn/weight_group.h"

#include <algorithm>

#include "hearth/ops/linear/op.h"

namespace hearth::nn {
namespace {

const WeightGroup* group_with(
    const std::vector<WeightGroup>& groups,
    const Weight* w
) {
  for (const WeightGroup& group : groups) {
    if (std::ranges::find(group, w) != group.end()) return &group;
  }
  return nullptr;
}

}  // namespace

WeightGroup trained_together(const std::vector<const Linear*>& layers) {
  WeightGroup out;
  for (const Linear* l : layers) {
    Weight& w = l->weight();
    const bool alone = l->bias() == nullptr && l->lora() == nullptr;
    if (!alone || !w.trainable || w.form() != WeightForm::master) return {};
    out.push_back(&w);
  }
  return out.size() > 1 ? out : WeightGroup{};
}

std::vector<WeightGroup> grouped(
    const std::vector<Weight*>& weights,
    const std::vector<WeightGroup>& joined
) {
  std::vector<WeightGroup> out;
  for (Weight* w : weights) {
    const WeightGroup* group = group_with(joined, w);
    if (group == nullptr) {
      out.push_back({w});
    } else if (group->front() == w) {
      out.push_back(*group);
    }
  }
  return out;
}

std::vector<WeightGroup> grouped(const std::vector<Weight*>& weights) {
  std::vector<WeightGroup> joined;
  for (const Weight* w : weights) {
    if (w->group()) joined.push_back(w->group()->of);
  }
  return grouped(weights, joined);
}

mx::array join_rows(const std::vector<mx::array>& parts) {
  return parts.size() == 1 ? parts[0] : mx::concatenate(parts, 0);
}

std::vector<mx::array> split_rows(
    const WeightGroup& group,
    const mx::array& rows
) {
  if (group.size() == 1) return {rows};
  std::vector<mx::array> out;
  int begin = 0;
  for (const Weight* w : group) {
    const int end = begin + w->shape[0];
    out.push_back(mx::slice(rows, {begin, 0}, {end, rows.shape(1)}));
    begin = end;
  }
  return out;
}

std::vector<mx::array> values_of(const std::vector<WeightGroup>& groups) {
  std::vector<mx::array> out;
  for (const WeightGroup& group : groups) {
    const Weight& first = *group.front();
    out.push_back(first.group() ? first.group()->rows : first.value());
  }
  return out;
}

GroupSubstitution::GroupSubstitution(
    const std::vector<WeightGroup>& groups,
    const std::vector<mx::array>& arrays
) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto parts = split_rows(groups[i], arrays[i]);
    for (std::size_t j = 0; j < parts.size(); ++j) {
      Weight& w = *groups[i][j];
      saved_.push_back({&w, w.value_, w.group_});
      w.value_ = parts[j];
      w.group_.reset();
    }
    if (parts.size() > 1) {
      groups[i].front()->group_ = Weight::Group{arrays[i], groups[i]};
    }
  }
}

GroupSubstitution::~GroupSubstitution() {
  for (Saved& s : saved_) {
    s.weight->value_ = std::move(s.value);
    s.weight->group_ = std::move(s.group);
  }
}

std::optional<mx::array> grouped_product(
    const Normed& x,
    const std::vector<const Linear*>& layers
) {
  const auto& group = layers.front()->weight().group();
  if (!group) return {};
  const auto of_layers = std::ranges::equal(
      group->of, layers, {}, {}, [](const Linear* l) { return &l->weight(); }
  );
  if (!of_layers) return {};
  if (!x.again) return ops::linear(x.y, group->rows, {});
  const auto product = [](const std::vector<mx::array>& v) {
    return std::vector<mx::array>{ops::linear(v[0], v[1], {})};
  };
  return with_input_again(product, x, {group->rows})[0];
}

}  // namespace hearth::nn
