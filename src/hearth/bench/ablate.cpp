#include "hearth/bench/ablate.h"

#include <fmt/format.h>

#include "hearth/base/thread_pool.h"
#include "hearth/base/units.h"
#include "hearth/bench/cases.h"
#include "hearth/bench/statistics.h"
#include "hearth/train/loop/validation.h"
#include "hearth/train/plan/planner.h"
#include "hearth/train/plan/trial.h"

namespace hearth::bench {
namespace {

std::string case_of(const AblationRow& row) {
  return row.setting.empty() ? row.what : row.what + ": " + row.setting;
}

}  // namespace

train::Recipe ablation_recipe() {
  train::Recipe r;
  r.model.dim = 128, r.model.layers = 4, r.model.heads = 4;
  r.model.ffn = 352;
  r.data.synth.emplace();
  r.data.synth->kind = "stories", r.data.synth->n = 20000;
  r.data.synth->seed = 1;
  r.data.valid = "2%";
  r.data.tokenizer =
      parse_yaml("{train: {vocab: 2048}}", "the recipe of --ablate");
  r.data.length = 256;
  r.data.arrange = "pack";
  r.train.tokens_per_step = 4096;
  r.train.micro_batch_size = 4;
  r.train.checkpointing = "none";
  r.train.steps = 60;
  r.train.eval_tokens = 20000;
  r.optim.lr = 2e-3;
  r.optim.warmup = 10;
  r.run.seed = 7;
  return r;
}

std::vector<Ablation> ablations(const train::Recipe& recipe) {
  using train::Recipe;
  const auto plain =
      recipe.train.objectives.get<train::LanguageModelConfig>().options();
  std::vector<Ablation> all;
  const auto add = [&](const char* what, const char* setting, auto change) {
    all.push_back({what, setting, change, plain});
  };
  add("as it is", "", [](Recipe&) {});
  add("noise", "another seed", [](Recipe& r) { r.run.seed += 1; });
  add("precision", recipe.train.precision == "fp32" ? "bf16" : "fp32",
      [](Recipe& r) {
        r.train.precision = r.train.precision == "fp32" ? "bf16" : "fp32";
      });
  const bool again = recipe.train.checkpointing != "none";
  add("checkpointing", again ? "none" : "all",
      [again](Recipe& r) { r.train.checkpointing = again ? "none" : "all"; });
  add("fused attention", "off", [](Recipe&) {});
  all.back().objective.fused_attention = false;
  add("fused head", "off", [](Recipe&) {});
  all.back().objective.fused_head = false;
  add("packing", "off", [](Recipe& r) { r.data.arrange = "pad"; });
  add("prefetch", "off", [](Recipe& r) { r.data.workers = 0; });
  const bool lazy = recipe.train.eval_interval > 1;
  add("evaluation interval", lazy ? "1" : "4",
      [lazy](Recipe& r) { r.train.eval_interval = lazy ? 1 : 4; });
  return all;
}

AblationRow run_ablation(
    const train::Recipe& recipe,
    const Ablation& ablation,
    const AblateOptions& options
) {
  train::Recipe changed = recipe;
  ablation.change(changed);
  train::Session session =
      train::open_session(std::move(changed), options.prepare);
  const train::LanguageModel objective(ablation.objective);
  const auto rows =
      static_cast<std::uint32_t>(train::batch_choice(session.recipe).rows);
  const auto trial = train::run_trial(
      session, {.rows = rows,
                .tokens = options.tokens,
                .objective = &objective,
                .stop = options.stop}
  );
  AblationRow row;
  row.what = ablation.what, row.setting = ablation.setting;
  row.isa = device_isa();
  row.threads = shared_pool().size();
  row.steps = trial.steps, row.tokens = trial.tokens;
  row.complete = !trial.stopped;
  row.peak = trial.peak;
  std::vector<double> each;
  for (std::size_t i = 0; i < trial.update_seconds.size(); ++i) {
    each.push_back(trial.gradient_seconds[i] + trial.update_seconds[i]);
  }
  if (each.empty()) return row;
  row.median_ms = 1e3 * median(each);
  row.spread = spread(each);
  row.tokens_per_s = median(trial.rates);
  row.stall_share = trial.stall_seconds / trial.timed_seconds;
  if (row.complete && session.data.has_valid()) {
    row.valid_loss = train::validate(session, rows).loss;
  }
  return row;
}

Json to_json(const AblationRow& row, const AblationRow& base) {
  Json j{
      {"case", case_of(row)},
      {"isa", row.isa},
      {"threads", row.threads},
      {"median_ms", row.median_ms},
      {"spread", row.spread},
      {"rate", row.tokens_per_s},
      {"unit", "tokens/s"},
      {"peak_mib", static_cast<double>(row.peak) / (1 << 20)},
      {"steps", row.steps},
      {"tokens", row.tokens},
      {"stall_share", row.stall_share}
  };
  if (row.valid_loss) j["valid_loss"] = *row.valid_loss;
  if (!row.complete) j["complete"] = false;
  if (base.tokens_per_s > 0 && row.tokens_per_s > 0) {
    j["rate_of_base"] = row.tokens_per_s / base.tokens_per_s;
    j["memory_of_base"] =
        static_cast<double>(row.peak) / static_cast<double>(base.peak);
  }
  return j;
}

std::string ablation_head() {
  return fmt::format(
      "{:<26} {:>9} {:>7} {:>9} {:>6} {:>10} {:>6} {:>8} {:>7}\n", "",
      "step ms", "spread", "tokens/s", "rate", "peak", "memory", "valid",
      "stall"
  );
}

std::string ablation_line(const AblationRow& row, const AblationRow& base) {
  const auto ratio = [](double a, double b) {
    return b > 0 ? fmt::format("{:.2f}x", a / b) : "-";
  };
  return fmt::format(
      "{:<26} {:>9.1f} {:>6.1f}% {:>9.0f} {:>6} {:>10} {:>6} {:>8} {:>6.1f}%\n",
      case_of(row), row.median_ms, 100 * row.spread, row.tokens_per_s,
      ratio(row.tokens_per_s, base.tokens_per_s), format_bytes(row.peak),
      ratio(static_cast<double>(row.peak), static_cast<double>(base.peak)),
      row.valid_loss ? fmt::format("{:.4f}", *row.valid_loss) : "-",
      100 * row.stall_share
  );
}

}  // namespace hearth::bench
