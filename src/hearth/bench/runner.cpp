#include "hearth/bench/runner.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/base/memory.h"
#include "hearth/base/thread_pool.h"

namespace hearth::bench {
namespace {

double seconds_of(const Timed& timed) {
  if (timed.before) timed.before();
  const auto start = Clock::now();
  timed.run();
  return seconds_since(start);
}

// Units carry their scale: GFLOP/s counts 1e9 operations, tokens/s counts one.
double scale_of(const std::string& unit) {
  if (unit.starts_with("T")) return 1e12;
  if (unit.starts_with("G")) return 1e9;
  if (unit.starts_with("M")) return 1e6;
  return 1;
}

// The rival of a case. One that cannot run, or ends, leaves ours to be measured
// alone.
struct Rival {
  Timed timed;
  std::vector<double> seconds;
  double spent = 0;
  std::string missing;

  explicit Rival(const BenchCase& c) {
    if (!c.prepare_peer) return;
    guarded([&] { timed = c.prepare_peer(); });
  }
  bool there() const { return static_cast<bool>(timed.run); }
  void warm_up() {
    guarded([&] { seconds_of(timed); });
  }
  void take_turn() {
    guarded([&] {
      seconds.push_back(seconds_of(timed));
      spent += seconds.back() + timed.rest;
      std::this_thread::sleep_for(std::chrono::duration<double>(timed.rest));
    });
  }

 private:
  template <typename F>
  void guarded(F&& f) {
    try {
      f();
    } catch (const Error& e) {
      missing = e.what() + (e.hint().empty() ? "" : " (" + e.hint() + ")");
      timed = {};
      seconds.clear();
    }
  }
};

struct Samples {
  std::vector<double> ours, peers;
  std::function<void(Row&)> after, after_peer;
  std::string peer_missing;
};

Samples measure(const BenchCase& c, const RunOptions& options) {
  const auto start = Clock::now();
  const Timed ours = c.prepare();
  Rival rival(c);
  for (int i = 0; i < options.warm_up; ++i) {
    seconds_of(ours);
    if (rival.there() && i == 0) rival.warm_up();
  }
  Samples s;
  double spent = 0;
  for (int i = 0; i < options.max_repeats; ++i) {
    if (i >= options.min_repeats && spent >= options.seconds) break;
    const bool over = options.limit > 0 && seconds_since(start) > options.limit;
    if (over && i > 0 && (!rival.there() || !rival.seconds.empty())) break;
    const bool due = rival.there() &&
                     (std::ssize(rival.seconds) < options.min_peer_repeats ||
                      rival.spent < options.seconds);
    // ABBA: who goes first changes, so that neither side always follows the
    // other.
    const bool rival_first = due && i % 2 == 1;
    if (rival_first) rival.take_turn();
    s.ours.push_back(seconds_of(ours));
    if (due && !rival_first) rival.take_turn();
    spent += s.ours.back();
  }
  s.after = ours.after;
  s.after_peer = rival.timed.after;
  s.peers = std::move(rival.seconds);
  s.peer_missing = std::move(rival.missing);
  return s;
}

}  // namespace

Row run_case(const BenchCase& c, const RunOptions& options) {
  reset_memory_peak();
  RunOptions own = options;
  const int repeats = options.repeats > 0 ? options.repeats : c.repeats;
  if (repeats > 0) own.min_repeats = repeats, own.warm_up = 1;
  if (options.repeats > 0) {
    own.max_repeats = own.min_peer_repeats = repeats;
    own.seconds = 0;
  }
  const Samples s = measure(c, own);
  Row row;
  row.name = c.name;
  row.isa = c.isa;
  row.unit = c.unit;
  row.threads = shared_pool().size();
  row.repeats = static_cast<int>(s.ours.size());
  const double typical = median(s.ours);
  row.median_ms = typical * 1e3;
  row.spread = spread(s.ours);
  row.rate = c.work / typical / scale_of(c.unit);
  row.best_rate = c.work / std::ranges::min(s.ours) / scale_of(c.unit);
  if (c.peak > 0) {
    row.share_of_peak = row.rate / c.peak;
    row.best_share_of_peak = row.best_rate / c.peak;
  }
  const std::size_t peak_bytes = memory_usage().peak;
  if (peak_bytes > 0) {
    row.peak_mib = static_cast<double>(peak_bytes) / (1 << 20);
  }
  row.peer_missing = s.peer_missing;
  if (!s.peers.empty()) {
    row.peer = c.peer_name;
    row.vs_peer = median(s.peers) / typical;
    row.vs_peer_interval = ratio_interval(s.peers, s.ours);
    row.best_vs_peer = std::ranges::min(s.peers) / std::ranges::min(s.ours);
    row.peer_rate = row.rate / *row.vs_peer;
  }
  if (s.after) s.after(row);
  if (s.after_peer) s.after_peer(row);
  return row;
}

Json to_json(const Row& row) {
  Json j = {{"case", row.name}};
  if (!row.isa.empty()) j["isa"] = row.isa;
  j["threads"] = row.threads;
  j["repeats"] = row.repeats;
  j["median_ms"] = row.median_ms;
  j["spread"] = row.spread;
  j["rate"] = row.rate;
  j["unit"] = row.unit;
  j["best_rate"] = row.best_rate;
  if (row.share_of_peak) j["share_of_peak"] = *row.share_of_peak;
  if (row.best_share_of_peak) {
    j["best_share_of_peak"] = *row.best_share_of_peak;
  }
  if (row.peak_mib) j["peak_mib"] = *row.peak_mib;
  if (row.overhead) j["overhead"] = *row.overhead;
  for (const OpTime& op : row.ops) {
    j["ops"].push_back({{"op", op.name}, {"count", op.count}, {"ms", op.ms}});
  }
  if (row.of_one) j["of_one"] = *row.of_one;
  if (!row.peer_missing.empty()) j["peer_missing"] = row.peer_missing;
  if (row.vs_peer) {
    j["peer"] = row.peer;
    j["vs_peer"] = *row.vs_peer;
    if (row.best_vs_peer) j["best_vs_peer"] = *row.best_vs_peer;
    j["vs_peer_95"] = {row.vs_peer_interval.low, row.vs_peer_interval.high};
    j["peer_rate"] = *row.peer_rate;
    if (row.peer_peak_mib) j["peer_peak_mib"] = *row.peer_peak_mib;
  }
  return j;
}

std::string table_head(std::size_t width) {
  return fmt::format(
      "{:<{}}  {:<8} {:>10} {:>7} {:>18} {:>8} {:>8}  {}\n", "case", width,
      "isa", "ms", "spread", "rate", "of peak", "at best", "against the peer"
  );
}

// Under a training step: memory of both sides and the loop's overhead.
static std::string step_line(const Row& r, std::size_t width) {
  if (!r.overhead) return {};
  std::string text = fmt::format("{:<{}}  ", "", width);
  if (r.peak_mib) text += fmt::format("peak {:.0f} MiB, ", *r.peak_mib);
  text += fmt::format("outside kernels {:.1f}%", 100 * *r.overhead);
  if (r.peer_rate) {
    text += fmt::format("; peer {:.4g} {}", *r.peer_rate, r.unit);
  }
  if (r.peer_peak_mib) {
    text += fmt::format(
        ", peak {:.0f} MiB: ours is {:.2f}x", *r.peer_peak_mib,
        r.peak_mib.value_or(0) / *r.peer_peak_mib
    );
  }
  return text + "\n";
}

std::string op_lines(const Row& r, std::size_t width) {
  double all = 0;
  for (const OpTime& op : r.ops) all += op.ms;
  std::string text;
  for (const OpTime& op : r.ops) {
    text += fmt::format(
        "{:<{}}  {:<24} {:>8.1f} ms {:>5.1f}% {:>6} times\n", "", width,
        op.name, op.ms, 100 * op.ms / all, op.count
    );
  }
  return text;
}

// Under a row of decoding: the peer's own rate, and what a batch or a long
// context makes of ours.
static std::string decoding_line(const Row& r, std::size_t width) {
  if (r.overhead || (!r.of_one && !r.peer_rate) || r.unit != "tokens/s") {
    return {};
  }
  std::string text;
  if (r.peer_rate) {
    text = fmt::format("peer {:.4g} {}", *r.peer_rate, r.unit);
  }
  if (r.of_one && *r.of_one != 1) {
    text += fmt::format(
        "{}{:.2f}x decoding one from nothing", text.empty() ? "" : "; ",
        *r.of_one
    );
  }
  if (text.empty()) return {};
  return fmt::format("{:<{}}  {}\n", "", width, text);
}

std::string table_line(const Row& r, std::size_t width) {
  const auto rate = fmt::format("{:.4g} {}", r.rate, r.unit);
  const auto percent = [](const std::optional<double>& share) {
    return share ? fmt::format("{:.1f}%", 100 * *share) : "-";
  };
  std::string peer = "-";
  if (r.vs_peer) {
    peer = fmt::format(
        "{:.2f}x {} ({:.2f}-{:.2f})", *r.vs_peer, r.peer,
        r.vs_peer_interval.low, r.vs_peer_interval.high
    );
    if (r.best_vs_peer)
      peer += fmt::format(", {:.2f}x at best", *r.best_vs_peer);
  }
  return fmt::format(
             "{:<{}}  {:<8} {:>10.3f} {:>6.1f}% {:>18} {:>8} {:>8}  {}\n",
             r.name, width, r.isa.empty() ? "-" : r.isa, r.median_ms,
             100 * r.spread, rate, percent(r.share_of_peak),
             percent(r.best_share_of_peak), peer
         ) +
         step_line(r, width) + decoding_line(r, width);
}

}  // namespace hearth::bench
