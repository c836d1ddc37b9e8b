#include "hearth/base/progress.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/memory.h"
#include "hearth/base/terminal.h"
#include "hearth/base/units.h"

namespace hearth {
namespace {

constexpr double kBarEvery = 0.1, kLineEvery = 10.0;  // seconds

struct Settings {
  ProgressStyle style = ProgressStyle::kSilent;
  std::function<void(std::string_view)> write;
  Progress::Clock clock = seconds_now;
};

Settings& settings() {
  static Settings instance;
  return instance;
}

std::string amount(double value, const std::string& unit) {
  if (unit == "B") return format_bytes(static_cast<std::size_t>(value));
  return format_count(value) + (unit.empty() ? "" : " " + unit);
}

}  // namespace

void Progress::configure(
    ProgressStyle style,
    std::function<void(std::string_view)> write
) {
  settings().style = style;
  settings().write = std::move(write);
}

void Progress::set_clock(Clock clock) {
  settings().clock = std::move(clock);
}

Progress::Progress(Options options)
    : options_(std::move(options)), start_(settings().clock()) {
  show(false);
}

Progress::~Progress() {
  const bool bar_open = settings().style == ProgressStyle::kBar && !finished_;
  if (bar_open && settings().write) settings().write("\n");
}

double Progress::elapsed() const {
  return settings().clock() - start_;
}

void Progress::update(std::uint64_t done, std::string_view note) {
  done_ = done;
  if (note.data() != note_.data()) note_ = note;
  show(false);
}

void Progress::finish() {
  if (finished_) return;
  show(true);
  finished_ = true;
}

std::string Progress::line(int width) const {
  const double seconds = elapsed();
  const auto done = static_cast<double>(done_);
  const auto total = static_cast<double>(options_.total);
  const double rate = seconds > 0 ? done / seconds : 0;
  std::string tail = amount(done, options_.unit);
  if (options_.total > 0) {
    tail = fmt::format(
        "{:3.0f}%  {} of {}", std::floor(100 * std::min(1.0, done / total)),
        amount(done, ""), amount(total, options_.unit)
    );
    if (options_.unit == "B") {
      tail = fmt::format(
          "{:3.0f}%  {} of {}", std::floor(100 * std::min(1.0, done / total)),
          amount(done, "B"), amount(total, "B")
      );
    }
  }
  tail += fmt::format("  {}/s", amount(rate, options_.unit));
  const bool running = options_.total > done_ && rate > 0;
  tail += running ? "  " + format_seconds((total - done) / rate) + " left"
                  : "  " + format_seconds(seconds);
  // What counts nothing says how long it has taken.
  if (options_.total == 0 && done_ == 0) tail = format_seconds(seconds);
  const std::size_t bytes = memory_usage().total;
  if (bytes > 0) tail += "  " + format_bytes(bytes) + " in use";
  if (!note_.empty()) tail += "  " + note_;
  const int room =
      width - static_cast<int>(options_.title.size() + tail.size()) - 5;
  std::string bar;
  if (options_.total > 0 && room >= 10) {
    const int cells = std::min(room, 30);
    const int full = static_cast<int>(cells * std::min(1.0, done / total));
    bar = " [" + std::string(full, '#') + std::string(cells - full, '.') + "]";
  }
  return options_.title + bar + " " + tail;
}

void Progress::show(bool last) {
  const Settings& s = settings();
  if (s.style == ProgressStyle::kSilent || !s.write || finished_) return;
  const double now = elapsed();
  const bool bar = s.style == ProgressStyle::kBar;
  // The first plain line comes only once the task proves to be a long one.
  const double since = shown_at_ < 0 ? now : now - shown_at_;
  const bool due = bar ? shown_at_ < 0 || since >= kBarEvery
                       : since >= (shown_at_ < 0 ? 2.0 : kLineEvery);
  if (!last && !due) return;
  if (last && !bar && now < 2.0) return;
  shown_at_ = now;
  if (!bar) {
    s.write(line(1000) + "\n");
    return;
  }
  const int width = terminal_width();
  s.write(
      "\r" + line(width).substr(0, static_cast<std::size_t>(width) - 1) +
      "\x1b[K"
  );
  if (last) s.write("\n");
}

}  // namespace hearth
