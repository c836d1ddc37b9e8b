#include "hearth/train/recipe/later_sections.h"

namespace hearth::train {

void QuantSection::fields(FieldVisitor& v) {
  v("enabled", enabled, "train for rounded weights; not built yet");
  v("start_fraction", start_fraction, "share of the steps before it starts",
    between(0, 1));
  v("weight_bits", weight_bits, "of the weights", between(2, 8));
  v("act_bits", act_bits, "of the activations", between(8, 16));
  v("kv_cache_precision", kv_cache_precision, "of keys and values",
    one_of({"fp16", "bf16", "fp32", "int8"}));
}

void CoreMlSection::fields(FieldVisitor& v) {
  v("enumerate_shapes", enumerate_shapes,
    "row lengths of the export; empty: as trained", may_change(at_least(1)));
  v("mlprogram", mlprogram, "an ML program; the only kind that is written",
    may_change());
  v("compute_units", compute_units, "where the export may run",
    may_change(one_of({"all", "cpu_and_ne", "cpu_and_gpu", "cpu_only"})));
}

void RfaiSection::fields(FieldVisitor& v) {
  v("num_samples_per_prompt", num_samples_per_prompt, "answers to each prompt",
    between(1, 1024));
  v("max_new_tokens", max_new_tokens, "of an answer", at_least(1));
  v("prompts_per_batch", prompts_per_batch, "answered at a time", at_least(1));
}

void DistillSection::fields(FieldVisitor& v) {
  v("teacher", teacher, "model to learn from; not built yet");
  v("divergence", divergence, "between the two models' tokens",
    one_of({"forward_kl", "reverse_kl", "jsd"}));
  v("temperature", temperature, "of both models' tokens", positive());
  v("weight", weight, "share of the teacher's loss", between(0, 1));
}

void HardwareSection::fields(FieldVisitor& v) {
  v("profile", profile, "hardware profile; auto: the one that matches",
    may_change());
}

}  // namespace hearth::train
