#pragma once
// What turns one piece of text into ids: BPE or unigram. Models are immutable;
// what encoding needs to change is in the scratch its caller owns.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/text/tokenizer/piece_cache.h"

namespace hearth::text {

struct ModelScratch {
  PieceCache cache;
  std::vector<std::int32_t> symbols;  // of the piece at hand
  std::vector<std::uint32_t> links;
  std::vector<std::uint64_t> heap;
  std::vector<double> scores;
  std::string text;
};

class Model {
 public:
  virtual ~Model() = default;
  virtual std::string_view kind() const = 0;
  // Appends the ids of one non-empty piece of valid UTF-8, behind which
  // `after` bytes may be read.
  virtual void encode(
      std::string_view piece,
      std::size_t after,
      ModelScratch& scratch,
      std::vector<std::int32_t>& out
  ) const = 0;
};

}  // namespace hearth::text
