// Values of a recipe that are allowed and will not do what they seem to.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/train/recipe/recipe.h"

namespace hearth::train {
namespace {

// Keys of a new model that say something else than their default.
std::vector<std::string> sizes_given(models::ModelSection model) {
  models::ModelSection plain;
  model.gate.reset();
  FieldVisitor given, defaults;
  model.fields(given);
  plain.fields(defaults);
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < given.fields().size(); ++i) {
    const Field& f = *given.fields()[i];
    const bool read =
        f.path == "from" || f.path == "adapter" || f.path == "max_length";
    if (read || f.show() == defaults.fields()[i]->show()) continue;
    keys.push_back("model." + f.path);
  }
  return keys;
}

void remark_on_batch(const Recipe& r, std::vector<std::string>& out) {
  const TrainSection& t = r.train;
  const bool pinned =
      t.micro_batch_size > 0 && t.gradient_accumulation_steps > 0;
  const auto tokens = static_cast<std::int64_t>(r.step_tokens());
  const auto whole = tokens / r.longest() * r.longest();
  if (pinned && t.tokens_per_step != TrainSection().tokens_per_step &&
      t.tokens_per_step != tokens) {
    out.push_back(
        fmt::format(
            "train.tokens_per_step {} is not used: the pinned batch is {} "
            "tokens",
            t.tokens_per_step, tokens
        )
    );
  } else if (whole != tokens) {
    out.push_back(
        fmt::format(
            "a step has {} tokens, not {}: whole rows of {}", whole, tokens,
            r.longest()
        )
    );
  }
  if (!pinned && t.micro_batch_size * r.longest() > tokens) {
    out.push_back(
        fmt::format(
            "train.micro_batch_size {} is more than the {} rows of a step "
            "(train.tokens_per_step {})",
            t.micro_batch_size, tokens / r.longest(), t.tokens_per_step
        )
    );
  }
  if (!pinned && t.gradient_accumulation_steps > tokens / r.longest()) {
    out.push_back(
        fmt::format(
            "train.gradient_accumulation_steps {} is more than the {} rows of "
            "a step (train.tokens_per_step {})",
            t.gradient_accumulation_steps, tokens / r.longest(),
            t.tokens_per_step
        )
    );
  }
}

}  // namespace

std::vector<std::string> Recipe::remarks() const {
  std::vector<std::string> out;
  remark_on_batch(*this, out);
  if (train.epochs <= 0 && optim.warmup >= 1 &&
      optim.warmup >= static_cast<double>(train.steps)) {
    out.push_back(
        fmt::format(
            "optim.warmup {:g} is not shorter than the {} steps: the rate "
            "never reaches optim.lr",
            optim.warmup, train.steps
        )
    );
  }
  if (train.epochs > 0 && train.steps != TrainSection().steps) {
    out.push_back(
        fmt::format(
            "train.steps {} is not used: train.epochs is given", train.steps
        )
    );
  }
  if (train.eval_every > 0 && !data::holds_out(data)) {
    out.emplace_back(
        "train.eval_every is not used: data.valid holds nothing out"
    );
  }
  if (!model.from.empty()) {
    auto keys = sizes_given(model);
    if (model.gate) keys.emplace_back("model.gate");
    if (!keys.empty()) {
      out.push_back(
          fmt::format(
              "{} {} for new models and not used: model.from is as it is",
              fmt::join(keys, ", "), keys.size() > 1 ? "are" : "is"
          )
      );
    }
  }
  for (const auto& key : train.objectives.unused_by(train.objective)) {
    out.push_back(
        fmt::format(
            "train.{} is not used with train.objective {}", key, train.objective
        )
    );
  }
  if (rfai) {
    out.emplace_back("rfai is kept in the run's config and not used by train");
  }
  return out;
}

}  // namespace hearth::train
