#include "hearth/text/tokenizer/bpe.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/text/tokenizer/byte_alphabet.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {
namespace {
constexpr std::string_view kSpace = "\u2581";
constexpr std::size_t kMaxGlue = 64;
}  // namespace

Bpe::Bpe(const Vocabulary& vocabulary, PairTable merges, BpeOptions options)
    : vocabulary_(vocabulary),
      merges_(std::move(merges)),
      options_(std::move(options)) {
  std::string spelling;
  for (int b = 0; b < 256; ++b) {
    spelling.clear();
    if (options_.byte_level) {
      append_utf8(spelling, byte_to_character(static_cast<unsigned char>(b)));
    } else {
      spelling = fmt::format("<0x{:02X}>", b);
    }
    byte_ids_[static_cast<std::size_t>(b)] = vocabulary.find(spelling);
  }
  for (int c = 0; c < 128; ++c) {
    const char character = static_cast<char>(c);
    ascii_ids_[static_cast<std::size_t>(c)] = vocabulary.find({&character, 1});
  }
  if (!options_.byte_level) find_cuts();
}

void Bpe::find_cuts() {
  if (options_.ignore_merges || !options_.continuing_prefix.empty() ||
      !options_.end_suffix.empty() || vocabulary_.find(kSpace) < 0) {
    return;
  }
  for (std::size_t id = 0; id < vocabulary_.id_limit(); ++id) {
    const std::string_view token =
        vocabulary_.token(static_cast<std::int32_t>(id));
    std::size_t at = token.find(kSpace, 1);
    for (; at != token.npos; at = token.find(kSpace, at + 1)) {
      const std::size_t before = previous_character(token, at);
      const std::string_view left = token.substr(before, at - before);
      if (left == kSpace) continue;
      if (std::find(glue_.begin(), glue_.end(), left) != glue_.end()) continue;
      if (glue_.size() == kMaxGlue) return;
      glue_.emplace_back(left);
    }
  }
  cut_words_ = true;
}

bool Bpe::cuts_before(std::string_view piece, std::size_t at) const {
  const std::size_t before = previous_character(piece, at);
  const std::string_view left = piece.substr(before, at - before);
  if (left == kSpace) return false;
  return std::find(glue_.begin(), glue_.end(), left) == glue_.end();
}

void Bpe::encode(
    std::string_view piece,
    std::size_t after,
    ModelScratch& scratch,
    std::vector<std::int32_t>& out
) const {
  std::size_t begin = 0;
  if (cut_words_) {
    std::size_t at = piece.find(kSpace, 1);
    for (; at != piece.npos; at = piece.find(kSpace, at + 1)) {
      if (!cuts_before(piece, at)) continue;
      encode_word(
          piece.data() + begin, at - begin, piece.size() - begin + after,
          scratch, out
      );
      begin = at;
    }
  }
  encode_word(
      piece.data() + begin, piece.size() - begin, piece.size() - begin + after,
      scratch, out
  );
}

void Bpe::encode_word(
    const char* word,
    std::size_t size,
    std::size_t readable,
    ModelScratch& scratch,
    std::vector<std::int32_t>& out
) const {
  if (size > PieceCache::kMaxBytes) {
    merge_word({word, size}, scratch, out);
    return;
  }
  const PieceCache::Key key = PieceCache::key_of(word, size, readable);
  if (const PieceCache::Entry* entry = scratch.cache.find(key)) {
    out.insert(out.end(), entry->ids, entry->ids + entry->count);
    return;
  }
  const std::size_t before = out.size();
  merge_word({word, size}, scratch, out);
  const std::size_t count = out.size() - before;
  if (count <= PieceCache::kMaxIds) {
    scratch.cache.insert(key, out.data() + before, count);
  }
}

std::int32_t Bpe::whole_token(
    std::string_view word,
    ModelScratch& scratch
) const {
  if (!options_.byte_level) return vocabulary_.find(word);
  scratch.text.clear();
  append_byte_spelling(scratch.text, word);
  return vocabulary_.find(scratch.text);
}

void Bpe::merge_word(
    std::string_view word,
    ModelScratch& scratch,
    std::vector<std::int32_t>& out
) const {
  if (options_.ignore_merges) {
    const std::int32_t id = whole_token(word, scratch);
    if (id >= 0) {
      out.push_back(id);
      return;
    }
  }
  scratch.symbols.clear();
  if (options_.byte_level) {
    byte_symbols(word, scratch);
  } else {
    character_symbols(word, scratch);
  }
  merge_symbols(merges_, scratch);
  out.insert(out.end(), scratch.symbols.begin(), scratch.symbols.end());
}

void Bpe::byte_symbols(std::string_view word, ModelScratch& scratch) const {
  std::int32_t pending = -1;  // an unknown not yet written
  std::vector<std::int32_t>& symbols = scratch.symbols;
  for (char c : word) {
    const std::int32_t id = byte_ids_[static_cast<unsigned char>(c)];
    if (id >= 0) {
      if (pending >= 0) symbols.push_back(pending);
      pending = -1;
      symbols.push_back(id);
    } else if (options_.unknown >= 0) {
      if (pending >= 0 && !options_.fuse_unknown) symbols.push_back(pending);
      pending = options_.unknown;
    }
  }
  if (pending >= 0) symbols.push_back(pending);
}

bool Bpe::append_fallback(
    std::string_view character,
    std::vector<std::int32_t>& symbols
) const {
  for (char c : character) {
    if (byte_ids_[static_cast<unsigned char>(c)] < 0) return false;
  }
  for (char c : character) {
    symbols.push_back(byte_ids_[static_cast<unsigned char>(c)]);
  }
  return true;
}

void Bpe::character_symbols(
    std::string_view word,
    ModelScratch& scratch
) const {
  std::int32_t pending = -1;
  std::vector<std::int32_t>& symbols = scratch.symbols;
  const bool affixes =
      !options_.continuing_prefix.empty() || !options_.end_suffix.empty();
  std::string spelled;
  for (std::size_t i = 0; i < word.size();) {
    const std::size_t size = utf8_size(word[i]);
    std::string_view character = word.substr(i, size);
    if (affixes) {
      spelled = i ? options_.continuing_prefix : std::string();
      spelled += character;
      if (i + size == word.size()) spelled += options_.end_suffix;
      character = spelled;
    }
    const std::int32_t id =
        size == 1 && !affixes ? ascii_ids_[static_cast<unsigned char>(word[i])]
                              : vocabulary_.find(character);
    i += size;
    if (id >= 0) {
      if (pending >= 0) symbols.push_back(pending);
      pending = -1;
      symbols.push_back(id);
      continue;
    }
    // An unknown that waits comes after the bytes, as in the reference.
    if (options_.byte_fallback && append_fallback(character, symbols)) continue;
    if (options_.unknown < 0) continue;
    if (pending >= 0 && !options_.fuse_unknown) symbols.push_back(pending);
    pending = options_.unknown;
  }
  if (pending >= 0) symbols.push_back(pending);
}

}  // namespace hearth::text
