#pragma once
// YAML as a plain tree that remembers where each value stood, so that every
// later error can say file, line and key. Built by yaml-cpp, then checked:
// size, depth, number of nodes (aliases count each time), no duplicate keys.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

struct YamlEntry;

class YamlNode {
 public:
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  std::string scalar;
  bool quoted = false;  // "3" is text, 3 is a number
  std::vector<YamlNode> items;
  std::vector<YamlEntry> entries;  // in file order
  std::string source;              // file, or what stands for it
  long line = 0;                   // 1-based; 0 unknown

  // The entry of a map, or null.
  const YamlNode* find(std::string_view key) const;
  // "FILE:LINE", or what is known of it.
  std::string where() const;
};

struct YamlEntry {
  std::string key;
  YamlNode value;
};

YamlNode parse_yaml(std::string_view text, std::string_view name);
YamlNode read_yaml_file(const std::string& path);

}  // namespace hearth
