#include "hearth/cli/read_recipe.h"

#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/cli/hub_model.h"
#include "hearth/cli/inputs.h"

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;

}  // namespace

std::string read_recipe(
    const RecipeArguments& given,
    const Context& context,
    train::Recipe& recipe
) {
  ConfigReader reader(recipe);
  std::string file;
  if (!given.resume.empty()) {
    file = (fs::path(given.resume) / "config.yaml").string();
    if (!fs::exists(file)) {
      throw UsageError(
          fmt::format(
              "--resume must be given a run directory, got '{}', which has no "
              "config.yaml",
              given.resume
          )
      );
    }
    reader.apply(read_yaml_file(file));
  }
  for (const std::string& word : given.words) {
    if (ConfigReader::is_override(word)) {
      reader.apply_override(word);
      continue;
    }
    if (!file.empty()) {
      throw UsageError(
          fmt::format("one recipe must be given, got '{}' and '{}'", file, word)
      );
    }
    file = word;
    require_input(word, "recipe");
    reader.apply(read_yaml_file(word));
  }
  if (file.empty()) {
    throw UsageError(
        "a recipe must be given, such as recipes/quickstart.yaml",
        "hearth train --help"
    );
  }
  if (context.common.seed_given) {
    reader.apply_value(
        "run.seed", std::to_string(context.common.seed), "--seed"
    );
  }
  if (!given.resume.empty()) {
    reader.apply_value("run.dir", given.resume, "--resume");
  } else if (!given.output.empty()) {
    reader.apply_value("run.dir", given.output, "--output");
  } else if (recipe.run.dir.empty()) {
    reader.apply_value(
        "run.dir", "runs/" + fs::path(file).stem().string(), "recipe's name"
    );
  }
  if (const std::string from = recipe.model.from; !from.empty()) {
    const std::string path = resolve_model(context, from);
    if (path != from) reader.apply_value("model.from", path, from);
  }
  recipe.check();
  return reader.dump();
}

std::string recipe_yaml(train::Recipe recipe) {
  return ConfigReader(recipe).to_yaml();
}

}  // namespace hearth::cli
