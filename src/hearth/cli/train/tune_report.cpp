#include "hearth/cli/train/tune_report.h"

#include <fmt/format.h>

#include "hearth/base/units.h"

namespace hearth::cli {
namespace {

using train::TuneOutcome;
using train::TuneRow;

std::string percent(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f}%", 100 * *share) : "-";
}

Json to_json(const ComparedRow& c) {
  Json j = train::to_json(c.row);
  j["side"] = c.side;
  j["batch"] = c.batch;
  if (c.speedup) j["speedup"] = *c.speedup;
  if (c.valid_loss) j["valid_loss"] = *c.valid_loss;
  return j;
}

std::string compared_text(const TuneReport& report) {
  if (report.compared.empty()) return {};
  std::string text = fmt::format(
      "\n{:<8} {:<6} {:>6} {:<6} {:<6} {:>10} {:>10} {:>10} {:>9} {:>9} "
      "{:>10}\n",
      "side", "batch", "rows", "again", "type", "step", "samples/s", "tokens/s",
      "speed-up", "peak", "valid loss"
  );
  for (const auto& c : report.compared) {
    const auto& r = c.row;
    const bool measured = r.outcome == TuneOutcome::measured;
    text += fmt::format(
        "{:<8} {:<6} {:>6} {:<6} {:<6} {:>10} {:>10} {:>10} {:>9} {:>9} "
        "{:>10}\n",
        c.side, c.batch, r.setting.rows, r.setting.checkpointing,
        r.setting.precision,
        measured ? format_seconds(r.step_seconds) : name_of(r.outcome),
        measured ? fmt::format("{:.1f}", r.samples_per_s) : "-",
        measured ? fmt::format("{:.0f}", r.tokens_per_s) : "-",
        c.speedup ? fmt::format("{:.2f}x", *c.speedup) : "-",
        measured ? format_bytes(r.peak) : "-",
        c.valid_loss ? fmt::format("{:.4f}", *c.valid_loss) : "-"
    );
  }
  if (report.loss_tokens > 0) {
    text += fmt::format(
        "validation loss after {} tokens, {}\n",
        format_count(static_cast<double>(report.loss_tokens)),
        report.same_start ? "from the same start"
                          : "each from its own recipe's start"
    );
  }
  return text;
}

}  // namespace

std::string tune_head() {
  return fmt::format(
      "{:>6} {:<6} {:<5} {:>7} {:>10} {:>7} {:>10} {:>10} {:>8} {:>10} {:>10}"
      "\n",
      "rows", "again", "type", "threads", "step", "spread", "samples/s",
      "tokens/s", "of peak", "memory", "predicted"
  );
}

std::string tune_line(const TuneRow& r) {
  const auto& s = r.setting;
  const bool measured = r.outcome == TuneOutcome::measured;
  return fmt::format(
      "{:>6} {:<6} {:<5} {:>7} {:>10} {:>7} {:>10} {:>10} {:>8} {:>10} {:>10}"
      "{}\n",
      s.rows, s.checkpointing, s.precision, s.threads,
      measured ? format_seconds(r.step_seconds) : "-",
      measured ? fmt::format("{:.1f}%", 100 * r.spread) : "-",
      measured ? fmt::format("{:.1f}", r.samples_per_s) : "-",
      measured ? fmt::format("{:.0f}", r.tokens_per_s) : "-",
      percent(r.share_of_peak), measured ? format_bytes(r.peak) : "-",
      format_bytes(r.predicted),
      measured ? "" : fmt::format("   {}", name_of(r.outcome))
  );
}

std::string tune_text(const TuneReport& report) {
  std::string text;
  if (report.search.best) {
    const TuneRow& best = report.search.rows[*report.search.best];
    text += fmt::format(
        "\nfastest: {}: {:.0f} tokens/s, {}\n", describe(best.setting),
        best.tokens_per_s, format_bytes(best.peak)
    );
  }
  text += compared_text(report);
  for (const auto& note : report.notes) text += note + "\n";
  if (!report.output.empty() && report.search.best) {
    text += fmt::format("recipe: {}\n", report.output);
  }
  return text;
}

Json to_json(const TuneReport& report) {
  Json j;
  j["rows"] = Json::array();
  for (const auto& row : report.search.rows) {
    j["rows"].push_back(train::to_json(row));
  }
  j["complete"] = report.search.complete && !report.interrupted;
  if (report.search.best) {
    j["best"] = train::to_json(report.search.rows[*report.search.best]);
  }
  if (!report.compared.empty()) {
    j["compared"] = Json::array();
    for (const auto& c : report.compared) j["compared"].push_back(to_json(c));
  }
  if (report.loss_tokens > 0) j["loss_tokens"] = report.loss_tokens;
  if (!report.notes.empty()) j["notes"] = report.notes;
  if (!report.output.empty()) j["recipe"] = report.output;
  return j;
}

std::string recipe_header(
    const TuneReport& report,
    const std::string& command,
    const std::string& machine
) {
  if (!report.search.best) return {};
  const TuneRow& best = report.search.rows[*report.search.best];
  return fmt::format(
      "# Measured by {}\n#   {}\n#   {:.0f} tokens/s, {} a step, peak memory "
      "{}\n#   on {}\n",
      command, describe(best.setting), best.tokens_per_s,
      format_seconds(best.step_seconds), format_bytes(best.peak), machine
  );
}

}  // namespace hearth::cli
