#pragma once
// What each weight of a model is held as, decided here and nowhere else: by
// what the model is for, by the part the weight plays, and by rules that map
// patterns of names to quantised formats. The loader fills what it says, the
// planner counts it, the cache of packed weights is named after it.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hearth/nn/weight.h"

namespace hearth::models {
namespace mx = mlx::core;

// What the weights are for decides which copies are held.
enum class Use : unsigned char {
  inference,    // as products read them, nothing else
  frozen_base,  // the same with what gradients of inputs need: LoRA, QLoRA
  training,     // float32 masters, packed in both orders
  described,    // none: names and shapes alone, weights stay in the file
};

// Which matrices that are trained have a packed copy beside their master for
// the whole run: all, or only the head (the embedding where it is the head),
// which the loss reads in many pieces. The others are then packed anew by every
// op that multiplies by them. What is frozen is always packed.
enum class PackedCopies : unsigned char { all, head };

// Weights whose name the pattern matches (nn::matches) are rounded to the
// format; none: they stay dense.
struct QuantRule {
  std::string pattern = "*";
  std::optional<kernels::QuantFormat> format;

  bool operator==(const QuantRule&) const = default;
};

// The last rule that matches counts; without one a weight stays dense.
class QuantRules {
 public:
  QuantRules() = default;
  // One format for all, or none.
  QuantRules(std::optional<kernels::QuantFormat> format);
  QuantRules(const kernels::QuantFormat& format);
  explicit QuantRules(std::vector<QuantRule> rules);

  explicit operator bool() const { return !rules_.empty(); }
  const std::vector<QuantRule>& rules() const { return rules_; }
  std::optional<kernels::QuantFormat> of(const std::string& name) const;

 private:
  std::vector<QuantRule> rules_;
};

// What of a weight is held.
struct WeightForms {
  std::optional<mx::Dtype> value;  // plain rows
  std::optional<mx::Dtype> packed;
  ops::PackedOrders orders = ops::PackedOrders::forward;
  std::optional<kernels::QuantFormat> quantized;
};

class WeightPlan {
 public:
  // compute is the dtype of products. Without keep_quantized, what a file
  // holds quantised is widened; training always widens.
  WeightPlan(
      Use use,
      mx::Dtype compute,
      bool keep_quantized = true,
      QuantRules rules = {},
      PackedCopies copies = PackedCopies::all
  );

  // Of a weight that the file holds dense, or quantised in `stored`.
  WeightForms forms(
      const nn::WeightSpec& weight,
      const std::optional<kernels::QuantFormat>& stored = {}
  ) const;
  // Whether it would be rounded if its rows were whole blocks of the format.
  std::optional<kernels::QuantFormat> asked(const nn::WeightSpec& weight) const;

  // Brings a weight whose rows are there into its forms: packs the matrix, and
  // drops rows that nobody reads.
  void settle(nn::Weight& weight) const;

 private:
  Use use_;
  mx::Dtype compute_;
  bool keep_quantized_;
  QuantRules rules_;
  PackedCopies copies_;
  bool packs_;  // products are our own, on a CPU

  bool packs(const nn::WeightSpec& weight) const;
  bool reads_rows(const nn::WeightSpec& weight) const;
  mx::Dtype rows_type(const nn::WeightSpec& weight) const;
  WeightForms dense_forms(const nn::WeightSpec& weight) const;
};

}  // namespace hearth::models
