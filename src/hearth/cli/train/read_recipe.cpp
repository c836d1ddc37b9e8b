#include "hearth/cli/train/read_recipe.h"

#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/base/shell_word.h"
#include "hearth/base/thread_pool.h"
#include "hearth/cli/config_json.h"
#include "hearth/cli/inputs.h"
#include "hearth/cli/model/hub_model.h"
#include "hearth/cli/train/profile_lengths.h"
#include "hearth/train/loop/run_model.h"

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;

// Throws UsageError for the folder of a run in place of a recipe.
void require_no_run(const std::string& word) {
  if (!fs::is_directory(word) || !fs::exists(fs::path(word) / "config.yaml")) {
    return require_input_file(word, "recipe");
  }
  throw UsageError(
      fmt::format("the recipe must be a file, but '{}' is a run", word),
      fmt::format(
          "hearth train --resume {} goes on with it; {} is its recipe",
          shell_word(word),
          shell_word((fs::path(word) / "config.yaml").string())
      )
  );
}

// Reads the run's own recipe, then the words in their order. Returns the
// recipe's file.
std::string read_words(const RecipeArguments& given, ConfigReader& reader) {
  std::string file;
  if (!given.resume.empty()) {
    file = (fs::path(given.resume) / "config.yaml").string();
    if (!fs::exists(file)) {
      throw UsageError(
          fmt::format(
              "--resume must be given a run directory, got '{}', which has no "
              "config.yaml",
              given.resume
          ),
          "a start that was cut short is begun again: the recipe, -o, and "
          "--force where something is left"
      );
    }
    reader.apply(read_yaml_file(file));
  }
  for (const std::string& word : given.words) {
    if (ConfigReader::is_override(word)) {
      if (!given.resume.empty() && word.starts_with("run.dir=")) {
        throw UsageError(
            fmt::format(
                "--resume must not be given with {}: a run goes on where it is",
                word
            )
        );
      }
      reader.apply_override(word, given.origin);
      continue;
    }
    if (!file.empty()) {
      throw UsageError(
          fmt::format("one recipe must be given, got '{}' and '{}'", file, word)
      );
    }
    file = word;
    require_no_run(word);
    reader.apply(read_yaml(word, "recipe"));
  }
  if (file.empty() && given.need_file) {
    throw UsageError(
        "a recipe must be given, such as recipes/quickstart.yaml",
        "hearth train --help"
    );
  }
  return file;
}

void name_run(
    const RecipeArguments& given,
    const std::string& file,
    const train::Recipe& recipe,
    ConfigReader& reader
) {
  if (!given.resume.empty()) {
    reader.apply_value("run.dir", given.resume, "--resume");
  } else if (!given.output.empty()) {
    reader.apply_value("run.dir", given.output, "--output");
  } else if (recipe.run.dir.empty() && !file.empty()) {
    const std::string name =
        file == "-" ? "stdin" : fs::path(file).stem().string();
    reader.apply_value("run.dir", "runs/" + name, "recipe's name");
  }
}

// Whether row lengths come from the hardware profile. A resumed run has its
// lengths already, and padded rows or rows in groups have a single length.
bool wants_profile(
    const RecipeArguments& given,
    const train::Recipe& recipe,
    const ConfigReader& reader
) {
  const bool padded = data::arrangement(recipe.data) == "pad";
  const bool named = reader.origin("data.length") != "default" ||
                     reader.origin("train.seq_lengths") != "default" ||
                     reader.origin("train.shape_probs") != "default";
  const train::ObjectiveNeeds& needs = recipe.objective().needs;
  return given.lengths && given.resume.empty() && !named && !padded &&
         !needs.arrange && needs.row_group == 1;
}

void take_profile(
    const RecipeArguments& given,
    const Context& context,
    const train::Recipe& recipe,
    ConfigReader& reader
) {
  const auto mix = profile_lengths(recipe, given.profile, context);
  if (mix.lengths.empty()) return;
  const std::string origin = "profile " + mix.profile;
  const auto list = [](const auto& items) {
    return fmt::format("[{}]", fmt::join(items, ", "));
  };
  reader.apply_value("train.seq_lengths", list(mix.lengths), origin);
  reader.apply_value("train.shape_probs", list(mix.shares), origin);
  context.note(
      fmt::format(
          "rows of {} tokens, in shares of {:.3g}: the mix of {}; data.length "
          "or train.seq_lengths names others",
          fmt::join(mix.lengths, ", "), fmt::join(mix.shares, ", "), origin
      )
  );
}

}  // namespace

RecipeValues read_recipe(
    const RecipeArguments& given,
    const Context& context,
    train::Recipe& recipe
) {
  ConfigReader reader(recipe);
  const std::string file = read_words(given, reader);
  if (context.common.seed_given) {
    reader.apply_value(
        "run.seed", std::to_string(context.common.seed), "--seed"
    );
  }
  if (given.threads && context.common.threads > 0) {
    reader.apply_value(
        "run.threads", std::to_string(context.common.threads),
        context.common.threads_origin
    );
  }
  name_run(given, file, recipe, reader);
  if (const std::string from = recipe.model.from; !from.empty()) {
    std::string path = resolve_model(context, from);
    // That run may be trained further, so the recipe names its present step.
    if (const auto run = train::parse_run_reference(path)) {
      path = train::text_of(train::at_step(*run));
    }
    if (path != from) reader.apply_value("model.from", path, from);
  }
  if (wants_profile(given, recipe, reader)) {
    take_profile(given, context, recipe, reader);
  }
  if (!file.empty()) recipe.check();
  if (given.remarks) {
    for (const auto& line : recipe.remarks()) context.note(line);
  }
  return {reader.dump(), config_values(reader)};
}

void use_threads(const Context& context, const train::Recipe& recipe) {
  if (context.common.threads > 0 || recipe.run.threads == 0) return;
  set_shared_threads(static_cast<int>(recipe.run.threads));
}

std::string recipe_yaml(train::Recipe recipe) {
  return ConfigReader(recipe).to_yaml();
}

}  // namespace hearth::cli
