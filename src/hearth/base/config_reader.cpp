// ConfigReader: recipes and overrides on their way into a config.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "hearth/base/config.h"
#include "hearth/base/error.h"
#include "hearth/base/spelling.h"

namespace hearth {
namespace {

// The tree with the value at a dotted path inside it, maps made on the way.
YamlNode with_value(
    YamlNode tree,
    std::string_view path,
    const YamlNode& value
) {
  if (path.empty()) return value;
  if (tree.kind != YamlNode::Kind::kMap) tree = YamlNode();
  tree.kind = YamlNode::Kind::kMap;
  const auto dot = std::min(path.find('.'), path.size());
  const std::string key(path.substr(0, dot));
  const auto rest = path.substr(std::min(dot + 1, path.size()));
  for (auto& [name, item] : tree.entries) {
    if (name != key) continue;
    item = with_value(std::move(item), rest, value);
    return tree;
  }
  tree.entries.push_back({key, with_value({}, rest, value)});
  return tree;
}

}  // namespace

void ConfigReader::relist() {
  fields_ = list_();
  for (const auto& field : fields_->fields()) {
    for (const auto& [path, origin] : origins_) {
      if (field->path == path) field->origin = origin;
    }
  }
}

Field* ConfigReader::find_field(std::string_view path) const {
  for (const auto& field : fields_->fields()) {
    if (field->path == path) return field.get();
  }
  return nullptr;
}

const Section* ConfigReader::find_section(std::string_view path) const {
  for (const Section& section : fields_->sections()) {
    if (section.path == path) return &section;
  }
  return nullptr;
}

// Whether every section above a path is there.
bool ConfigReader::present(std::string_view path) const {
  return std::none_of(
      fields_->sections().begin(), fields_->sections().end(),
      [&](const Section& s) {
        return !s.present && path.starts_with(s.path + ".");
      }
  );
}

void ConfigReader::create_sections_above(const std::string& path) {
  for (std::size_t dot = path.find('.'); dot != std::string::npos;
       dot = path.find('.', dot + 1)) {
    const Section* s = find_section(path.substr(0, dot));
    if (s == nullptr || s->present) continue;
    s->create();
    relist();
  }
}

void ConfigReader::unknown(const std::string& path, const YamlNode& at) const {
  std::vector<std::string> known;
  for (const auto& f : fields_->fields()) known.push_back(f->path);
  for (const Section& s : fields_->sections()) known.push_back(s.path);
  // A key that is right in another section is the likeliest slip.
  const std::string leaf = path.substr(path.rfind('.') + 1);
  std::string hint = did_you_mean(path, known);
  if (hint.empty()) {
    for (const std::string& k : known) {
      if (k.ends_with("." + leaf)) hint = "; did you mean '" + k + "'?";
    }
  }
  throw FormatError(
      fmt::format("{}: there is no key '{}'{}", at.where(), path, hint)
  );
}

void ConfigReader::set_leaf(
    Field& field,
    const YamlNode& node,
    std::string origin
) {
  field.set(node);
  field.origin = origin;
  std::erase_if(origins_, [&](const auto& o) { return o.first == field.path; });
  origins_.emplace_back(field.path, std::move(origin));
}

// A section that is always there has nothing to be switched off: a recipe may
// name it and give no keys.
void ConfigReader::switch_off(const std::string& path) {
  const Section* s = find_section(path);
  if (s == nullptr || !s->remove) return;
  s->remove();
  std::erase_if(origins_, [&](const auto& o) {
    return o.first.starts_with(path + ".");
  });
  relist();
}

void ConfigReader::apply_at(const std::string& path, const YamlNode& node) {
  if (node.kind == YamlNode::Kind::kNull && find_section(path) != nullptr) {
    return switch_off(path);
  }
  create_sections_above(path + ".");
  if (Field* field = find_field(path)) {
    set_leaf(*field, node, node.where());
    return;
  }
  // A field that is a tree of its own takes paths into it.
  for (auto dot = path.rfind('.'); dot != std::string::npos && dot > 0;
       dot = path.rfind('.', dot - 1)) {
    Field* tree = find_field(path.substr(0, dot));
    if (tree == nullptr || tree->type != "YAML") continue;
    set_leaf(
        *tree,
        with_value(
            parse_yaml(tree->show(), node.source), path.substr(dot + 1), node
        ),
        node.where()
    );
    return;
  }
  const Section* section = find_section(path);
  if (section == nullptr) unknown(path, node);
  if (node.kind != YamlNode::Kind::kMap) {
    throw FormatError(
        fmt::format(
            "{}: {} must be a section with keys{}, got '{}'", node.where(),
            path, section->remove ? ", or null to switch it off" : "",
            node.kind == YamlNode::Kind::kScalar ? node.scalar
                                                 : detail::show_node(node)
        )
    );
  }
  for (const auto& [key, value] : node.entries) {
    apply_at(path + "." + key, value);
  }
}

void ConfigReader::apply(const YamlNode& recipe) {
  if (recipe.kind == YamlNode::Kind::kNull) return;
  if (recipe.kind != YamlNode::Kind::kMap) {
    throw FormatError(
        fmt::format("{}: a recipe must be sections with keys", recipe.where())
    );
  }
  for (const auto& [key, value] : recipe.entries) apply_at(key, value);
}

bool ConfigReader::is_override(std::string_view word) {
  const auto equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  const auto path = word.substr(0, equals);
  return std::isalpha(static_cast<unsigned char>(path[0])) != 0 &&
         std::all_of(path.begin(), path.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                  c == '_' || c == '.';
         });
}

void ConfigReader::apply_override(
    std::string_view assignment,
    std::string_view origin
) {
  if (!is_override(assignment)) {
    throw UsageError(
        fmt::format(
            "an override must read key.path=value, got '{}'", assignment
        )
    );
  }
  const auto equals = assignment.find('=');
  const std::string_view path = assignment.substr(0, equals);
  const std::string_view value = assignment.substr(equals + 1);
  const Section* section = find_section(std::string(path));
  if (section != nullptr && !section->remove && value == "null") {
    throw UsageError(
        fmt::format("{} must be a section with keys, got null", path)
    );
  }
  apply_value(path, value, origin);
}

void ConfigReader::apply_value(
    std::string_view path,
    std::string_view value,
    std::string_view origin
) {
  YamlNode node = parse_yaml(value, origin);
  const auto forget_line = [](auto&& self, YamlNode& n) -> void {
    n.line = 0;  // a line of the command line says nothing
    for (auto& item : n.items) self(self, item);
    for (auto& [key, item] : n.entries) self(self, item);
  };
  forget_line(forget_line, node);
  apply_at(std::string(path), node);
}

void ConfigReader::require_all(const YamlNode& at) const {
  for (const auto& f : fields_->fields()) {
    const bool missing = f->constraint.required && f->origin == "default";
    if (!missing || !present(f->path)) continue;
    throw FormatError(
        fmt::format("{}: key '{}' must be given", at.where(), f->path)
    );
  }
}

std::string ConfigReader::origin(std::string_view path) const {
  const Field* field = find_field(path);
  return field == nullptr ? "default" : field->origin;
}

std::vector<const Field*> ConfigReader::fields(bool absent_too) const {
  std::vector<const Field*> list;
  for (const auto& f : fields_->fields()) {
    if (absent_too || present(f->path)) list.push_back(f.get());
  }
  return list;
}

std::string ConfigReader::dump() const {
  std::string text;
  for (const auto& f : fields_->fields()) {
    if (!present(f->path)) continue;
    const std::string left = f->path + " = " + f->show();
    text += fmt::format("{:<48} # {}\n", left, f->origin);
  }
  return text;
}

std::string ConfigReader::to_yaml() const {
  std::string text, open;
  for (const auto& f : fields_->fields()) {
    if (!present(f->path) || f->show() == "null") continue;
    // Print the part of the path that differs from the one before.
    const auto dot = f->path.rfind('.');
    const std::string section =
        dot == std::string::npos ? "" : f->path.substr(0, dot);
    if (section != open) {
      std::size_t start = 0;
      int depth = 0;
      while (start < section.size()) {
        const std::size_t end =
            std::min(section.find('.', start), section.size());
        const std::string upto = section.substr(0, end);
        const bool already = open == upto || open.starts_with(upto + ".");
        if (!already) {
          text += fmt::format(
              "{:{}}{}:\n", "", 2 * depth, section.substr(start, end - start)
          );
        }
        ++depth;
        start = end + 1;
      }
      open = section;
    }
    const auto depth = std::count(f->path.begin(), f->path.end(), '.');
    text += fmt::format(
        "{:{}}{}: {}\n", "", 2 * depth, f->path.substr(dot + 1), f->show()
    );
  }
  return text;
}

std::string ConfigReader::help() const {
  std::string text;
  for (const auto& f : fields_->fields()) {
    text += fmt::format("  {:<32} {} ({}", f->path, f->help, f->type);
    if (!f->constraint.must_be.empty()) text += ", " + f->constraint.must_be;
    text += fmt::format("; default {})\n", f->show());
  }
  return text;
}

}  // namespace hearth
