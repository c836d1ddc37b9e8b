#include "hearth/optim/optim_config.h"

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/optim/optimizer_kind.h"

namespace hearth::optim {

void MuonConfig::fields(FieldVisitor& v) {
  v("momentum", momentum, "of the gradient's running sum",
    may_change(between(0, 0.9999)));
  v("nesterov", nesterov, "look one step ahead", may_change());
  v("steps", steps, "Newton-Schulz iterations", may_change(between(1, 20)));
  v("rms", rms, "size of an update's elements, so that lr suits both",
    may_change(positive()));
  v("precision", precision, "of the iterations' products",
    may_change(one_of({"bf16", "fp32"})));
  v("exclude", exclude, "matrices that AdamW updates: patterns of names");
}

void AdafactorConfig::fields(FieldVisitor& v) {
  v("decay_rate", decay_rate, "the second moment forgets with 1 - step^-this",
    may_change(between(0, 1)));
  v("clip", clip, "largest root mean square of an update",
    may_change(positive()));
  v("momentum", momentum, "of the update's running mean; 0: none",
    between(0, 0.9999));
  v("scale_by_size", scale_by_size, "lr times the weight's own size",
    may_change());
}

void OptimConfig::fields(FieldVisitor& v) {
  v("name", name, "optimiser", one_of(optimizer_names()));
  v("lr", lr, "peak learning rate", may_change(positive()));
  v("schedule", schedule, "how the rate falls",
    may_change(one_of({"constant", "linear", "cosine", "wsd"})));
  v("warmup", warmup, "steps of linear rise, or below 1 a share of all steps",
    may_change(at_least(0)));
  v("decay_fraction", decay_fraction, "wsd: share of the steps that decay",
    may_change(between(0, 1)));
  v("min_lr", min_lr, "where the rate ends, as a share of lr",
    may_change(between(0, 1)));
  v("weight_decay", weight_decay, "decoupled, times the rate; not of vectors",
    may_change(at_least(0)));
  v("clip", clip, "largest global gradient norm; 0: off",
    may_change(at_least(0)));
  v("betas", betas, "two of them; [0.9, 0.95], lion [0.9, 0.99]",
    may_change(between(0, 0.999999)));
  v("eps", eps, "added to the root of the second moment",
    may_change(positive()));
  v("decay_embeddings", decay_embeddings, "weight decay on embeddings too",
    may_change());
  v("no_decay", no_decay, "parameters without weight decay: patterns of names",
    may_change());
  v("muon", muon, "muon's own");
  v("adafactor", adafactor, "adafactor's own");
}

void OptimConfig::check() const {
  if (!betas.empty() && betas.size() != 2) {
    throw UsageError(
        fmt::format("[optim.config] betas must be two, got {}", betas.size())
    );
  }
}

std::pair<double, double> OptimConfig::betas_or_default() const {
  check();
  if (!betas.empty()) return {betas[0], betas[1]};
  return optimizer_kind(name).betas;
}

}  // namespace hearth::optim
