#pragma once
// Progress of one long task: a bar with rate, time left and memory on a
// terminal, a plain line now and then elsewhere, nothing when quiet. Text goes
// to a sink, so the library still never prints.
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace hearth {

enum class ProgressStyle { kBar, kLines, kSilent };

class Progress {
 public:
  using Clock = std::function<double()>;  // seconds
  struct Options {
    std::string title;
    std::string unit;         // "tokens", "B" (bytes are scaled by 1024)
    std::uint64_t total = 0;  // 0: unknown
  };

  explicit Progress(Options options);
  // Ends the bar's line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Sets the work done so far; note replaces the text at the end of the line.
  void update(std::uint64_t done, std::string_view note = {});
  void add(std::uint64_t more) { update(done_ + more, note_); }
  // Prints the last state, with the whole time.
  void finish();

  // Style and destination of every later Progress; set once by `cli`.
  static void configure(
      ProgressStyle style,
      std::function<void(std::string_view)> write
  );
  // For tests.
  static void set_clock(Clock clock);
  std::string line(int width) const;

 private:
  double elapsed() const;
  void show(bool last);

  Options options_;
  std::uint64_t done_ = 0;
  std::string note_;
  double start_, shown_at_ = -1;
  bool finished_ = false;
};

}  // namespace hearth
