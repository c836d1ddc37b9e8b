#pragma once
// Every token's bytes as one tree, laid out so that a walk is a scan: a node
// is followed by its subtree, and says where that ends.
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::text {

class GrammarVocabulary {
 public:
  struct Node {
    std::uint32_t end = 0;          // one past its subtree
    std::uint32_t first_token = 0;  // in tokens(); the next node's is the end
    std::uint16_t depth = 0;        // bytes from the root
    std::uint8_t byte = 0;
  };

  GrammarVocabulary(
      const std::vector<std::string>& token_bytes,
      std::vector<std::int32_t> stop_ids
  );

  // Node 0 is the root; one more than there are closes the list of tokens.
  std::span<const Node> nodes() const { return nodes_; }
  std::size_t node_count() const { return nodes_.size() - 1; }
  std::span<const std::int32_t> tokens(std::uint32_t node) const {
    const auto first = nodes_[node].first_token;
    return std::span(tokens_).subspan(
        first, nodes_[node + 1].first_token - first
    );
  }
  std::size_t max_depth() const { return max_depth_; }

  std::size_t size() const { return starts_.size() - 1; }
  std::string_view bytes_of(std::int32_t id) const {
    const auto at = static_cast<std::size_t>(id);
    return std::string_view(text_).substr(
        starts_[at], starts_[at + 1] - starts_[at]
    );
  }
  bool is_stop(std::int32_t id) const;
  std::span<const std::int32_t> stop_ids() const { return stop_ids_; }

  // Whether one of these bytes is a token by itself.
  bool has_any_byte(std::uint8_t first, std::uint8_t last) const {
    return single_before_[last + std::size_t{1}] > single_before_[first];
  }
  // The tokens that no others make up: what can be written with these can be
  // written, and there are far fewer of them. Made when it is first asked for.
  const GrammarVocabulary& shortest() const;

 private:
  bool is_made_of_others(std::string_view bytes) const;

  std::vector<Node> nodes_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::uint32_t> starts_;
  std::string text_;
  std::vector<std::int32_t> stop_ids_;
  std::size_t max_depth_ = 0;
  std::array<int, 257> single_before_{};  // tokens of one smaller byte
  mutable std::once_flag shortest_once_;
  mutable std::unique_ptr<const GrammarVocabulary> shortest_;
};

}  // namespace hearth::text
