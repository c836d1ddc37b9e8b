#include "hearth/text/tokenizer/pre_tokenizer.h"

#include "hearth/base/error.h"
#include "hearth/text/tokenizer/byte_alphabet.h"
#include "hearth/text/tokenizer/component_json.h"
#include "hearth/text/tokenizer/known_patterns.h"
#include "hearth/text/tokenizer/split_behavior.h"
#include "hearth/text/tokenizer/unicode.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {
namespace {

constexpr std::string_view kWhat = "pre_tokenizer";
constexpr int kMaxNesting = 16;

using Step = std::unique_ptr<PreTokenizer>;

// Hands the non-empty parts on; only the one at the front can be first.
struct Forward {
  Piece whole;
  OnPiece on_piece;
  void operator()(std::string_view part) const {
    if (part.empty()) return;
    const char* end = whole.text.data() + whole.text.size();
    on_piece(
        {part, whole.first && part.data() == whole.text.data(),
         whole.after +
             static_cast<std::size_t>(end - (part.data() + part.size()))}
    );
  }
};

class Chain final : public PreTokenizer {
 public:
  explicit Chain(std::vector<Step> steps) : steps_(std::move(steps)) {}
  void split(
      Piece piece,
      PieceBuffers& buffers,
      OnPiece on_piece
  ) const override {
    from(0, piece, buffers, on_piece);
  }

 private:
  void from(
      std::size_t i,
      Piece piece,
      PieceBuffers& buffers,
      OnPiece on_piece
  ) const {
    if (i == steps_.size()) return on_piece(piece);
    if (i + 1 == steps_.size()) {
      return steps_[i]->split(piece, buffers, on_piece);
    }
    steps_[i]->split(piece, buffers, [&](Piece part) {
      from(i + 1, part, buffers, on_piece);
    });
  }
  std::vector<Step> steps_;
};

class Split final : public PreTokenizer {
 public:
  Split(std::unique_ptr<Matcher> matcher, Behavior behavior, bool invert)
      : matcher_(std::move(matcher)), behavior_(behavior), invert_(invert) {}
  void split(Piece piece, PieceBuffers&, OnPiece on_piece) const override {
    const Forward forward{piece, on_piece};
    if (behavior_ == Behavior::kIsolated) return isolate(piece.text, forward);
    split_by(
        piece.text,
        [&](OnMatch on_match) { matcher_->find_all(piece.text, on_match); },
        behavior_, invert_, forward
    );
  }

 private:
  // The usual case, without going through split_by().
  void isolate(std::string_view text, const Forward& forward) const {
    std::size_t done = 0;
    matcher_->find_all(text, [&](std::size_t begin, std::size_t end) {
      if (done != begin) forward(text.substr(done, begin - done));
      forward(text.substr(begin, end - begin));
      done = end;
    });
    if (done != text.size()) forward(text.substr(done));
  }

  std::unique_ptr<Matcher> matcher_;
  Behavior behavior_;
  bool invert_;
};

// One character at a time is the match.
class CharacterSplit final : public PreTokenizer {
 public:
  using Test = bool (*)(std::uint32_t c);
  CharacterSplit(Test test, Behavior behavior)
      : test_(test), behavior_(behavior) {}
  void split(Piece piece, PieceBuffers&, OnPiece on_piece) const override {
    const std::string_view text = piece.text;
    const auto find = [&](OnMatch on_match) {
      for (std::size_t i = 0; i < text.size();) {
        const CodePoint c = decode_utf8(text.data() + i);
        if (test_(c.value)) on_match(i, i + c.size);
        i += c.size;
      }
    };
    split_by(text, find, behavior_, false, Forward{piece, on_piece});
  }

 private:
  Test test_;
  Behavior behavior_;
};

bool is_numeric(std::uint32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return (unicode::table()[c] & unicode::kNumeric) != 0;
}
bool is_punctuation(std::uint32_t c) {
  return (unicode::table()[c] & unicode::kPunctuation) != 0;
}

// \w+|[^\w\s]+ : runs of word characters and of other visible ones.
class Words final : public PreTokenizer {
 public:
  void split(Piece piece, PieceBuffers&, OnPiece on_piece) const override {
    const std::string_view text = piece.text;
    const Forward forward{piece, on_piece};
    std::size_t begin = 0;
    int kind = 0;  // 0 space, 1 word, 2 other
    for (std::size_t i = 0; i < text.size();) {
      const CodePoint c = decode_utf8(text.data() + i);
      const bool word = unicode::table()[c.value] & unicode::kRustWord;
      const int own = word ? 1 : unicode::is_space(c.value) ? 0 : 2;
      if (own != kind) {
        if (kind) forward(text.substr(begin, i - begin));
        begin = i;
        kind = own;
      }
      i += c.size;
    }
    if (kind) forward(text.substr(begin));
  }
};

class ByteLevel final : public PreTokenizer {
 public:
  ByteLevel(bool prefix_space, bool use_regex, bool spell, std::size_t buffer)
      : prefix_space_(prefix_space), spell_(spell), buffer_(buffer) {
    if (use_regex) matcher_ = make_scanner(kGpt2Pattern);
  }
  void split(
      Piece piece,
      PieceBuffers& buffers,
      OnPiece on_piece
  ) const override {
    if (prefix_space_ && !piece.text.starts_with(' ')) {
      std::string& own = buffers[buffer_];
      own.assign(1, ' ');
      own += piece.text;
      piece.text = own;
      piece.after = 0;
    }
    const Forward forward{piece, on_piece};
    const auto emit = [&](std::string_view part) {
      if (!spell_) return forward(part);
      std::string& own = buffers[buffer_ + 1];
      own.clear();
      append_byte_spelling(own, part);
      on_piece({own, piece.first && part.data() == piece.text.data()});
    };
    if (!matcher_) return emit(piece.text);
    matcher_->find_all(piece.text, [&](std::size_t begin, std::size_t end) {
      emit(piece.text.substr(begin, end - begin));
    });
  }

 private:
  bool prefix_space_, spell_;
  std::size_t buffer_;
  std::unique_ptr<Matcher> matcher_;
};

class Metaspace final : public PreTokenizer {
 public:
  enum class Prepend { kFirst, kNever, kAlways };
  Metaspace(std::string mark, Prepend prepend, bool split, std::size_t buffer)
      : mark_(std::move(mark)),
        prepend_(prepend),
        split_(split),
        buffer_(buffer) {}

  void split(
      Piece piece,
      PieceBuffers& buffers,
      OnPiece on_piece
  ) const override {
    std::string& own = buffers[buffer_];
    own.clear();
    const bool marked =
        piece.text.starts_with(' ') || piece.text.starts_with(mark_);
    if (!marked && (prepend_ == Prepend::kAlways ||
                    (prepend_ == Prepend::kFirst && piece.first))) {
      own = mark_;
    }
    for (char c : piece.text) {
      if (c == ' ') {
        own += mark_;
      } else {
        own += c;
      }
    }
    const Piece whole{own, piece.first};
    if (!split_) return on_piece(whole);
    const Forward forward{whole, on_piece};
    std::size_t begin = 0, at = own.find(mark_, 1);
    for (; at != own.npos; at = own.find(mark_, at + mark_.size())) {
      forward(whole.text.substr(begin, at - begin));
      begin = at;
    }
    forward(whole.text.substr(begin));
  }

 private:
  std::string mark_;
  Prepend prepend_;
  bool split_;
  std::size_t buffer_;
};

// Builds the chain; knows how many buffers were given out. A step that leaves
// pieces as they are is nullptr.
class Builder {
 public:
  Step build(const Json& json, bool last, int depth) {
    const std::string type = component_type(json, kWhat);
    if (type == "Sequence") return sequence(json, last, depth);
    if (type == "ByteLevel") return byte_level(json, last);
    if (type == "Metaspace") return metaspace(json);
    if (type == "Split") {
      return std::make_unique<Split>(
          pattern_field(json, kWhat, "pattern"),
          parse_behavior(string_field(json, kWhat, "behavior")),
          bool_field(json, kWhat, "invert", false)
      );
    }
    if (type == "Digits") {
      const bool each = bool_field(json, kWhat, "individual_digits", false);
      return std::make_unique<CharacterSplit>(
          is_numeric, each ? Behavior::kIsolated : Behavior::kContiguous
      );
    }
    if (type == "Punctuation") {
      const bool named = json.contains("behavior");
      return std::make_unique<CharacterSplit>(
          is_punctuation,
          named ? parse_behavior(string_field(json, kWhat, "behavior"))
                : Behavior::kIsolated
      );
    }
    if (type == "Whitespace") return std::make_unique<Words>();
    if (type == "WhitespaceSplit") {
      return std::make_unique<CharacterSplit>(
          unicode::is_space, Behavior::kRemoved
      );
    }
    if (type == "CharDelimiterSplit") {
      return std::make_unique<Split>(
          make_literal_matcher(char_field(json, kWhat, "delimiter")),
          Behavior::kRemoved, false
      );
    }
    unknown_type(kWhat, type);
  }

  std::size_t buffers = 0;
  bool ends_in_bytes = false;

 private:
  Step sequence(const Json& json, bool last, int depth) {
    if (depth == kMaxNesting) throw FormatError("pre_tokenizer nests too deep");
    const Json& items = array_field(json, kWhat, "pretokenizers");
    std::vector<Step> steps;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const bool ends = last && i + 1 == items.size();
      if (Step step = build(items[i], ends, depth + 1)) {
        steps.push_back(std::move(step));
      }
    }
    return std::make_unique<Chain>(std::move(steps));
  }

  Step byte_level(const Json& json, bool last) {
    ends_in_bytes = last;
    const std::size_t first = buffers;
    const bool prefix = bool_field(json, kWhat, "add_prefix_space", true);
    const bool splits = bool_field(json, kWhat, "use_regex", true);
    if (last && !prefix && !splits) return nullptr;
    buffers += 2;
    return std::make_unique<ByteLevel>(prefix, splits, !last, first);
  }

  Step metaspace(const Json& json) {
    using Prepend = Metaspace::Prepend;
    Prepend prepend = Prepend::kAlways;
    if (json.contains("prepend_scheme")) {
      const std::string name = string_field(json, kWhat, "prepend_scheme");
      if (name == "first") {
        prepend = Prepend::kFirst;
      } else if (name == "never") {
        prepend = Prepend::kNever;
      } else if (name != "always") {
        throw FormatError("prepend_scheme \"" + name + "\" is not known");
      }
    }
    if (!bool_field(json, kWhat, "add_prefix_space", true)) {
      prepend = Prepend::kNever;
    }
    return std::make_unique<Metaspace>(
        char_field(json, kWhat, "replacement"), prepend,
        bool_field(json, kWhat, "split", true), buffers++
    );
  }
};

}  // namespace

PreTokenizers make_pre_tokenizers(const Json& json) {
  PreTokenizers out;
  if (json.is_null()) return out;
  Builder builder;
  out.step = builder.build(json, true, 0);
  out.buffers = builder.buffers;
  out.byte_level = builder.ends_in_bytes;
  return out;
}

PreTokenizers make_byte_level_split(
    const std::vector<std::string_view>& patterns
) {
  std::vector<Step> steps;
  for (const std::string_view pattern : patterns) {
    steps.push_back(
        std::make_unique<Split>(
            make_regex_matcher(std::string(pattern)), Behavior::kIsolated, false
        )
    );
  }
  return {std::make_unique<Chain>(std::move(steps)), 0, true};
}

}  // namespace hearth::text
