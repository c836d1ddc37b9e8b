#include "hearth/train/planner.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/base/units.h"
#include "hearth/data/tokenizer/tokenizer.h"
#include "hearth/io/model_source.h"
#include "hearth/models/family.h"
#include "hearth/models/load.h"
#include "hearth/ops/execution.h"
#include "hearth/train/session.h"

namespace hearth::train {
namespace {

// Products are at their best from a few thousand tokens on, and memory grows
// with every one.
constexpr std::int64_t kUsualMicroTokens = 8192;
// Below so many tokens computing blocks again costs less than small products.
constexpr std::int64_t kLeastMicroTokens = 1024;

// The share of the measured peak that a whole training step is taken to reach,
// by width of the model. Estimates, not yet held against runs: narrow models
// spend more on all that is not a product.
struct Efficiency {
  double dim, share;
};
constexpr Efficiency kEfficiency[] =
    {{64, 0.20}, {128, 0.35}, {256, 0.52}, {384, 0.65}, {768, 0.75}};

double efficiency(double dim) {
  const Efficiency* last = std::end(kEfficiency) - 1;
  if (dim <= kEfficiency[0].dim) return kEfficiency[0].share;
  if (dim >= last->dim) return last->share;
  const auto* above = std::ranges::find_if(kEfficiency, [&](const auto& e) {
    return e.dim >= dim;
  });
  const auto* below = above - 1;
  const double t =
      std::log(dim / below->dim) / std::log(above->dim / below->dim);
  return below->share + t * (above->share - below->share);
}

int vocabulary_of(const Recipe& recipe) {
  if (recipe.model.vocab > 0) return recipe.model.vocab;
  if (const auto training = data::tokenizer_training(recipe.data)) {
    return static_cast<int>(training->vocab);
  }
  const auto tokenizer =
      data::Tokenizer::load(data::tokenizer_path(recipe.data));
  return static_cast<int>(tokenizer->id_limit());
}

MemoryQuestion question_of(
    const Recipe& r,
    const PlannedModel& model,
    const PlanMachine& machine,
    std::int64_t rows,
    const std::string& checkpointing
) {
  MemoryQuestion q;
  q.model = model.config;
  q.quantized_bytes = r.lora ? model.quantized_bytes : 0;
  q.bf16 = r.train.precision != "fp32";
  q.lora = r.lora;
  q.optim = r.optim;
  q.preference = r.train.objective == "dpo";
  q.label_smoothing = static_cast<float>(r.train.label_smoothing);
  q.step_tokens = static_cast<std::int64_t>(r.step_tokens());
  q.lengths = r.train.seq_lengths;
  if (q.lengths.empty()) q.lengths = {r.data.length};
  q.rows = rows;
  q.together = static_cast<int>(r.train.eval_interval);
  q.checkpointed = checkpointed_layers(checkpointing, model.config.layers);
  q.prefetch = r.data.prefetch;
  q.threads = machine.threads;
  q.table = machine.table != nullptr ? machine.table
                                     : &ops::current_execution().kernels;
  return q;
}

// One way to cut a step, and what it takes.
struct Cut {
  std::int64_t rows;
  std::string checkpointing;
  MemoryTable memory;
  bool fits;
};

class Cutting {
 public:
  Cutting(const Recipe& r, const PlannedModel& m, const PlanMachine& machine)
      : recipe_(r), model_(m), machine_(machine), batch_(batch_choice(r)) {}

  const BatchChoice& batch() const { return batch_; }

  // The first that fits: usual rows, fewer, blocks again, one row. Without
  // one, the smallest.
  Cut choose() const {
    const std::string& asked = recipe_.train.checkpointing;
    const auto longest = recipe_.longest();
    std::vector<Cut> tried;
    const auto go = [&](const std::string& policy, std::int64_t least_tokens) {
      for (std::int64_t rows = batch_.rows;; rows = (rows + 1) / 2) {
        tried.push_back(at(rows, policy));
        const bool smaller =
            !batch_.pinned && rows > 1 && rows / 2 * longest >= least_tokens;
        if (tried.back().fits || !smaller) return tried.back().fits;
      }
    };
    if (asked != "auto") {
      go(asked, 1);
    } else if (!go("none", kLeastMicroTokens)) {
      go("all", 1);
    }
    return tried.back();
  }

  Cut at(std::int64_t rows, const std::string& policy) const {
    Cut c{rows, policy, predict_memory(question(rows, policy)), true};
    c.fits = machine_.budget == 0 || c.memory.total() <= machine_.budget;
    return c;
  }

  // Where the batch policy takes the rows: doubled while a step takes less than
  // half of the budget, as long as the whole process stays within it.
  std::int64_t settle(const Cut& cut) const {
    std::int64_t rows = cut.rows;
    if (batch_.pinned || machine_.budget == 0) return rows;
    while (rows < batch_.all &&
           predict_charged(question(rows, cut.checkpointing)) <
               machine_.budget / 2) {
      const std::int64_t next = std::min(2 * rows, batch_.all);
      if (!at(next, cut.checkpointing).fits) break;
      rows = next;
    }
    return rows;
  }

 private:
  const Recipe& recipe_;
  const PlannedModel& model_;
  const PlanMachine& machine_;
  BatchChoice batch_;

  MemoryQuestion question(std::int64_t rows, const std::string& policy) const {
    return question_of(recipe_, model_, machine_, rows, policy);
  }
};

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

std::string smallest_change(
    const Recipe& recipe,
    const PlannedModel& model,
    const PlanMachine& machine
) {
  const auto fits = [&](const Recipe& r) {
    return Cutting(r, model, machine).choose().fits;
  };
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

void explain(Plan& plan, const Cutting& cutting, const Recipe& recipe) {
  const auto& batch = cutting.batch();
  const auto tokens = plan.rows * recipe.longest();
  auto& why = plan.reasons;
  if (batch.pinned) {
    why.push_back(
        fmt::format("{} rows at a time, as the recipe says", plan.rows)
    );
  } else if (plan.rows == batch.rows) {
    why.push_back(
        plan.rows == batch.all
            ? fmt::format("{} rows at a time: the whole step", plan.rows)
            : fmt::format(
                  "{} rows at a time: products gain nothing beyond {} tokens",
                  plan.rows, tokens
              )
    );
  } else {
    why.push_back(
        fmt::format(
            "{} rows at a time: {} would not fit the budget", plan.rows,
            plan.rows * 2
        )
    );
  }
  if (plan.settled_rows > plan.rows) {
    why.push_back(
        fmt::format(
            "grows to {} rows while a step takes less than half of the budget",
            plan.settled_rows
        )
    );
  }
  const bool automatic = recipe.train.checkpointing == "auto";
  if (!automatic) {
    why.push_back("checkpointing as the recipe says: " + plan.checkpointing);
  } else if (plan.checkpointing == "none") {
    why.push_back("no checkpointing: activations fit");
  } else {
    why.push_back(
        "all blocks are computed again: activations would not fit otherwise"
    );
  }
}

}  // namespace

PlannedModel planned_model(const Recipe& recipe) {
  if (recipe.model.from.empty()) {
    return {models::new_model(
        recipe.model, vocabulary_of(recipe), static_cast<int>(recipe.longest())
    )};
  }
  const auto source = io::open_model(recipe.model.from);
  PlannedModel model{
      models::parse_config(source->config(), models::config_name(*source))
  };
  if (source->config().contains("quantization")) {
    for (const auto& t : source->tensors()) model.quantized_bytes += t.bytes;
  }
  return model;
}

BatchChoice batch_choice(const Recipe& recipe) {
  BatchChoice b;
  const auto length = recipe.longest();
  b.all = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(recipe.step_tokens()) / length
  );
  const auto& t = recipe.train;
  std::int64_t rows = t.micro_batch_size;
  if (rows == 0 && t.gradient_accumulation_steps > 0) {
    rows = (b.all + t.gradient_accumulation_steps - 1) /
           t.gradient_accumulation_steps;
  }
  b.pinned = rows > 0 || !t.dynamic_batch;
  if (rows == 0) {
    rows = std::clamp<std::int64_t>(kUsualMicroTokens / length, 1, b.all);
  }
  b.rows = std::min(rows, b.all);
  return b;
}

double training_flops(
    const models::DecoderConfig& model,
    const ParameterCount& parameters,
    bool adapters,
    std::int64_t length
) {
  const double attention = 12.0 * model.layers * model.heads * model.head_dim *
                           static_cast<double>(length);
  const auto all = static_cast<double>(parameters.all - parameters.gathered);
  const auto trained = static_cast<double>(parameters.trained);
  return (adapters ? 4 * all + 2 * trained : 6 * all) + attention;
}

Plan make_plan(
    const Recipe& recipe,
    const PlannedModel& model,
    const PlanMachine& machine
) {
  const Cutting cutting(recipe, model, machine);
  const Cut cut = cutting.choose();
  Plan plan;
  plan.rows = cut.rows;
  plan.checkpointing = cut.checkpointing;
  plan.fits = cut.fits;
  plan.budget = machine.budget;
  plan.budget_reason = machine.budget_reason;
  plan.peak_gflops = machine.peak_gflops;
  plan.settled_rows = cut.fits ? cutting.settle(cut) : cut.rows;
  plan.memory = cutting.at(plan.settled_rows, cut.checkpointing).memory;
  plan.accumulation =
      (cutting.batch().all + plan.settled_rows - 1) / plan.settled_rows;
  if (!cut.fits) plan.advice = smallest_change(recipe, model, machine);
  plan.parameters = count_parameters(model.config, recipe.lora);
  plan.step_flops = training_flops(
                        model.config, plan.parameters, recipe.lora.has_value(),
                        recipe.longest()
                    ) *
                    static_cast<double>(recipe.step_tokens());
  if (recipe.train.epochs <= 0) plan.steps = recipe.train.steps;
  if (machine.peak_gflops > 0) {
    // A block that is computed again runs forward twice.
    const auto again =
        checkpointed_layers(plan.checkpointing, model.config.layers);
    const auto blocks = static_cast<double>(std::ranges::count(again, true));
    const double more = 1 + blocks / model.config.layers / 3;
    plan.step_seconds =
        plan.step_flops * more /
        (machine.peak_gflops * 1e9 * efficiency(model.config.dim));
  }
  explain(plan, cutting, recipe);
  return plan;
}

void check_fits(const Plan& plan) {
  if (plan.fits) return;
  throw OutOfMemory(
      fmt::format(
          "the run would take {} and may take {} ({})",
          format_bytes(plan.memory.total()), format_bytes(plan.budget),
          plan.budget_reason
      ),
      plan.advice.empty() ? "use a smaller model, shorter rows, or lora"
                          : "this would fit: " + plan.advice
  );
}

Json Plan::to_json() const {
  Json parts = Json::object();
  for (const auto& [name, bytes] : memory.rows()) parts[name] = bytes;
  Json j{
      {"parameters", parameters.all},
      {"trained", parameters.trained},
      {"memory", parts},
      {"peak_bytes", memory.total()},
      {"peak_mib", static_cast<double>(memory.total()) / (1 << 20)},
      {"fits", fits},
      {"micro_batch", rows},
      {"settled_micro_batch", settled_rows},
      {"accumulation", accumulation},
      {"checkpointing", checkpointing},
      {"reasons", reasons},
      {"step_flops", step_flops}
  };
  if (budget > 0) {
    j["budget_bytes"] = budget;
    j["budget_reason"] = budget_reason;
  }
  if (!advice.empty()) j["advice"] = advice;
  if (step_seconds) j["step_seconds"] = *step_seconds;
  if (step_seconds && steps > 0) {
    j["total_seconds"] = *step_seconds * static_cast<double>(steps);
  }
  return j;
}

}  // namespace hearth::train
