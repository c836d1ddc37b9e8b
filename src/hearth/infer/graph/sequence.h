#pragma once
// One sequence of a model: its keys and values, and the logits that follow its
// last token. Token ids only.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hearth/infer/engine/kv_type.h"
#include "hearth/models/load.h"

namespace hearth::infer {
namespace mx = mlx::core;

// How quantised weights are multiplied: by activations rounded to int8, or as
// they are. automatic does the prompt exactly, since its errors stay in the
// keys and values for good, and single steps in int8.
enum class QuantProducts : unsigned char { automatic, int8, exact };

class Sequence {
 public:
  // Throws UsageError when keys of that type cannot meet the model's queries.
  // The model must outlive the sequence.
  explicit Sequence(
      const models::LoadedModel& model,
      KvType kv = KvType::automatic,
      QuantProducts products = QuantProducts::automatic
  );

  // Appends ids, `chunk` at a time, and gives the logits after the last one;
  // they stay valid until the next call. Throws UsageError when ids are no
  // tokens of the model or pass its context.
  std::span<const float> feed(
      std::span<const std::int32_t> ids,
      int chunk = 512
  );

  int length() const { return length_; }
  // Tokens the model was made for.
  int context() const { return model_.decoder->config().max_length; }
  std::size_t kv_bytes() const;

 private:
  const models::LoadedModel& model_;
  QuantProducts products_;
  std::vector<std::shared_ptr<ops::KvCache>> caches_;
  int length_ = 0;
  mx::array logits_{0.0f};

  nn::Pass pass_for(std::size_t tokens) const;
  mx::array hidden(std::span<const std::int32_t> ids);
};

}  // namespace hearth::infer
