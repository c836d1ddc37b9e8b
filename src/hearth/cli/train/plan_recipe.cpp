#include "hearth/cli/train/plan_recipe.h"

#include <fmt/format.h>

#include "hearth/base/env.h"
#include "hearth/base/thread_pool.h"
#include "hearth/base/units.h"
#include "hearth/cli/measure/doctor_report.h"
#include "hearth/hardware/profile.h"

namespace hearth::cli {
namespace {

const char* peak_type(const train::Recipe& recipe) {
  return recipe.train.precision == "fp32" ? "fp32" : "bf16";
}

bool asked_budget(const train::Recipe& recipe, train::PlanMachine& machine) {
  if (recipe.train.memory == "auto") return false;
  machine.budget = parse_bytes(recipe.train.memory, "train.memory");
  machine.budget_reason = "train.memory";
  return true;
}

std::string time_text(const train::Plan& plan, const train::Recipe& recipe) {
  if (!plan.step_seconds) {
    return "step      not known: hearth doctor --measure finds this machine's "
           "peak\n";
  }
  const double tokens = static_cast<double>(recipe.step_tokens());
  std::string text = fmt::format(
      "step      about {}, {:.0f} tokens/s", format_seconds(*plan.step_seconds),
      tokens / *plan.step_seconds
  );
  if (plan.steps > 0) {
    text += fmt::format(
        "; {} steps about {}", plan.steps,
        format_seconds(*plan.step_seconds * static_cast<double>(plan.steps))
    );
  }
  return text + "\n";
}

}  // namespace

train::PlanMachine this_machine(
    const train::Recipe& recipe,
    const Context& context
) {
  const DoctorReport report = gather_report(context.common.device);
  train::PlanMachine m;
  m.threads = shared_pool().size();
  if (!asked_budget(recipe, m)) {
    m.budget = report.safe.bytes;
    m.budget_reason = report.safe.derivation;
  }
  if (report.peaks) {
    m.peak_gflops =
        hardware::best_gops(*report.peaks, peak_type(recipe), m.threads);
    m.training =
        hardware::training_shares(*report.peaks, peak_type(recipe), m.threads);
  }
  return m;
}

train::PlanMachine profile_machine(
    const std::string& profile,
    const train::Recipe& recipe
) {
  const auto all = hardware::load_profiles(env::config_folder() + "/profiles");
  const auto& p = hardware::profile_named(all, profile);
  train::PlanMachine m;
  m.threads = shared_pool().size();
  if (!asked_budget(recipe, m) && p.match.min_memory_gb > 0) {
    // A quarter is left to the system, as safe_memory does.
    m.budget = static_cast<std::size_t>(p.match.min_memory_gb * 0.75e9);
    m.budget_reason =
        fmt::format("three quarters of {} GB", p.match.min_memory_gb);
  }
  m.peak_gflops = p.spec.fp32_tflops * 1e3;
  return m;
}

std::string plan_text(const train::Plan& plan, const train::Recipe& recipe) {
  std::string text = fmt::format(
      "{} parameters, {} trained\n\n",
      format_count(static_cast<double>(plan.parameters.all)),
      format_count(static_cast<double>(plan.parameters.trained))
  );
  for (const auto& [name, bytes] : plan.memory.rows()) {
    text += fmt::format("  {:<18} {:>10}\n", name, format_bytes(bytes));
  }
  text +=
      fmt::format("  {:<18} {:>10}", "peak", format_bytes(plan.memory.total()));
  if (plan.budget > 0) {
    text += fmt::format(
        "   of {} ({})", format_bytes(plan.budget), plan.budget_reason
    );
  }
  text += fmt::format(
      "\n\nbatch     {} rows × {} micro-batches of {} tokens\n",
      plan.settled_rows, plan.accumulation, recipe.longest()
  );
  text += time_text(plan, recipe);
  for (const auto& why : plan.reasons) text += "          " + why + "\n";
  if (!plan.fits) {
    text += plan.advice.empty()
                ? "\ndoes not fit, and no single change would: use a smaller "
                  "model or shorter rows\n"
                : fmt::format(
                      "\ndoes not fit: the smallest change that would is {}\n",
                      plan.advice
                  );
  }
  return text;
}

}  // namespace hearth::cli
