#pragma once
// The steps that split text into the pieces a model sees. A step hands each
// piece on as it finds it, so a chain of steps needs no list of pieces.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/function_ref.h"
#include "hearth/base/json.h"

namespace hearth::text {

struct Piece {
  std::string_view text;
  bool first = false;     // it starts where the whole text starts
  std::size_t after = 0;  // bytes behind the text that may be read
};
using OnPiece = FunctionRef<void(Piece)>;

// Text that steps rewrite lives here, one buffer a step.
using PieceBuffers = std::vector<std::string>;

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Calls on_piece with non-empty pieces, in order. They stay valid during the
  // call only, and buffers must hold buffer_count() strings.
  virtual void split(
      Piece piece,
      PieceBuffers& buffers,
      OnPiece on_piece
  ) const = 0;
};

struct PreTokenizers {
  std::unique_ptr<PreTokenizer> step;  // nullptr: the text is one piece
  std::size_t buffers = 0;
  // The last step is ByteLevel: pieces are raw bytes, not spelled out.
  bool byte_level = false;
};

// From the "pre_tokenizer" value of a tokenizer.json. Throws FormatError that
// names an unknown type.
PreTokenizers make_pre_tokenizers(const Json& json);
// Splits that keep their matches, one after the other, over raw bytes.
PreTokenizers make_byte_level_split(
    const std::vector<std::string_view>& patterns
);

}  // namespace hearth::text
