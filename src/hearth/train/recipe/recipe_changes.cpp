#include "hearth/train/recipe/recipe_changes.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/train/recipe/recipe_paths.h"

namespace hearth::train {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

Values values_of(Recipe recipe) {
  FieldVisitor v;
  recipe.fields(v);
  Values out;
  for (const auto& field : v.fields()) {
    const bool off = std::ranges::any_of(v.sections(), [&](const Section& s) {
      return !s.present && field->path.starts_with(s.path + ".");
    });
    out.emplace_back(field->path, off ? "off" : field->show());
  }
  return out;
}

bool may_change(const std::string& key) {
  return std::ranges::any_of(resumable_keys(), [&](const std::string& k) {
    return k.ends_with('.') ? key.starts_with(k) : key == k;
  });
}

}  // namespace

std::vector<RecipeChange> recipe_changes(
    const Recipe& before,
    const Recipe& now
) {
  const Values then = values_of(with_absolute_paths(before));
  const Values own = values_of(with_absolute_paths(now));
  std::vector<RecipeChange> out;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const auto& [key, value] = own[i];
    if (key == "run.dir" || value == then[i].second) continue;
    out.push_back({key, then[i].second, value});
  }
  return out;
}

const std::vector<std::string>& resumable_keys() {
  static const std::vector<std::string> keys = {
      // How long, and how often what is done.
      "train.steps", "train.epochs", "train.eval_every", "train.eval_tokens",
      "train.early_stop", "train.save_every", "train.keep", "train.health.",
      // How an update is computed; its tokens stay the same.
      "train.micro_batch_size", "train.gradient_accumulation_steps",
      "train.precision", "train.checkpointing", "train.packed",
      "train.eval_interval", "train.memory", "train.dynamic_batch",
      "run.threads",
      // What is minimised, as far as no saved number depends on it.
      "train.label_smoothing", "train.z_loss", "train.neftune",
      "train.dpo_beta", "lora.dropout",
      // How the optimiser moves, as far as its state stays the same.
      "optim.lr", "optim.schedule", "optim.warmup", "optim.decay_fraction",
      "optim.min_lr", "optim.weight_decay", "optim.clip", "optim.betas",
      "optim.eps", "optim.decay_embeddings", "optim.no_decay",
      "optim.muon.momentum", "optim.muon.nesterov", "optim.muon.steps",
      "optim.muon.rms", "optim.muon.precision", "optim.adafactor.decay_rate",
      "optim.adafactor.clip", "optim.adafactor.scale_by_size",
      // What training does not read.
      "quant.", "coreml.", "rfai.", "distill.", "hardware.",
      // Where things lie. The loader compares what is in the data, the trainer
      // what is in a base that it goes on reading.
      "model.from", "model.adapter", "data.train", "data.mix", "data.tokenizer",
      "data.cache", "data.workers", "data.prefetch"
  };
  return keys;
}

void check_resumable(const Recipe& before, const Recipe& now) {
  for (const auto& c : recipe_changes(before, now)) {
    if (may_change(c.key)) continue;
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
