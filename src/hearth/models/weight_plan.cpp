#include "hearth/models/weight_plan.h"

#include "hearth/nn/parameter_set.h"

namespace hearth::models {

using io::Role;
using kernels::QuantFormat;

QuantRules::QuantRules(std::optional<QuantFormat> format) {
  if (format) rules_.push_back({"*", format});
}

QuantRules::QuantRules(const QuantFormat& format) : rules_{{"*", format}} {}

QuantRules::QuantRules(std::vector<QuantRule> rules)
    : rules_(std::move(rules)) {}

std::optional<QuantFormat> QuantRules::of(const std::string& name) const {
  std::optional<QuantFormat> format;
  for (const QuantRule& rule : rules_) {
    if (nn::matches(rule.pattern, name)) format = rule.format;
  }
  return format;
}

WeightPlan::WeightPlan(
    Use use,
    mx::Dtype compute,
    bool keep_quantized,
    QuantRules rules,
    PackedCopies copies
)
    : use_(use),
      compute_(compute),
      keep_quantized_(keep_quantized),
      rules_(std::move(rules)),
      copies_(copies),
      packs_(ops::ours({}, compute)) {}

bool WeightPlan::packs(const nn::WeightSpec& w) const {
  if (!packs_ || !w.matrix) return false;
  return use_ != Use::training || copies_ == PackedCopies::all ||
         io::is_token_table(w.part.role);
}

// Whether plain rows are held even of what is quantised: of the table that is
// gathered from and, where adapters are trained, of the head, which the fused
// loss reads.
bool WeightPlan::reads_rows(const nn::WeightSpec& w) const {
  return w.part.role == Role::embedding ||
         (use_ == Use::frozen_base && w.part.role == Role::head);
}

std::optional<QuantFormat> WeightPlan::asked(const nn::WeightSpec& w) const {
  if (!w.matrix || w.trainable || use_ == Use::training) return {};
  return rules_.of(w.name);
}

// What is trained is a float32 master, and vectors are float32 whatever the
// products are.
mx::Dtype WeightPlan::rows_type(const nn::WeightSpec& w) const {
  const bool wide = use_ == Use::training || w.trainable || w.shape.size() == 1;
  return wide ? mx::float32 : compute_;
}

WeightForms WeightPlan::dense_forms(const nn::WeightSpec& w) const {
  WeightForms f;
  const bool frozen = use_ != Use::training && !w.trainable;
  // The fused loss takes the head, and the embedding is gathered from, as
  // plain rows; other frozen matrices are only packed.
  const bool plain = w.part.role == Role::head || reads_rows(w);
  const bool packed = packs(w);
  if (!packed || !frozen || plain) f.value = rows_type(w);
  if (!packed) return f;
  f.packed = compute_;
  f.orders = use_ == Use::inference ? ops::PackedOrders::forward
                                    : ops::PackedOrders::both;
  return f;
}

WeightForms WeightPlan::forms(
    const nn::WeightSpec& w,
    const std::optional<QuantFormat>& stored
) const {
  WeightForms f;
  if (stored) {
    const bool kept = keep_quantized_ && w.matrix && use_ != Use::training;
    if (kept) f.quantized = stored;
  } else if (const auto format = asked(w)) {
    const bool whole = w.shape[1] % format->block_columns() == 0;
    if (whole) f.quantized = format;
  }
  if (!f.quantized) return dense_forms(w);
  if (reads_rows(w)) f.value = rows_type(w);
  return f;
}

void WeightPlan::settle(nn::Weight& w) const {
  const bool rows =
      w.form() == nn::WeightForm::master || w.form() == nn::WeightForm::rounded;
  if (!rows || !packs(w)) return;
  const WeightForms f = dense_forms(w);
  nn::pack(w, compute_, f.orders);
  if (!f.value) w.keep_packed_alone();
}

}  // namespace hearth::models
