#include "hearth/train/loop/sweep.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/base/html.h"

namespace hearth::train {
namespace {

constexpr std::size_t kMostRuns = 1000;

[[noreturn]] void refuse(const YamlNode& at, const std::string& what) {
  throw UsageError(fmt::format("{}: {}", at.where(), what));
}

// As an override has it after the equals sign. A map is several keys of a
// section at once.
std::string value_text(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::kScalar) return node.scalar;
  std::vector<std::string> parts;
  if (node.kind == YamlNode::Kind::kMap) {
    for (const auto& [key, item] : node.entries) {
      parts.push_back(fmt::format("{}: {}", key, value_text(item)));
    }
    return fmt::format("{{{}}}", fmt::join(parts, ", "));
  }
  if (node.kind != YamlNode::Kind::kList) {
    refuse(node, "a value of the grid must be a word, a number, list or map");
  }
  for (const auto& item : node.items) parts.push_back(value_text(item));
  return fmt::format("[{}]", fmt::join(parts, ","));
}

// For a folder's name: of a map the values alone.
std::string value_name(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::kMap) return value_text(node);
  std::vector<std::string> parts;
  for (const auto& entry : node.entries) {
    parts.push_back(value_name(entry.value));
  }
  return fmt::format("{}", fmt::join(parts, "+"));
}

// optim.lr is lr, model.gate.value is gate.value.
std::string short_key(const std::string& key) {
  const auto dot = key.find('.');
  return dot == std::string::npos ? key : key.substr(dot + 1);
}

// The name with one key more.
std::string name_with(
    std::string name,
    const std::string& key,
    const std::string& value
) {
  if (!name.empty()) name += ",";
  name += fmt::format("{}={}", short_key(key), value);
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       (c >= '0' && c <= '9') || c == '.' || c == '-' ||
                       c == '=' || c == ',' || c == '_' || c == '+';
    if (!plain) c = '_';
  }
  return name;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::string number(const std::optional<double>& x, int digits) {
  return x ? fmt::format("{:.{}f}", *x, digits) : "";
}

}  // namespace

void SweepConfig::fields(FieldVisitor& v) {
  v("base", base, "the recipe that the runs share");
  v("grid", grid, "recipe keys with the values each takes");
}

std::vector<SweepRun> expand(const SweepConfig& config) {
  const YamlNode& grid = config.grid;
  if (grid.kind != YamlNode::Kind::kMap || grid.entries.empty()) {
    refuse(grid, "grid must be a map of recipe keys to lists of values");
  }
  std::vector<SweepRun> runs(1);
  for (const auto& [key, values] : grid.entries) {
    // A run's folder is named by its values, and a process has one team of
    // threads.
    if (key == "run.dir" || key == "run.threads") {
      refuse(values, fmt::format("grid must not have {}", key));
    }
    if (values.kind != YamlNode::Kind::kList || values.items.empty()) {
      refuse(values, fmt::format("grid.{} must be a list of values", key));
    }
    if (runs.size() * values.items.size() > kMostRuns) {
      refuse(
          values, fmt::format("a grid must have {} runs at most", kMostRuns)
      );
    }
    std::vector<SweepRun> next;
    for (const SweepRun& run : runs) {
      for (const auto& value : values.items) {
        next.push_back(run);
        next.back().values.emplace_back(key, value_text(value));
        next.back().name = name_with(run.name, key, value_name(value));
      }
    }
    runs = std::move(next);
  }
  std::vector<std::string> names;
  for (const SweepRun& run : runs) {
    if (std::ranges::find(names, run.name) != names.end()) {
      refuse(grid, fmt::format("two runs would be named {}", run.name));
    }
    names.push_back(run.name);
  }
  return runs;
}

std::optional<double> SweepResult::score() const {
  if (!error.empty()) return {};
  const auto loss = valid_loss ? valid_loss : train_loss;
  return loss && std::isfinite(*loss) ? loss : std::nullopt;
}

SweepResult result_from(const SweepRun& run, const Json& row) {
  const auto number_at = [&](const char* key) {
    const auto at = row.find(key);
    const bool is = at != row.end() && at->is_number();
    return is ? std::optional(at->get<double>()) : std::nullopt;
  };
  return {
      .run = run,
      .valid_loss = number_at("valid_loss"),
      .train_loss = number_at("train_loss"),
      .tokens_per_s = number_at("tokens_per_s"),
      .seconds = number_at("seconds").value_or(0),
      .error = row.value("error", "")
  };
}

std::optional<std::size_t> best_of(const std::vector<SweepResult>& results) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto score = results[i].score();
    if (score && (!best || *score < *results[*best].score())) best = i;
  }
  return best;
}

Json to_json(const std::vector<SweepResult>& results) {
  Json rows = Json::array();
  for (const SweepResult& r : results) {
    Json row{{"run", r.run.name}, {"seconds", r.seconds}};
    for (const auto& [key, value] : r.run.values) row["values"][key] = value;
    if (r.valid_loss) row["valid_loss"] = *r.valid_loss;
    if (r.train_loss) row["train_loss"] = *r.train_loss;
    if (r.tokens_per_s) row["tokens_per_s"] = *r.tokens_per_s;
    if (!r.error.empty()) row["error"] = r.error;
    rows.push_back(std::move(row));
  }
  Json j{{"rows", rows}};
  if (const auto best = best_of(results)) j["best"] = results[*best].run.name;
  return j;
}

std::string to_csv(const std::vector<SweepResult>& results) {
  std::string text = "run";
  if (!results.empty()) {
    for (const auto& [key, value] : results[0].run.values) {
      text += "," + csv_cell(key);
    }
  }
  text += ",valid_loss,train_loss,tokens_per_s,seconds,error\n";
  for (const SweepResult& r : results) {
    text += csv_cell(r.run.name);
    for (const auto& [key, value] : r.run.values) text += "," + csv_cell(value);
    text += fmt::format(
        ",{},{},{},{:.1f},{}\n", number(r.valid_loss, 6),
        number(r.train_loss, 6), number(r.tokens_per_s, 1), r.seconds,
        csv_cell(r.error)
    );
  }
  return text;
}

std::string to_text(const std::vector<SweepResult>& results) {
  std::size_t width = 3;
  for (const auto& r : results) width = std::max(width, r.run.name.size());
  std::string text = fmt::format(
      "{:<{}}  {:>10}  {:>10}  {:>9}\n", "run", width, "valid loss",
      "train loss", "tokens/s"
  );
  const auto best = best_of(results);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const SweepResult& r = results[i];
    text += fmt::format("{:<{}}  ", r.run.name, width);
    if (!r.score()) {
      text +=
          "failed: " + (r.error.empty() ? "its loss is not finite" : r.error) +
          "\n";
      continue;
    }
    text += fmt::format(
        "{:>10}  {:>10}  {:>9}{}\n", number(r.valid_loss, 4),
        number(r.train_loss, 4), number(r.tokens_per_s, 0),
        best == i ? "  best" : ""
    );
  }
  return text;
}

std::string to_svg(const std::vector<SweepResult>& results) {
  constexpr int kRow = 22, kLeft = 280, kWide = 360, kTop = 34;
  double low = 0, high = 0;
  bool any = false;
  for (const auto& r : results) {
    const auto s = r.score();
    if (!s) continue;
    low = any ? std::min(low, *s) : *s;
    high = any ? std::max(high, *s) : *s;
    any = true;
  }
  const double range = high > low ? high - low : 1;
  const int height = kTop + kRow * static_cast<int>(results.size()) + 20;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"{}\" y=\"18\">final validation loss</text>\n",
      kLeft + kWide + 90, height, kLeft
  );
  const auto best = best_of(results);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const int y = kTop + kRow * static_cast<int>(i) + kRow / 2;
    svg += fmt::format(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n"
        "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"#ddd\"/>\n",
        kLeft - 10, y + 4, html_escaped(results[i].run.name), kLeft, y,
        kLeft + kWide, y
    );
    const auto s = results[i].score();
    if (!s) {
      svg += fmt::format(
          "<text x=\"{}\" y=\"{}\" fill=\"#b00\">failed</text>\n", kLeft, y + 4
      );
      continue;
    }
    const double x = kLeft + (*s - low) / range * kWide;
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{}\" r=\"5\" fill=\"{}\"/>\n"
        "<text x=\"{:.1f}\" y=\"{}\">{:.4f}</text>\n",
        x, y, best == i ? "#c40" : "#357", x + 9, y + 4, *s
    );
  }
  return svg + "</svg>\n";
}

}  // namespace hearth::train
