#include "hearth/bench/runner.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "hearth/base/memory.h"
#include "hearth/base/thread_pool.h"

namespace hearth::bench {
namespace {

double seconds_of(const Timed& timed) {
  if (timed.before) timed.before();
  const auto start = std::chrono::steady_clock::now();
  timed.run();
  const auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(end - start).count();
}

// Units carry their scale: GFLOP/s counts 1e9 operations, tokens/s counts one.
double scale_of(const std::string& unit) {
  if (unit.starts_with("T")) return 1e12;
  if (unit.starts_with("G")) return 1e9;
  if (unit.starts_with("M")) return 1e6;
  return 1;
}

struct Samples {
  std::vector<double> ours, peers;
};

Samples measure(const BenchCase& c, const RunOptions& options) {
  const Timed ours = c.prepare();
  const Timed peer = c.prepare_peer ? c.prepare_peer() : Timed();
  for (int i = 0; i < options.warm_up; ++i) {
    seconds_of(ours);
    if (peer.run && i == 0) seconds_of(peer);
  }
  Samples s;
  double spent = 0, spent_by_peer = 0;
  for (int i = 0; i < options.max_repeats; ++i) {
    if (i >= options.min_repeats && spent >= options.seconds) break;
    const bool peer_due =
        peer.run && (std::ssize(s.peers) < options.min_peer_repeats ||
                     spent_by_peer < options.seconds);
    // ABBA: who goes first changes, so that neither side always follows the
    // other.
    const bool peer_first = peer_due && i % 2 == 1;
    if (peer_first) s.peers.push_back(seconds_of(peer));
    s.ours.push_back(seconds_of(ours));
    if (peer_due && !peer_first) s.peers.push_back(seconds_of(peer));
    spent += s.ours.back();
    if (peer_due) spent_by_peer += s.peers.back();
  }
  return s;
}

}  // namespace

Row run_case(const BenchCase& c, const RunOptions& options) {
  reset_memory_peak();
  RunOptions own = options;
  if (c.repeats > 0) own.min_repeats = c.repeats, own.warm_up = 1;
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
  if (c.peak > 0) row.share_of_peak = row.rate / c.peak;
  const std::size_t peak_bytes = memory_usage().peak;
  if (peak_bytes > 0) {
    row.peak_mib = static_cast<double>(peak_bytes) / (1 << 20);
  }
  if (!s.peers.empty()) {
    row.peer = c.peer_name;
    row.vs_peer = median(s.peers) / typical;
    row.vs_peer_interval = ratio_interval(s.peers, s.ours);
  }
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
  if (row.share_of_peak) j["share_of_peak"] = *row.share_of_peak;
  if (row.peak_mib) j["peak_mib"] = *row.peak_mib;
  if (row.vs_peer) {
    j["peer"] = row.peer;
    j["vs_peer"] = *row.vs_peer;
    j["vs_peer_95"] = {row.vs_peer_interval.low, row.vs_peer_interval.high};
  }
  return j;
}

std::string table_head(std::size_t width) {
  return fmt::format(
      "{:<{}}  {:<8} {:>10} {:>7} {:>18} {:>8}  {}\n", "case", width, "isa",
      "ms", "spread", "rate", "of peak", "against the peer"
  );
}

std::string table_line(const Row& r, std::size_t width) {
  const auto rate = fmt::format("{:.4g} {}", r.rate, r.unit);
  const auto share =
      r.share_of_peak ? fmt::format("{:.1f}%", 100 * *r.share_of_peak) : "-";
  std::string peer = "-";
  if (r.vs_peer) {
    peer = fmt::format(
        "{:.2f}x {} ({:.2f}-{:.2f})", *r.vs_peer, r.peer,
        r.vs_peer_interval.low, r.vs_peer_interval.high
    );
  }
  return fmt::format(
      "{:<{}}  {:<8} {:>10.3f} {:>6.1f}% {:>18} {:>8}  {}\n", r.name, width,
      r.isa.empty() ? "-" : r.isa, r.median_ms, 100 * r.spread, rate, share,
      peer
  );
}

}  // namespace hearth::bench
