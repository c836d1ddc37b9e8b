#pragma once
// Low-rank adapters over a frozen linear layer: y = W x + s B A x, and DoRA's
// form of it, y = m / |W + s B A| (W x + s B A x), whose norm of each row is
// taken as a constant. W may be dense or quantised.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/base/config.h"
#include "hearth/nn/parameter_set.h"
#include "hearth/nn/pass.h"
#include "hearth/ops/linears/op.h"

namespace hearth::nn {

struct LoraConfig {
  int rank = 16;
  double alpha = 32;
  double dropout = 0;
  bool dora = false;
  bool rslora = false;  // scale alpha / sqrt(rank) in place of alpha / rank
  std::vector<std::string> targets = {"q_proj", "v_proj"};

  bool operator==(const LoraConfig&) const = default;
  float scale() const;
  void form_fields(FieldVisitor& v);  // for a section that has more
};

// What an adapter of that layer adds to a model's weights, trainable.
struct LoraSpecs {
  WeightSpec a, b;
  std::optional<WeightSpec> magnitude;  // DoRA's
};
LoraSpecs lora_specs(const WeightSpec& layer, const LoraConfig& config);

class Lora {
 public:
  // The adapter of the layer whose weight is given; `index` tells the noise of
  // the layers apart. Adds its parameters, trainable, to the set.
  Lora(
      ParameterSet& set,
      const Weight& weight,
      const LoraConfig& config,
      std::uint64_t index
  );

  // y is W x, its bias added only where rows are not scaled; gives what takes
  // its place.
  mx::array operator()(
      const mx::array& x,
      const mx::array& y,
      const Weight& weight,
      const Pass& pass
  ) const;

  // As a product added to the layer's own, where it is no more than that in
  // this pass: neither DoRA nor dropout.
  std::optional<ops::LowRank> low_rank(const Pass& pass) const;

  // DoRA: what x gives is scaled row by row, and a bias comes after that.
  bool scales_rows() const { return magnitude_ != nullptr; }

  // s B A, float32 [out, in].
  mx::array delta() const;
  // The weights with the adapter in them, from the float32 base.
  mx::array merged(const mx::array& base) const;
  const LoraConfig& config() const { return config_; }
  Weight& a() const { return *a_; }
  Weight& b() const { return *b_; }
  // Null without DoRA.
  Weight* magnitude() const { return magnitude_; }
  // The layer's name: the weight's without ".weight".
  const std::string& layer() const { return layer_; }

  // DoRA: the norm of each row of the base weights, float32. Needed before
  // use.
  void set_base_norms(mx::array row_norms) {
    base_norms_ = std::move(row_norms);
  }
  // DoRA: the magnitudes of a fresh adapter are the base's, so that it changes
  // nothing yet.
  void start_magnitude();

 private:
  LoraConfig config_;
  std::string layer_;
  std::uint64_t index_;
  Weight *a_, *b_;
  Weight* magnitude_ = nullptr;
  std::optional<mx::array> base_norms_;

  mx::array row_gain(const Weight& weight, const Pass& pass) const;
  bool drops(const Pass& pass) const;
};

// One adapter of a whole model beside the model, so that several can be had
// over one base: a pass names the one that counts (pass.h).
struct LoraSet {
  ParameterSet parameters;
  std::map<std::string, std::unique_ptr<Lora>, std::less<>> layers;

  // Null where it leaves that layer alone.
  const Lora* of(std::string_view layer) const;
};

}  // namespace hearth::nn
