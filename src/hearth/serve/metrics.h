#pragma once
// What /metrics shows, in Prometheus' text form.
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::serve {

// Seconds, in buckets that fit answers of a small model on a small machine.
class Histogram {
 public:
  using Bounds = std::array<double, 12>;
  static constexpr Bounds kRequestBounds = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                            0.5,   1,    2.5,   10,   30,  120};
  explicit Histogram(const Bounds& bounds = kRequestBounds) : bounds_(bounds) {}

  void observe(double seconds);
  double mean() const;  // 0 where nothing was seen
  // Lines of one metric with that name.
  std::string text(std::string_view name, std::string_view help) const;

 private:
  Bounds bounds_;
  std::array<std::atomic<std::uint64_t>, std::tuple_size_v<Bounds> + 1>
      counts_{};
  std::atomic<std::uint64_t> microseconds_{0};
};

struct Metrics {
  static constexpr Histogram::Bounds kTokenBounds = {
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10
  };

  Histogram first_token, whole_request;
  // Between two tokens of one text, and the mean of that over each text.
  Histogram inter_token{kTokenBounds}, output_token{kTokenBounds};
  // Requests for text that the engine took. Each of them ends as one of the
  // next four: what is begun and not ended is under way.
  std::atomic<std::uint64_t> begun{0}, done{0}, failed{0}, cancelled{0},
      timed_out{0};
  std::atomic<std::uint64_t> rejected{0}, keys_refused{0};

  // route is one of ours, never what a client wrote.
  void count_answer(std::string_view route, int status);
  std::string answers_text() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::uint64_t> answers_;
};

// One line each: # HELP, # TYPE, and the value.
std::string metric_text(
    std::string_view name,
    std::string_view type,
    std::string_view help,
    double value
);

// Bytes this process holds in memory; 0 where the system does not say.
std::uint64_t resident_bytes();

// Metrics of this process, by the names that Prometheus' clients use; values
// that the system does not tell are left out.
std::string process_metrics_text();
// Seconds since 1970 when it was started; 0 where the system does not say.
double process_start_seconds();

}  // namespace hearth::serve
