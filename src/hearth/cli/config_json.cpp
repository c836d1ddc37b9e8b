#include "hearth/cli/config_json.h"

namespace hearth::cli {
namespace {

Json scalar_to_json(const YamlNode& node) {
  if (node.quoted) return node.scalar;
  if (node.scalar == "true") return true;
  if (node.scalar == "false") return false;
  Json number = Json::parse(node.scalar, nullptr, false);
  if (number.is_number()) return number;
  return node.scalar;
}

Json to_json(const YamlNode& node) {
  Json out;
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      break;
    case YamlNode::Kind::kScalar:
      return scalar_to_json(node);
    case YamlNode::Kind::kList:
      out = Json::array();
      for (const auto& item : node.items) out.push_back(to_json(item));
      break;
    case YamlNode::Kind::kMap:
      out = Json::object();
      for (const auto& [key, item] : node.entries) out[key] = to_json(item);
      break;
  }
  return out;
}

Json value_of(const Field& f) {
  return to_json(parse_yaml(f.show(), f.path));
}

}  // namespace

Json config_values(const ConfigReader& reader) {
  Json list = Json::array();
  for (const Field* f : reader.fields(false)) {
    list.push_back(
        {{"key", f->path}, {"value", value_of(*f)}, {"origin", f->origin}}
    );
  }
  return list;
}

Json config_keys(const ConfigReader& reader) {
  Json list = Json::array();
  for (const Field* f : reader.fields(true)) {
    Json key{
        {"key", f->path},
        {"type", f->type},
        {"default", value_of(*f)},
        {"help", f->help}
    };
    if (!f->constraint.must_be.empty()) {
      key["must_be"] = f->constraint.must_be;
    }
    list.push_back(std::move(key));
  }
  return list;
}

}  // namespace hearth::cli
