#include "hearth/base/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/units.h"

namespace hearth {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{4} << 20;
constexpr int kMaxDepth = 32;
constexpr int kMaxNodes = 200'000;

class Builder {
 public:
  explicit Builder(std::string_view name) : name_(name) {}

  YamlNode build(const YAML::Node& from, int depth = 0) {
    const long line = from.Mark().is_null() ? 0 : from.Mark().line + 1;
    if (depth > kMaxDepth) {
      fail(line, fmt::format("YAML must nest at most {} deep", kMaxDepth));
    }
    if (++nodes_ > kMaxNodes) {
      fail(line, fmt::format("YAML must hold at most {} values", kMaxNodes));
    }
    YamlNode node;
    node.source = name_;
    node.line = line;
    switch (from.Type()) {
      case YAML::NodeType::Scalar:
        node.kind = YamlNode::Kind::kScalar;
        node.scalar = from.Scalar();
        node.quoted = from.Tag() == "!";
        break;
      case YAML::NodeType::Sequence:
        node.kind = YamlNode::Kind::kList;
        for (const auto& item : from) {
          node.items.push_back(build(item, depth + 1));
        }
        break;
      case YAML::NodeType::Map:
        node.kind = YamlNode::Kind::kMap;
        for (const auto& entry : from) add_entry(node, entry, depth);
        break;
      default:
        break;
    }
    return node;
  }

 private:
  void add_entry(
      YamlNode& node,
      const std::pair<YAML::Node, YAML::Node>& entry,
      int depth
  ) {
    const long line = entry.first.Mark().line + 1;
    if (!entry.first.IsScalar()) fail(line, "a key must be a plain word");
    const std::string& key = entry.first.Scalar();
    if (const YamlNode* twin = node.find(key)) {
      fail(
          line, fmt::format(
                    "key '{}' must appear once, it is also on line {}", key,
                    twin->line
                )
      );
    }
    YamlNode value = build(entry.second, depth + 1);
    if (value.kind == YamlNode::Kind::kNull) value.line = line;
    node.entries.push_back({key, std::move(value)});
  }

  [[noreturn]] void fail(long line, const std::string& what) const {
    throw FormatError::at(name_, line, what);
  }

  std::string name_;
  int nodes_ = 0;
};

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  for (const auto& [name, value] : entries) {
    if (name == key) return &value;
  }
  return nullptr;
}

std::string YamlNode::where() const {
  return line > 0 ? fmt::format("{}:{}", source, line) : source;
}

YamlNode parse_yaml(std::string_view text, std::string_view name) {
  if (text.size() > kMaxBytes) {
    throw FormatError(
        fmt::format(
            "{}: YAML must be at most {}, got {}", name,
            format_bytes(kMaxBytes), format_bytes(text.size())
        )
    );
  }
  if (text.find('\0') != std::string_view::npos) {
    throw FormatError(fmt::format("{}: YAML must not hold zero bytes", name));
  }
  try {
    return Builder(name).build(YAML::Load(std::string(text)));
  } catch (const YAML::Exception& e) {
    throw FormatError::at(
        name, e.mark.is_null() ? 0 : e.mark.line + 1,
        fmt::format("not YAML: {}", e.msg)
    );
  }
}

YamlNode read_yaml_file(const std::string& path) {
  return parse_yaml(read_text_file(path, kMaxBytes), path);
}

}  // namespace hearth
