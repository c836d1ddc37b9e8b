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
  bool boolean(std::string_view key, bool fallback);
  std::string word(std::string_view key, std::string fallback);
  std::vector<std::string> words(std::string_view key);
  // Null when absent.
  const Json& raw(std::string_view key);

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
};

}  // namespace hearth::models
