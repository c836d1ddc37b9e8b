#include "hearth/text/tokenizer/scored_pieces.h"

#include <algorithm>
#include <numeric>

#include "hearth/base/error.h"
#include "hearth/text/tokenizer/bpe.h"
#include "hearth/text/tokenizer/unigram.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {
namespace {

constexpr const char* kSpace = "\u2581";

bool merges(PieceType type) {
  return type == PieceType::kNormal || type == PieceType::kUserDefined;
}

// The leftmost of equal ranks goes first.
PairTable merges_of(
    const std::vector<ScoredPiece>& pieces,
    const Vocabulary& vocabulary
) {
  PairTable table;
  table.reserve(pieces.size() * 2);
  for (const ScoredMerge& m : scored_merges(pieces, vocabulary)) {
    table.set(m.left, m.right, {m.rank, m.merged});
  }
  return table;
}

std::unique_ptr<Normalizer> normalizer_of(const ScoredPieces& in) {
  std::vector<std::unique_ptr<Normalizer>> steps;
  if (!in.charsmap.empty()) steps.push_back(make_charsmap(in.charsmap, false));
  if (in.squeeze_spaces) steps.push_back(make_squeeze_spaces());
  const char* space = in.escape_spaces ? kSpace : " ";
  if (in.dummy_prefix) steps.push_back(make_prepend(space));
  if (in.escape_spaces) steps.push_back(make_replace(" ", kSpace));
  return make_sequence(std::move(steps));
}

void add_tokens(const ScoredPieces& in, TokenizerParts& parts) {
  for (std::size_t i = 0; i < in.pieces.size(); ++i) {
    const ScoredPiece& piece = in.pieces[i];
    AddedToken token{.content = piece.text, .id = static_cast<std::int32_t>(i)};
    if (piece.type == PieceType::kUserDefined) {
      // Looked for in the text as the model sees it.
      token.normalized = false;
      parts.added.add(std::move(token));
    } else if (in.parse_control && (piece.type == PieceType::kControl ||
                                    piece.type == PieceType::kUnknown)) {
      token.special = true;
      parts.added.add(std::move(token));
    }
  }
}

std::optional<std::int32_t> known(std::int32_t id, const Vocabulary& v) {
  return v.contains(id) ? std::optional(id) : std::nullopt;
}

}  // namespace

std::vector<ScoredMerge> scored_merges(
    const std::vector<ScoredPiece>& pieces,
    const Vocabulary& vocabulary
) {
  std::vector<std::int32_t> order(pieces.size());
  std::iota(order.begin(), order.end(), 0);
  const auto score = [&](std::int32_t id) {
    return pieces[static_cast<std::size_t>(id)].score;
  };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
    return score(a) > score(b);
  });
  const auto usable = [&](std::string_view text) {
    const std::int32_t id = vocabulary.find(text);
    if (id < 0) return -1;
    return merges(pieces[static_cast<std::size_t>(id)].type) ? id : -1;
  };
  std::vector<ScoredMerge> out;
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i && score(order[i]) != score(order[i - 1])) ++rank;
    const ScoredPiece& piece = pieces[static_cast<std::size_t>(order[i])];
    if (!merges(piece.type) || piece.text.size() > 512) continue;
    const std::string_view text = piece.text;
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      if (is_continuation(text[cut])) continue;
      const std::int32_t left = usable(text.substr(0, cut));
      if (left < 0) continue;
      const std::int32_t right = usable(text.substr(cut));
      if (right >= 0) out.push_back({left, right, order[i], rank});
    }
  }
  return out;
}

TokenizerParts assemble(ScoredPieces in) {
  TokenizerParts parts;
  Vocabulary& vocabulary = *parts.vocabulary;
  std::vector<bool> skip;
  std::vector<double> scores;
  for (std::size_t i = 0; i < in.pieces.size(); ++i) {
    const ScoredPiece& piece = in.pieces[i];
    vocabulary.add(piece.text, static_cast<std::int32_t>(i));
    scores.push_back(piece.score);
    skip.push_back(!merges(piece.type));
    if (piece.type == PieceType::kUnknown)
      in.unk = static_cast<std::int32_t>(i);
  }
  parts.unk = known(in.unk, vocabulary);
  parts.bos = known(in.bos, vocabulary);
  parts.eos = known(in.eos, vocabulary);
  parts.pad = known(in.pad, vocabulary);
  if (parts.bos) parts.prefix = {*parts.bos};
  parts.normalizer = normalizer_of(in);
  if (in.unigram) {
    parts.model = std::make_unique<Unigram>(
        vocabulary, std::move(scores), in.unk, in.byte_fallback, skip
    );
  } else {
    BpeOptions options;
    options.byte_fallback = in.byte_fallback;
    options.unknown = parts.unk.value_or(-1);
    options.fuse_unknown = true;
    parts.model = std::make_unique<Bpe>(
        vocabulary, merges_of(in.pieces, vocabulary), options
    );
  }
  parts.decoder = make_sentencepiece_decoder(
      {.unknown = std::string(vocabulary.token(in.unk)),
       .surface = in.unknown_surface,
       .strip_one = in.dummy_prefix,
       .strip_all = in.squeeze_spaces}
  );
  add_tokens(in, parts);
  parts.added.finish(parts.normalizer.get());
  return parts;
}

}  // namespace hearth::text
