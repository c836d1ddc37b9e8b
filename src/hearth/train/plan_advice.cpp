#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/train/plan_advice_impl.h"

namespace hearth::train {
namespace {

struct Change {
  std::string words;  // overrides, as typed
  std::function<void(Recipe&)> apply;
};

// From the one that costs least to the one that changes most.
std::vector<Change> changes_for(const Recipe& r) {
  std::vector<Change> all;
  const auto& t = r.train;
  if (t.micro_batch_size > 1 || t.gradient_accumulation_steps > 0) {
    all.push_back({"train.micro_batch_size=1", [](Recipe& x) {
                     const auto tokens = x.step_tokens();
                     x.train.micro_batch_size = 1;
                     x.train.gradient_accumulation_steps = 0;
                     x.train.tokens_per_step =
                         static_cast<std::int64_t>(tokens);
                   }});
  }
  if (t.checkpointing != "all" && t.checkpointing != "auto") {
    all.push_back({"train.checkpointing=all", [](Recipe& x) {
                     x.train.checkpointing = "all";
                   }});
  }
  if (t.precision == "fp32") {
    all.push_back({"train.precision=bf16", [](Recipe& x) {
                     x.train.precision = "bf16";
                   }});
  }
  if (!r.lora && (r.optim.name == "adamw" || r.optim.name == "muon")) {
    all.push_back({"optim.name=adamw8bit", [](Recipe& x) {
                     x.optim.name = "adamw8bit";
                   }});
  }
  const auto shorter = r.longest() / 2;
  if (t.seq_lengths.empty() && shorter >= 128) {
    all.push_back(
        {fmt::format("data.length={}", shorter),
         [shorter](Recipe& x) { x.data.length = shorter; }}
    );
  }
  if (!r.model.from.empty() && !r.lora) {
    all.push_back({"lora.rank=16", [](Recipe& x) { x.lora.emplace(); }});
  }
  return all;
}

}  // namespace

std::string smallest_change(
    const Recipe& recipe,
    const std::function<bool(const Recipe&)>& fits
) {
  const auto changes = changes_for(recipe);
  for (const Change& c : changes) {
    Recipe one = recipe;
    c.apply(one);
    if (fits(one)) return c.words;
  }
  Recipe several = recipe;
  std::vector<std::string> words;
  for (const Change& c : changes) {
    c.apply(several);
    words.push_back(c.words);
    if (fits(several)) return fmt::format("{}", fmt::join(words, " "));
  }
  return {};
}

}  // namespace hearth::train
