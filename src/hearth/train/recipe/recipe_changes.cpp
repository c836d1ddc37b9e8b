#include "hearth/train/recipe/recipe_changes.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/train/recipe/recipe_paths.h"

namespace hearth::train {
namespace {

struct Value {
  std::string key, text;
  bool may_change = false;
};

std::vector<Value> values_of(Recipe recipe) {
  FieldVisitor v;
  recipe.fields(v);
  std::vector<Value> out;
  for (const auto& field : v.fields()) {
    const bool off = std::ranges::any_of(v.sections(), [&](const Section& s) {
      return !s.present && field->path.starts_with(s.path + ".");
    });
    out.push_back(
        {field->path, off ? "off" : field->show(), field->constraint.may_change}
    );
  }
  return out;
}

}  // namespace

std::vector<RecipeChange> recipe_changes(
    const Recipe& before,
    const Recipe& now
) {
  const auto then = values_of(with_absolute_paths(before));
  const auto own = values_of(with_absolute_paths(now));
  std::vector<RecipeChange> out;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const auto& [key, text, may_change] = own[i];
    if (key == "run.dir" || text == then[i].text) continue;
    out.push_back({key, then[i].text, text, may_change});
  }
  return out;
}

void check_resumable(const Recipe& before, const Recipe& now) {
  for (const auto& c : recipe_changes(before, now)) {
    if (c.resumable) continue;
    throw UsageError(
        fmt::format(
            "{} cannot change in a run that has begun: it is {}, got {}", c.key,
            c.before, c.now
        ),
        "--resume may change how a run goes on, such as train.steps or "
        "optim.lr; docs/train.md has the list"
    );
  }
  if (before.step_tokens() == now.step_tokens()) return;
  throw UsageError(
      fmt::format(
          "an update must stay {} tokens in a run that has begun, got {} by "
          "train.micro_batch_size and train.gradient_accumulation_steps",
          before.step_tokens(), now.step_tokens()
      )
  );
}

}  // namespace hearth::train
