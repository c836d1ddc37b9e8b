// The smallest change of a recipe that fits the memory.
#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/optim/optimizer_kind.h"
#include "hearth/train/plan/plan_advice_impl.h"
#include "hearth/train/plan/planner.h"
#include "hearth/train/recipe/recipe_changes.h"

namespace hearth::train {
namespace {

struct Change {
  std::string words;  // overrides, as typed
  std::function<void(Recipe&)> apply;
  // It goes further on the way of the change before it and takes its place.
  bool further = false;
};

// Fewer rows at a time, as many in all: the update stays what it was.
void add_fewer_rows(const Recipe& r, std::vector<Change>& all) {
  const auto& t = r.train;
  const std::int64_t rows = batch_choice(r).all;
  std::int64_t micro = batch_choice(r).rows;
  while (micro > 1) {
    micro /= 2;
    if (rows % micro != 0) continue;
    const std::int64_t times = rows / micro;
    const bool both = t.gradient_accumulation_steps > 0;
    std::string words = fmt::format("train.micro_batch_size={}", micro);
    if (both) {
      words += fmt::format(" train.gradient_accumulation_steps={}", times);
    }
    all.push_back(
        {words,
         [micro, times, both](Recipe& x) {
           x.train.micro_batch_size = micro;
           if (both) x.train.gradient_accumulation_steps = times;
         },
         !all.empty()}
    );
  }
}

// From the one that costs least to the one that changes most.
std::vector<Change> changes_for(const Recipe& r) {
  std::vector<Change> all;
  const auto& t = r.train;
  if (t.micro_batch_size > 1 || t.gradient_accumulation_steps > 0) {
    add_fewer_rows(r, all);
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
  const std::string smaller(optim::optimizer_kind(r.optim.name).smaller);
  if (!r.lora && !smaller.empty()) {
    all.push_back({"optim.name=" + smaller, [smaller](Recipe& x) {
                     x.optim.name = smaller;
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
    bool begun,
    const std::function<bool(const Recipe&)>& fits
) {
  auto changes = changes_for(recipe);
  if (begun) {
    std::erase_if(changes, [&](const Change& c) {
      Recipe changed = recipe;
      c.apply(changed);
      return !std::ranges::all_of(
          recipe_changes(recipe, changed), &RecipeChange::resumable
      );
    });
  }
  for (const Change& c : changes) {
    Recipe one = recipe;
    c.apply(one);
    if (fits(one)) return c.words;
  }
  Recipe several = recipe;
  std::vector<std::string> words;
  for (const Change& c : changes) {
    c.apply(several);
    if (c.further) words.pop_back();
    words.push_back(c.words);
    if (fits(several)) return fmt::format("{}", fmt::join(words, " "));
  }
  return {};
}

}  // namespace hearth::train
