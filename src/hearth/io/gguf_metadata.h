#pragma once
// The key-value part of a GGUF file, read without its tensors.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hearth::io {

class GgufMetadata {
 public:
  using Value = std::variant<
      std::int64_t,
      double,
      bool,
      std::string,
      std::vector<std::int64_t>,
      std::vector<double>,
      std::vector<std::string>>;

  // Throws FormatError with the offset where the bytes stop making sense.
  GgufMetadata(std::string_view bytes, const std::string& name);
  static GgufMetadata read(const std::string& path);

  bool contains(std::string_view key) const { return find(key) != nullptr; }
  const Value* find(std::string_view key) const;
  // The value in the kind asked for, or the fallback when the key is absent.
  // Throws FormatError when the kind is another.
  std::string text(std::string_view key, std::string fallback = {}) const;
  std::int64_t integer(std::string_view key, std::int64_t fallback) const;
  // Whole numbers too.
  double number(std::string_view key, double fallback) const;
  bool boolean(std::string_view key, bool fallback) const;
  const std::vector<std::string>& texts(std::string_view key) const;
  // Empty when the key is absent.
  std::vector<double> numbers(std::string_view key) const;
  const std::string& name() const { return name_; }
  const std::map<std::string, Value, std::less<>>& all() const {
    return values_;
  }
  // The number in the header, not yet checked.
  std::uint64_t tensor_count() const { return tensor_count_; }
  // Where the key-value part ends and the tensor list begins.
  std::size_t end() const { return end_; }

 private:
  std::string name_;
  std::map<std::string, Value, std::less<>> values_;
  std::uint64_t tensor_count_ = 0;
  std::size_t end_ = 0;
};

}  // namespace hearth::io
