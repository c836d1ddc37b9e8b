#include "hearth/text/tokenizer/unigram.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {
namespace {
constexpr double kUnknownPenalty = 10.0;
constexpr std::uint32_t kUnreached = ~0u;
}  // namespace

Unigram::Unigram(
    const Vocabulary& vocabulary,
    std::vector<double> scores,
    std::int32_t unknown,
    bool byte_fallback,
    const std::vector<bool>& skip
)
    : vocabulary_(vocabulary),
      scores_(std::move(scores)),
      unknown_(unknown),
      byte_fallback_(byte_fallback) {
  double lowest = std::numeric_limits<double>::infinity();
  node_ids_.push_back(-1);
  for (std::size_t id = 0; id < scores_.size(); ++id) {
    const auto own = static_cast<std::int32_t>(id);
    if (id < skip.size() && skip[id]) continue;
    lowest = std::min(lowest, scores_[id]);
    std::int32_t node = 0;
    for (char c : vocabulary.token(own)) {
      const auto byte = static_cast<unsigned char>(c);
      std::int32_t child = children_.find(node, byte).merged;
      if (child < 0) {
        child = static_cast<std::int32_t>(node_ids_.size());
        children_.set(node, byte, {0, child});
        node_ids_.push_back(-1);
      }
      node = child;
    }
    if (node) node_ids_[static_cast<std::size_t>(node)] = own;
  }
  unknown_score_ = lowest - kUnknownPenalty;
  for (int b = 0; b < 256; ++b) {
    byte_ids_.push_back(vocabulary.find(fmt::format("<0x{:02X}>", b)));
  }
}

// Leaves, by end position, the start of the best token (links) and its id.
void Unigram::best_path(std::string_view piece, ModelScratch& scratch) const {
  const std::size_t n = piece.size();
  scratch.links.assign(n + 1, kUnreached);
  scratch.scores.assign(n + 1, 0.0);
  scratch.symbols.assign(n + 1, -1);
  for (std::size_t begin = 0; begin < n;) {
    // A piece may end inside a character: one that a split cut.
    const std::size_t character =
        std::min<std::size_t>(utf8_size(piece[begin]), n - begin);
    const double here = scratch.scores[begin];
    const auto reach = [&](std::size_t end, double score, std::int32_t id) {
      if (scratch.links[end] != kUnreached && score <= scratch.scores[end]) {
        return;
      }
      scratch.scores[end] = score;
      scratch.links[end] = static_cast<std::uint32_t>(begin);
      scratch.symbols[end] = id;
    };
    bool single = false;
    std::int32_t node = 0;
    for (std::size_t i = begin; i < n; ++i) {
      node = children_.find(node, static_cast<unsigned char>(piece[i])).merged;
      if (node < 0) break;
      const std::int32_t id = node_ids_[static_cast<std::size_t>(node)];
      if (id < 0) continue;
      reach(i + 1, scores_[static_cast<std::size_t>(id)] + here, id);
      single |= i + 1 - begin == character;
    }
    if (!single) {
      if (unknown_ < 0) {
        throw Error(
            "[data.Unigram] a character is unknown and the model has "
            "no unknown token"
        );
      }
      reach(begin + character, unknown_score_ + here, unknown_);
    }
    begin += character;
  }
}

void Unigram::append(
    std::string_view token,
    std::vector<std::int32_t>& out
) const {
  const std::int32_t id = vocabulary_.find(token);
  if (id >= 0) {
    out.push_back(id);
    return;
  }
  const bool spelled =
      byte_fallback_ && std::all_of(token.begin(), token.end(), [&](char c) {
        return byte_ids_[static_cast<unsigned char>(c)] >= 0;
      });
  if (!spelled) {
    out.push_back(unknown_);
    return;
  }
  for (char c : token) {
    out.push_back(byte_ids_[static_cast<unsigned char>(c)]);
  }
}

void Unigram::encode(
    std::string_view piece,
    std::size_t /*after*/,
    ModelScratch& scratch,
    std::vector<std::int32_t>& out
) const {
  best_path(piece, scratch);
  // Backwards over the path: the ends of tokens, neighbouring unknowns joined.
  std::vector<std::uint64_t>& ends = scratch.heap;
  ends.clear();
  bool joining = false;
  for (std::size_t end = piece.size(); end > 0; end = scratch.links[end]) {
    const bool unknown = scratch.symbols[end] == unknown_;
    if (!(unknown && joining)) ends.push_back(end);
    joining = unknown;
  }
  std::size_t begin = 0;
  for (std::size_t i = ends.size(); i-- > 0;) {
    append(piece.substr(begin, ends[i] - begin), out);
    begin = ends[i];
  }
}

}  // namespace hearth::text
