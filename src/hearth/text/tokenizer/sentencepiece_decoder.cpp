// Token texts to text, as SentencePiece joins them.
#include "hearth/text/tokenizer/decoder.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {
namespace {

constexpr std::string_view kSpace = "\u2581";

class SentencePiece final : public Decoder {
 public:
  explicit SentencePiece(SentencePieceDecoding settings)
      : settings_(std::move(settings)) {}

  void apply(std::vector<std::string>& tokens) const override {
    std::string out, bytes;
    bool stripped = false;
    for (const std::string& token : tokens) {
      if (const int byte = fallback_byte(token); byte >= 0) {
        bytes += static_cast<char>(byte);
        continue;
      }
      append_bytes(out, bytes);
      if (token == settings_.unknown) {
        out += settings_.surface;
        continue;
      }
      std::string_view rest = token;
      const bool strips = settings_.strip_one || settings_.strip_all;
      if (strips && !stripped && out.empty() && rest.starts_with(kSpace)) {
        rest.remove_prefix(kSpace.size());
        stripped = !settings_.strip_all;
      }
      append_piece(out, rest);
    }
    append_bytes(out, bytes);
    tokens.clear();
    tokens.push_back(std::move(out));
  }

 private:
  static void append_piece(std::string& out, std::string_view piece) {
    for (std::size_t i = 0; i < piece.size();) {
      if (piece.substr(i).starts_with(kSpace)) {
        out += ' ';
        i += kSpace.size();
      } else {
        out += piece[i++];
      }
    }
  }

  // Whole characters as they are, every other byte as U+FFFD.
  static void append_bytes(std::string& out, std::string& bytes) {
    for (std::size_t i = 0; i < bytes.size();) {
      const std::size_t good =
          valid_utf8_prefix(std::string_view(bytes).substr(i));
      out.append(bytes, i, good);
      i += good;
      if (i == bytes.size()) break;
      out += "\uFFFD";
      ++i;
    }
    bytes.clear();
  }

  SentencePieceDecoding settings_;
};

}  // namespace

std::unique_ptr<Decoder> make_sentencepiece_decoder(
    SentencePieceDecoding settings
) {
  return std::make_unique<SentencePiece>(std::move(settings));
}

}  // namespace hearth::text
