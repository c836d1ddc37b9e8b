#pragma once
// Runs benchmark cases: a case and its peer take turns, repeat by repeat, so
// that a noisy machine is noisy for both. Times are medians with a spread; a
// ratio comes with its bootstrap interval. The rows are CLI.md's.
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/bench/statistics.h"

namespace hearth::bench {

struct Row;

// What one op took of a step.
struct OpTime {
  std::string name;
  std::int64_t count = 0;
  double ms = 0;
};

// What one repeat runs: `run` is timed, `before` is not. `after`, once all
// repeats are through, may add to the row what only it knows.
struct Timed {
  std::function<void()> run, before;
  std::function<void(Row&)> after;
  // Seconds that a rival's threads go on spinning, on our cores, when its turn
  // is over. Ours waits so long.
  double rest = 0;

  Timed() = default;
  Timed(std::function<void()> timed, std::function<void()> untimed)
      : run(std::move(timed)), before(std::move(untimed)) {}
  template <std::invocable F>
  Timed(F f) : run(std::move(f)) {}  // NOLINT(google-explicit-constructor)
};

// GNU OpenMP's workers spin 300,000 pauses before they sleep: 15 ms where one
// takes 140 cycles.
inline constexpr double kOpenMpRest = 0.02;

struct BenchCase {
  std::string name;
  // Prepares inputs and returns what is timed. Called once; what it returns
  // owns what it needs and is called many times.
  std::function<Timed()> prepare;
  double work = 0;   // operations or bytes of one call
  std::string unit;  // "GFLOP/s", "GOP/s", "GB/s", "tokens/s", "MB/s"
  double peak = 0;   // the machine's best in that unit; 0: not known
  std::string isa;   // instruction set in use; empty where it has no say
  int repeats = 0;   // at least so many, warm-up once; 0: as RunOptions says
  // A rival doing the same work; absent where none is installed.
  std::string peer_name;
  std::function<Timed()> prepare_peer;
};

struct RunOptions {
  int min_repeats = 9;
  int max_repeats = 200;
  double seconds = 1.0;  // of measuring for each side
  int warm_up = 2;
  // A peer that is slow is measured less often, but at least this often.
  int min_peer_repeats = 3;
  // In place of a case's own number of repeats; 0: as it says.
  int repeats = 0;
  // After so many seconds a case ends with what it has, once each side ran.
  double limit = 0;
};

struct Row {
  std::string name, isa, unit, peer;
  std::string peer_missing;  // why there is no peer, where one was wanted
  int threads = 1, repeats = 0;
  double median_ms = 0, spread = 0, rate = 0;
  std::optional<double> share_of_peak, vs_peer, peak_mib;
  // The same of each side's fastest repeat: on a shared machine, what others
  // took least from.
  double best_rate = 0;
  std::optional<double> best_share_of_peak, best_vs_peer;
  // Of a training step, outside our ops; of the peer, its own figures.
  std::optional<double> overhead, peer_rate, peer_peak_mib;
  std::vector<OpTime> ops;  // of one step, most time first
  // Of decoding: its best rate over that of one sequence from nothing.
  std::optional<double> of_one;
  Interval vs_peer_interval;
};

Row run_case(const BenchCase& c, const RunOptions& options);

// {"case","isa","threads","median_ms",...}; what was not measured is absent.
Json to_json(const Row& row);
// An aligned table for people, line by line as rows come in; width is that of
// the longest name.
std::string table_head(std::size_t width);
std::string table_line(const Row& row, std::size_t width);
// A line for each op of a step; nothing where there are none.
std::string op_lines(const Row& row, std::size_t width);

}  // namespace hearth::bench
