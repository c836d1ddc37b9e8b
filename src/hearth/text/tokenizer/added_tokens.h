#pragma once
// Tokens that are cut out of the text before a model sees it.
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "hearth/base/function_ref.h"
#include "hearth/text/tokenizer/normalizer.h"
#include "hearth/text/tokenizer/pair_table.h"

namespace hearth::text {

struct AddedToken {
  std::string content;
  std::int32_t id = -1;
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false, rstrip = false;  // takes the spaces around with it
  bool normalized = false;              // looked for in the normalised text
  bool special = false;
};

// Leftmost-longest search for a set of strings, by a trie of bytes.
class StringSet {
 public:
  void add(std::string_view text, std::size_t value);
  bool empty() const { return nodes_ == 1; }
  struct Found {
    std::size_t begin = 0, end = 0, value = 0;
  };
  // The next one at or after `from`; false when there is none.
  bool find(std::string_view text, std::size_t from, Found& found) const;

 private:
  PairTable children_;
  std::vector<std::int64_t> values_{-1};  // by node
  std::int32_t nodes_ = 1;
  std::array<bool, 256> starts_{};
  int start_count_ = 0;
  char only_start_ = 0;
};

class AddedTokens {
 public:
  void add(AddedToken token);
  // Call once when all are added; normaliser may be nullptr.
  void finish(const Normalizer* normalizer);

  const AddedToken* find(std::int32_t id) const;
  const AddedToken* find(std::string_view content) const;
  bool is_special(std::string_view content) const {
    return specials_.contains(std::string(content));
  }
  // What decoding sees: the normalised form, where there is one.
  std::string_view decoded(std::int32_t id) const;
  const std::vector<AddedToken>& all() const { return tokens_; }

  // Calls on_text for plain parts and on_token for tokens, in order.
  // `normalized` chooses which of the two sets is looked for.
  // `specials` false passes over special tokens, `plain_at` over those that
  // begin at one of these bytes.
  using OnText = FunctionRef<void(std::string_view text)>;
  using OnToken = FunctionRef<void(std::int32_t id)>;
  void split(
      std::string_view text,
      bool normalized,
      bool specials,
      std::span<const std::size_t> plain_at,
      OnText on_text,
      OnToken on_token
  ) const;
  bool any(bool normalized) const {
    return !(normalized ? normalized_ : plain_).empty();
  }

 private:
  std::vector<AddedToken> tokens_;
  std::vector<std::string> forms_;  // normalised, by index; empty: the content
  std::unordered_map<std::int32_t, std::size_t> by_id_;
  std::unordered_map<std::string, std::size_t> by_content_;
  std::unordered_set<std::string> specials_;
  StringSet plain_, normalized_;
};

}  // namespace hearth::text
