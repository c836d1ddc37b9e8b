#include "hearth/train/recipe/recipe_paths.h"

#include <filesystem>

#include "hearth/text/chat/builtin_template.h"
#include "hearth/train/loop/run_model.h"

namespace hearth::train {
namespace {

namespace fs = std::filesystem;

// Wildcards, and what follows a path (RUN@120, FILE:0.5), are kept.
void settle(std::string& path) {
  if (path.empty() || path.starts_with("hf:")) return;
  path = fs::absolute(path).lexically_normal().string();
}

void settle(YamlNode& node) {
  if (node.kind == YamlNode::Kind::kScalar) settle(node.scalar);
  for (YamlNode& item : node.items) settle(item);
}

void settle_model(std::string& word) {
  std::error_code out_of_reach;
  const bool there = fs::exists(word, out_of_reach);
  if (there || parse_run_reference(word)) settle(word);
}

bool is_template_file(const std::string& name) {
  return name != "auto" && name != "none" && !text::builtin_template(name);
}

}  // namespace

Recipe with_absolute_paths(Recipe recipe) {
  data::DataConfig& d = recipe.data;
  settle(d.train);
  for (std::string& entry : d.mix) settle(entry);
  if (!data::is_share(d.valid)) settle(d.valid);
  settle(d.tokenizer);
  if (is_template_file(d.chat_template)) settle(d.chat_template);
  settle(d.cache);
  settle_model(recipe.model.from);
  settle(recipe.model.adapter);
  return recipe;
}

}  // namespace hearth::train
