#pragma once
// A SentencePiece model as SentencePiece files and GGUF files give it: pieces
// with scores and types, and a few settings.
#include <cstdint>
#include <string>
#include <vector>

#include "hearth/text/tokenizer/tokenizer_parts.h"

namespace hearth::text {

enum class PieceType {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

struct ScoredPiece {
  std::string text;
  float score = 0;
  PieceType type = PieceType::kNormal;
};

struct ScoredPieces {
  std::vector<ScoredPiece> pieces;
  bool unigram = true;
  bool byte_fallback = false;
  bool dummy_prefix = true;  // a space before the text
  bool squeeze_spaces = false;
  bool escape_spaces = true;  // ' ' is spelled '▁'
  std::string charsmap;
  std::string unknown_surface = " \u2047 ";  // what unknown decodes to
  std::int32_t unk = 0, bos = 1, eos = 2, pad = -1;
  // Texts of control pieces in the input stand for them. SentencePiece never
  // does this; llama.cpp and Hugging Face do.
  bool parse_control = true;
};

struct ScoredMerge {
  std::int32_t left = 0, right = 0, merged = 0;
  std::uint32_t rank = 0;  // 0 goes first; pieces of equal score share one
};

// Any two neighbours whose joined text is a piece merge; the piece of highest
// score goes first. By rank.
std::vector<ScoredMerge> scored_merges(
    const std::vector<ScoredPiece>& pieces,
    const Vocabulary& vocabulary
);

// Throws FormatError for settings that do not fit together.
TokenizerParts assemble(ScoredPieces pieces);

}  // namespace hearth::text
