#pragma once
// A config.json read key by key. What nobody asked for is an error: a key that
// changes the computation and is not understood must not be guessed at.
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/json.h"

namespace hearth::models {

// A token's id, or a list of them, under that key of a config; none where it is
// absent, null or -1. Throws FormatError that names key and file for anything
// else.
std::vector<std::int32_t> read_token_ids(
    const Json& config,
    std::string_view key,
    const std::string& file
);

class ConfigKeys {
 public:
  // file stands for the config in errors.
  ConfigKeys(const Json& config, std::string file);

  // Null counts as absent. Throws FormatError that names key and file when a
  // required key is absent or a value has another type.
  bool has(std::string_view key) const;
  std::int64_t integer(std::string_view key);
  std::int64_t integer(std::string_view key, std::int64_t fallback);
  // At least 1 and small enough for a dimension.
  int size(std::string_view key);
  int size(std::string_view key, int fallback);
  double number(std::string_view key, double fallback);
  // From 0 to 1, as what is added under a root is.
  float epsilon(std::string_view key, double fallback);
  bool boolean(std::string_view key, bool fallback);
  std::string word(std::string_view key, std::string fallback);
  std::vector<std::string> words(std::string_view key);
  // Null when absent.
  const Json& raw(std::string_view key);

  // What no forward pass reads must be what others can read all the same:
  // types of numbers, ids of tokens, how weights are quantised.
  void check_common();

  // Keys that do not change what is computed here.
  void ignore(std::initializer_list<std::string_view> keys);
  // These must have just this value where they are given.
  void require(std::string_view key, const Json& value);

  // Throws for the first key that nobody read and that says something (null,
  // false, an empty list or object, and names that begin with _ do not).
  void finish() const;

  [[noreturn]] void refuse(std::string_view key, std::string_view why) const;
  const std::string& file() const { return file_; }

 private:
  const Json& config_;
  std::string file_;
  std::set<std::string, std::less<>> seen_;
  const Json* find(std::string_view key);
  void check_quantization() const;
};

}  // namespace hearth::models
