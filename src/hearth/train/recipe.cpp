#include "hearth/train/recipe.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::train {

void TrainSection::fields(FieldVisitor& v) {
  v("objective", objective, "what is minimised", one_of({"lm", "dpo"}));
  v("steps", steps, "optimiser steps", at_least(1));
  v("epochs", epochs, "passes over the data, in place of steps", at_least(0));
  v("tokens_per_step", tokens_per_step, "tokens of one update", at_least(1));
  v("micro_batch_size", micro_batch_size, "rows at a time; 0: what fits",
    at_least(0));
  v("gradient_accumulation_steps", gradient_accumulation_steps,
    "micro-batches of one update; 0: what is left", at_least(0));
  v("seq_lengths", seq_lengths, "row lengths, in place of data.length");
  v("shape_probs", shape_probs, "how often each length comes");
  v("shape_guarantee", shape_guarantee,
    "every length comes at least once in so many steps; 0: as drawn",
    at_least(0));
  v("precision", precision, "of products and activations",
    one_of({"bf16", "fp32", "fp16"}));
  v("checkpointing", checkpointing,
    "blocks computed again in the backward pass: auto, none, all, or every "
    "k-th as a number");
  v("packed", packed,
    "trained matrices that are also kept as products read them: auto, all, or "
    "head (the others are packed in every pass: slower, 4 bytes a weight less)",
    one_of({"auto", "all", "head"}));
  v("eval_interval", eval_interval, "micro-batches evaluated together",
    between(1, 64));
  v("memory", memory, "byte budget such as 6G, or auto");
  v("dynamic_batch", dynamic_batch, "move the micro-batch with memory use");
  v("eval_every", eval_every, "steps between validations; 0: at the end",
    at_least(0));
  v("eval_tokens", eval_tokens, "tokens of a validation at most", at_least(1));
  v("early_stop", early_stop, "validations without gain before stopping",
    at_least(0));
  v("save_every", save_every, "steps between checkpoints; 0: at the end",
    at_least(0));
  v("keep", keep, "checkpoints kept beside the best", at_least(1));
  v("label_smoothing", label_smoothing, "share given to all other tokens",
    between(0, 0.9));
  v("z_loss", z_loss, "weight of the squared log-sum-exp", at_least(0));
  v("neftune", neftune, "noise on the embeddings; 0: none", at_least(0));
  v("dpo_beta", dpo_beta, "dpo: strength of the pull to the reference",
    positive());
  v("health", health, "what a bad step is and what is done about it");
}

void RunSection::fields(FieldVisitor& v) {
  v("dir", dir, "folder of the run");
  v("seed", seed, "of weights, order and noise");
}

void Recipe::fields(FieldVisitor& v) {
  v("model", model, "what is trained");
  v("data", data, "what it is trained on");
  v("train", train, "how");
  v("optim", optim, "optimiser and schedule");
  v("lora", lora, "adapters in place of the whole model");
  v("run", run, "where it is kept");
}

std::int64_t Recipe::longest() const {
  if (train.seq_lengths.empty()) return data.length;
  return *std::ranges::max_element(train.seq_lengths);
}

std::uint64_t Recipe::step_tokens() const {
  const auto& t = train;
  if (t.micro_batch_size > 0 && t.gradient_accumulation_steps > 0) {
    return static_cast<std::uint64_t>(
        t.micro_batch_size * t.gradient_accumulation_steps * longest()
    );
  }
  return static_cast<std::uint64_t>(t.tokens_per_step);
}

void Recipe::check() const {
  const auto require = [](bool holds, const std::string& what) {
    if (!holds) throw UsageError(what);
  };
  optim.check();
  require(
      train.shape_probs.empty() ||
          train.shape_probs.size() == train.seq_lengths.size(),
      fmt::format(
          "train.shape_probs must have one number for each of "
          "train.seq_lengths, got {} and {}",
          train.shape_probs.size(), train.seq_lengths.size()
      )
  );
  for (const auto n : train.seq_lengths) {
    require(
        n >= 8, fmt::format("train.seq_lengths must be at least 8, got {}", n)
    );
  }
  require(
      step_tokens() >= static_cast<std::uint64_t>(longest()),
      fmt::format(
          "train.tokens_per_step must hold one row of {} tokens, got {}",
          longest(), train.tokens_per_step
      )
  );
  require(
      !lora || !model.from.empty(),
      "lora must have a model to adapt: give model.from"
  );
  require(
      model.adapter.empty() || lora,
      "model.adapter must have a lora section that describes it"
  );
  require(
      train.objective != "dpo" || !model.from.empty(),
      "train.objective dpo must have a model to start from: give model.from"
  );
  const auto& c = train.checkpointing;
  const bool number = !c.empty() && std::ranges::all_of(c, [](char d) {
    return d >= '0' && d <= '9';
  });
  require(
      c == "auto" || c == "none" || c == "all" || (number && c.size() < 5),
      fmt::format(
          "train.checkpointing must be auto, none, all or a number, got '{}'", c
      )
  );
}

}  // namespace hearth::train
