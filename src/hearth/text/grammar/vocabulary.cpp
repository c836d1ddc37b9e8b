#include "hearth/text/grammar/vocabulary.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::text {
namespace {

std::size_t common_prefix(std::string_view a, std::string_view b) {
  const std::size_t size = std::min(a.size(), b.size());
  std::size_t same = 0;
  while (same < size && a[same] == b[same]) ++same;
  return same;
}

}  // namespace

// A stop id ends a text whatever its bytes are, so it has none here.
GrammarVocabulary::GrammarVocabulary(
    const std::vector<std::string>& token_bytes,
    std::vector<std::int32_t> stop_ids
)
    : stop_ids_(std::move(stop_ids)) {
  std::sort(stop_ids_.begin(), stop_ids_.end());
  for (const std::int32_t id : stop_ids_) {
    if (id < 0 || static_cast<std::size_t>(id) >= token_bytes.size()) {
      throw UsageError(
          fmt::format(
              "[infer.grammar_vocabulary] a stop id must be below {}, got {}",
              token_bytes.size(), id
          )
      );
    }
  }
  starts_.push_back(0);
  for (std::size_t i = 0; i < token_bytes.size(); ++i) {
    if (!is_stop(static_cast<std::int32_t>(i))) text_ += token_bytes[i];
    starts_.push_back(static_cast<std::uint32_t>(text_.size()));
  }
  std::vector<std::int32_t> order(token_bytes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
    return bytes_of(a) < bytes_of(b);
  });

  std::vector<std::uint32_t> path{0};  // the nodes of the bytes before
  std::string_view before;
  nodes_.push_back({});
  const auto close = [&](std::size_t depth) {
    for (; path.size() > depth + 1; path.pop_back()) {
      nodes_[path.back()].end = static_cast<std::uint32_t>(nodes_.size());
    }
  };
  for (const std::int32_t id : order) {
    const std::string_view bytes = bytes_of(id);
    if (bytes.empty()) continue;
    if (bytes.size() > std::numeric_limits<std::uint16_t>::max()) {
      throw UsageError(
          fmt::format(
              "[infer.grammar_vocabulary] a token must have fewer than 65536 "
              "bytes, token {} has {}",
              id, bytes.size()
          )
      );
    }
    close(common_prefix(before, bytes));
    for (std::size_t i = path.size() - 1; i < bytes.size(); ++i) {
      path.push_back(static_cast<std::uint32_t>(nodes_.size()));
      nodes_.push_back(
          {0, static_cast<std::uint32_t>(tokens_.size()),
           static_cast<std::uint16_t>(i + 1),
           static_cast<std::uint8_t>(bytes[i])}
      );
    }
    tokens_.push_back(id);
    max_depth_ = std::max(max_depth_, bytes.size());
    before = bytes;
  }
  close(0);
  nodes_.front().end = static_cast<std::uint32_t>(nodes_.size());
  Node last;
  last.first_token = static_cast<std::uint32_t>(tokens_.size());
  nodes_.push_back(last);
  // Nodes of single bytes follow each other by their bytes.
  for (std::uint32_t c = 1; c < node_count(); c = nodes_[c].end) {
    if (!tokens(c).empty()) single_before_.at(nodes_[c].byte + 1U) = 1;
  }
  std::partial_sum(
      single_before_.begin(), single_before_.end(), single_before_.begin()
  );
}

bool GrammarVocabulary::is_stop(std::int32_t id) const {
  return std::binary_search(stop_ids_.begin(), stop_ids_.end(), id);
}

// Walks the tree from every place that whole tokens reach.
bool GrammarVocabulary::is_made_of_others(std::string_view bytes) const {
  std::vector<bool> reached(bytes.size() + 1);
  reached[0] = true;
  for (std::size_t from = 0; from < bytes.size(); ++from) {
    if (!reached[from]) continue;
    std::uint32_t node = 0;
    for (std::size_t at = from; at < bytes.size(); ++at) {
      const auto byte = static_cast<std::uint8_t>(bytes[at]);
      const std::uint32_t end = nodes_[node].end;
      std::uint32_t child = node + 1;
      while (child < end && nodes_[child].byte != byte) {
        child = nodes_[child].end;
      }
      if (child >= end) break;
      node = child;
      const bool itself = from == 0 && at + 1 == bytes.size();
      if (!tokens(node).empty() && !itself) reached[at + 1] = true;
    }
  }
  return reached.back();
}

const GrammarVocabulary& GrammarVocabulary::shortest() const {
  std::call_once(shortest_once_, [&] {
    std::vector<std::string> kept(size());
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const std::string_view bytes = bytes_of(static_cast<std::int32_t>(i));
      if (!is_made_of_others(bytes)) kept[i] = bytes;
    }
    shortest_ = std::make_unique<const GrammarVocabulary>(
        kept, std::vector<std::int32_t>()
    );
  });
  return *shortest_;
}

}  // namespace hearth::text
