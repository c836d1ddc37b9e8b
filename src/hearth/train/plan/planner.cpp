#include "hearth/train/plan/planner.h"

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/units.h"
#include "hearth/io/model_source.h"
#include "hearth/models/adapters.h"
#include "hearth/models/decoder.h"
#include "hearth/models/family.h"
#include "hearth/models/load.h"
#include "hearth/text/tokenizer/tokenizer.h"
#include "hearth/train/loop/run_model.h"
#include "hearth/train/loop/session.h"
#include "hearth/train/loop/session_start.h"
#include "hearth/train/plan/plan_advice_impl.h"
#include "hearth/train/plan/plan_cutting_impl.h"
#include "hearth/train/plan/positions.h"
#include "hearth/train/plan/step_time.h"

namespace hearth::train {
namespace {

int vocabulary_of(const Recipe& recipe) {
  if (recipe.model.vocab > 0) return recipe.model.vocab;
  if (const auto training = data::tokenizer_training(recipe.data)) {
    return static_cast<int>(training->vocab);
  }
  const auto tokenizer =
      text::Tokenizer::load(data::tokenizer_path(recipe.data));
  return static_cast<int>(tokenizer->id_limit());
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
  if (row_lengths(recipe).size() > 1) {
    why.emplace_back("of shorter rows as many more as have as many tokens");
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
    why.emplace_back("no checkpointing: activations fit");
  } else {
    why.emplace_back(
        "all blocks are computed again: activations would not fit otherwise"
    );
  }
  if (plan.packed == "head" && recipe.train.packed == "auto") {
    why.emplace_back(
        "only the head stays packed: copies of the other matrices would not fit"
    );
  }
}

}  // namespace

PlannedModel planned_model(const Recipe& recipe) {
  if (recipe.model.from.empty()) {
    PlannedModel model{models::new_model(
        recipe.model, vocabulary_of(recipe), static_cast<int>(recipe.longest())
    )};
    check_positions(recipe, model.config);
    return model;
  }
  const auto source = open_base(recipe.model.from);
  PlannedModel model{
      models::parse_config(source->config(), models::config_name(*source))
  };
  check_positions(recipe, model.config);
  check_checkpointed(recipe.train.checkpointing, model.config.layers);
  const models::Blueprint blueprint(model.config);
  if (recipe.lora) models::check_targets(blueprint, *recipe.lora);
  // As adapters would have it, whether they are asked for or to be advised.
  models::LoadOptions options;
  options.use = models::Use::frozen_base;
  options.quantize = base_format(recipe);
  model.quantized = models::quantized_formats(*source, blueprint, options);
  if (recipe.objective().needs.start_model) {
    const bool wide = recipe.train.precision == "fp32";
    model.start_quantized =
        start_formats(*source, model.config, wide ? mx::float32 : mx::bfloat16);
  }
  model.source = source;
  return model;
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
  plan.checkpointing = cut.policy.checkpointing;
  plan.packed = cut.policy.packed;
  plan.fits = cut.fits;
  plan.budget = machine.budget;
  plan.begun = machine.begun;
  plan.budget_reason = machine.budget_reason;
  plan.peak_gflops = machine.peak_gflops;
  plan.settled_rows = cut.fits ? cutting.settle(cut) : cut.rows;
  const Cut settled{plan.settled_rows, cut.policy, cut.fits};
  plan.memory = cutting.memory(settled);
  plan.accumulation =
      (cutting.batch().all + plan.settled_rows - 1) / plan.settled_rows;
  if (!cut.fits) {
    const auto fits = [&](const Recipe& r) {
      return Cutting(r, model, machine).choose().fits;
    };
    plan.advice = smallest_change(recipe, machine.begun, fits);
  }
  plan.parameters = count_parameters(model.config, recipe.lora);
  plan.step_flops = training_flops(
                        model.config, plan.parameters, recipe.lora.has_value(),
                        recipe.longest()
                    ) *
                    static_cast<double>(recipe.step_tokens());
  if (recipe.train.epochs <= 0) plan.steps = recipe.train.steps;
  plan.step_seconds = step_seconds(plan, model.config, machine);
  explain(plan, cutting, recipe);
  const std::string remark = cutting.remark(settled);
  if (!remark.empty()) plan.reasons.push_back(remark);
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
      !plan.advice.empty() ? "this would fit: " + plan.advice
      : plan.begun         ? "nothing that --resume may change would make it "
                             "fit: give it more memory, or begin another run"
                           : "use a smaller model, shorter rows, or lora"
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
      {"packed", packed},
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
