#pragma once
// The unigram model: the segmentation of highest total score, found by one
// pass over the text (Viterbi). A character no token covers is unknown.
#include <cstdint>
#include <string_view>
#include <vector>

#include "hearth/text/tokenizer/model.h"
#include "hearth/text/tokenizer/pair_table.h"
#include "hearth/text/tokenizer/vocabulary.h"

namespace hearth::text {

class Unigram final : public Model {
 public:
  // scores are by id. Tokens in `skip` (by id; may be empty) are never found
  // in text. The vocabulary must outlive the model.
  Unigram(
      const Vocabulary& vocabulary,
      std::vector<double> scores,
      std::int32_t unknown,
      bool byte_fallback,
      const std::vector<bool>& skip = {}
  );
  std::string_view kind() const override { return "Unigram"; }
  void encode(
      std::string_view piece,
      std::size_t after,
      ModelScratch& scratch,
      std::vector<std::int32_t>& out
  ) const override;

 private:
  void best_path(std::string_view piece, ModelScratch& scratch) const;
  void append(std::string_view token, std::vector<std::int32_t>& out) const;

  const Vocabulary& vocabulary_;
  std::vector<double> scores_;
  std::int32_t unknown_;
  bool byte_fallback_;
  double unknown_score_ = 0;
  PairTable children_;                  // (node, byte) -> node
  std::vector<std::int32_t> node_ids_;  // token that ends at a node, or -1
  std::vector<std::int32_t> byte_ids_;
};

}  // namespace hearth::text
