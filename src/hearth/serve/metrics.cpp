#include "hearth/serve/metrics.h"

#include <fmt/format.h>

namespace hearth::serve {
namespace {

std::string heading(
    std::string_view name,
    std::string_view type,
    std::string_view help
) {
  return fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

}  // namespace

void Histogram::observe(double seconds) {
  std::size_t i = 0;
  while (i < bounds_.size() && seconds > bounds_[i]) ++i;
  ++counts_[i];
  microseconds_ += static_cast<std::uint64_t>(seconds * 1e6);
}

double Histogram::mean() const {
  std::uint64_t total = 0;
  for (const auto& count : counts_) total += count;
  if (total == 0) return 0;
  return static_cast<double>(microseconds_) / 1e6 / static_cast<double>(total);
}

std::string Histogram::text(
    std::string_view name,
    std::string_view help
) const {
  std::string out = heading(name, "histogram", help);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    total += counts_[i];
    const std::string bound =
        i < bounds_.size() ? fmt::format("{}", bounds_[i]) : "+Inf";
    out += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, bound, total);
  }
  return out + fmt::format(
                   "{0}_sum {1}\n{0}_count {2}\n", name,
                   static_cast<double>(microseconds_) / 1e6, total
               );
}

void Metrics::count_answer(std::string_view route, int status) {
  const std::lock_guard lock(mutex_);
  ++answers_[{std::string(route), status}];
}

std::string Metrics::answers_text() const {
  std::string out = heading(
      "hearth_http_answers_total", "counter", "Answers by route and status."
  );
  const std::lock_guard lock(mutex_);
  for (const auto& [key, count] : answers_) {
    out += fmt::format(
        "hearth_http_answers_total{{route=\"{}\",status=\"{}\"}} {}\n",
        key.first, key.second, count
    );
  }
  return out;
}

std::string metric_text(
    std::string_view name,
    std::string_view type,
    std::string_view help,
    double value
) {
  return heading(name, type, help) + fmt::format("{} {}\n", name, value);
}

}  // namespace hearth::serve
