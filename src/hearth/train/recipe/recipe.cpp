#include "hearth/train/recipe/recipe.h"

#include <algorithm>

namespace hearth::train {

void TrainSection::fields(FieldVisitor& v) {
  std::vector<std::string> names;
  for (const auto& kind : objective_kinds()) names.push_back(kind.name);
  v("objective", objective, "what is minimised", one_of(std::move(names)));
  v("steps", steps, "optimiser steps", may_change(at_least(1)));
  v("epochs", epochs, "passes over the data, in place of steps",
    may_change(between(0, 10000)));
  v("tokens_per_step", tokens_per_step, "tokens of one update",
    between(1, 0x1p40));
  v("micro_batch_size", micro_batch_size, "rows at a time; 0: what fits",
    may_change(between(0, 1 << 18)));
  v("gradient_accumulation_steps", gradient_accumulation_steps,
    "micro-batches of one update; 0: what is left",
    may_change(between(0, 1 << 18)));
  v("seq_lengths", seq_lengths, "row lengths, in place of data.length");
  v("shape_probs", shape_probs, "how often each length comes");
  v("shape_guarantee", shape_guarantee,
    "every length comes at least once in so many steps; 0: as drawn",
    between(0, 1'000'000));
  v("precision", precision, "of products and activations",
    may_change(one_of({"bf16", "fp32", "fp16"})));
  v("loss_scale", loss_scale,
    "what fp16 multiplies the mean loss by at first; 0: 65536",
    between(0, 0x1p32));
  v("checkpointing", checkpointing,
    "blocks computed again in the backward pass: auto, none, all, or every "
    "k-th as a number",
    may_change());
  v("packed", packed,
    "trained matrices that are also kept as products read them: auto, all, or "
    "head (the others are packed in every pass: slower, 4 bytes a weight less)",
    may_change(one_of({"auto", "all", "head"})));
  v("eval_interval", eval_interval, "micro-batches evaluated together",
    may_change(between(1, 64)));
  v("memory", memory, "byte budget such as 6G, or auto", may_change());
  v("dynamic_batch", dynamic_batch, "move the micro-batch with memory use",
    may_change());
  v("eval_every", eval_every, "steps between validations; 0: at the end",
    may_change(at_least(0)));
  v("eval_tokens", eval_tokens, "tokens of a validation at most",
    may_change(at_least(1)));
  v("early_stop", early_stop, "validations without gain before stopping",
    may_change(at_least(0)));
  v("save_every", save_every,
    "steps between checkpoints; 0: a tenth of the run, after one to ten "
    "minutes",
    may_change(at_least(0)));
  v("keep", keep, "checkpoints kept beside the best and the last healthy one",
    may_change(between(1, 1000000)));
  objectives.fields(v);
  v("health", health, "what a bad step is and what is done about it");
}

void LoraSection::fields(FieldVisitor& v) {
  form_fields(v);
  v("quantize_base", quantize_base,
    "bits the base is rounded to on the way in, 4 or 8; 0: as it is",
    between(0, 8));
}

void RunSection::fields(FieldVisitor& v) {
  v("dir", dir, "folder of the run");
  v("seed", seed, "of weights, order and noise");
  v("threads", threads, "as --threads, which wins; 0: all",
    may_change(between(0, 4096)));
}

void Recipe::fields(FieldVisitor& v) {
  v("model", model, "what is trained");
  v("data", data, "what it is trained on");
  v("train", train, "how");
  v("optim", optim, "optimiser and schedule");
  v("lora", lora, "adapters in place of the whole model");
  v("run", run, "where it is kept");
  v("quant", quant, "training aware of quantisation");
  v("coreml", coreml, "what a Core ML export is to be");
  v("rfai", rfai, "answers scored by a teacher");
  v("distill", distill, "learning from a teacher");
  v("hardware", hardware, "what it is trained on");
}

const ObjectiveKind& Recipe::objective() const {
  return objective_kind(train.objective);
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

}  // namespace hearth::train
