// SentencePiece's tokenizer.model: one protobuf message, of which the pieces,
// the kind of model and the normaliser's settings matter. The wire format is
// read here, every length checked.
#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/text/tokenizer/scored_pieces.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {
namespace {

class Message {
 public:
  Message(std::string_view bytes, const std::string& file, std::size_t offset)
      : bytes_(bytes), file_(file), offset_(offset) {}

  // Field number of the next field, whose value is in the members below; 0 at
  // the end.
  std::uint64_t next() {
    if (at_ == bytes_.size()) return 0;
    const std::uint64_t tag = varint();
    switch (tag & 7) {
      case 0:
        number = varint();
        break;
      case 1:
        number = fixed(8);
        break;
      case 2:
        take_block();
        break;
      case 5:
        number = fixed(4);
        break;
      default:
        fail("not a SentencePiece model: unknown wire type");
    }
    if (tag >> 3 == 0) fail("not a SentencePiece model: field number 0");
    return tag >> 3;
  }

  std::uint64_t number = 0;
  std::string_view block;
  std::size_t block_offset = 0;

  [[noreturn]] void fail(std::string_view what) const {
    throw FormatError::at_offset(file_, offset_ + at_, what);
  }
  Message inside() const { return {block, file_, block_offset}; }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ >= bytes_.size()) fail("the message is cut short");
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    fail("a number is too long");
  }
  std::uint64_t fixed(std::size_t size) {
    if (bytes_.size() - at_ < size) fail("the message is cut short");
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + at_, size);
    at_ += size;
    return value;
  }
  void take_block() {
    const std::uint64_t size = varint();
    if (size > bytes_.size() - at_) fail("the message is cut short");
    block = bytes_.substr(at_, size);
    block_offset = offset_ + at_;
    at_ += size;
  }

  std::string_view bytes_;
  const std::string& file_;
  std::size_t offset_, at_ = 0;
};

void read_piece(Message message, ScoredPieces& out) {
  ScoredPiece piece;
  while (const std::uint64_t field = message.next()) {
    if (field == 1) {
      if (!is_valid_utf8(message.block)) message.fail("a piece is not UTF-8");
      piece.text = message.block;
    } else if (field == 2) {
      piece.score =
          std::bit_cast<float>(static_cast<std::uint32_t>(message.number));
    } else if (field == 3) {
      if (message.number < 1 || message.number > 6) {
        message.fail(fmt::format("piece type {} is not known", message.number));
      }
      piece.type = static_cast<PieceType>(message.number);
    }
  }
  if (out.pieces.size() > static_cast<std::size_t>(Vocabulary::kMaxId)) {
    message.fail("too many pieces");
  }
  out.pieces.push_back(std::move(piece));
}

void read_trainer(Message message, ScoredPieces& out) {
  const auto id = [&] {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(
        static_cast<std::int64_t>(message.number), -1, Vocabulary::kMaxId
    ));
  };
  while (const std::uint64_t field = message.next()) {
    if (field == 3) {
      if (message.number != 1 && message.number != 2) {
        message.fail(
            fmt::format(
                "model type {} is neither unigram nor BPE", message.number
            )
        );
      }
      out.unigram = message.number == 1;
    } else if (field == 35) {
      out.byte_fallback = message.number != 0;
    } else if (field == 40) {
      out.unk = id();
    } else if (field == 41) {
      out.bos = id();
    } else if (field == 42) {
      out.eos = id();
    } else if (field == 43) {
      out.pad = id();
    } else if (field == 44) {
      out.unknown_surface = message.block;
    }
  }
}

void read_normalizer(Message message, ScoredPieces& out) {
  while (const std::uint64_t field = message.next()) {
    if (field == 2) {
      out.charsmap = message.block;
    } else if (field == 3) {
      out.dummy_prefix = message.number != 0;
    } else if (field == 4) {
      out.squeeze_spaces = message.number != 0;
    } else if (field == 5) {
      out.escape_spaces = message.number != 0;
    }
  }
}

}  // namespace

TokenizerParts read_sentencepiece(
    std::string_view bytes,
    const std::string& name
) {
  ScoredPieces out;
  out.squeeze_spaces = true;
  Message message(bytes, name, 0);
  while (const std::uint64_t field = message.next()) {
    if (field == 1) {
      read_piece(message.inside(), out);
    } else if (field == 2) {
      read_trainer(message.inside(), out);
    } else if (field == 3) {
      read_normalizer(message.inside(), out);
    }
  }
  if (out.pieces.empty()) {
    message.fail("not a SentencePiece model: it has no pieces");
  }
  try {
    TokenizerParts parts = assemble(std::move(out));
    parts.format = "tokenizer.model";
    return parts;
  } catch (const FormatError& error) {
    throw FormatError::at(name, 0, error.what());
  }
}

}  // namespace hearth::text
