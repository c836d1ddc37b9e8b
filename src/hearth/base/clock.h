#pragma once
// How long something took, on a clock that never goes back, and the time of
// day. A time from seconds_now() or milliseconds_now() says nothing by itself;
// the difference of two does.
#include <chrono>

namespace hearth {

using Clock = std::chrono::steady_clock;

inline double to_seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}
inline double seconds_since(Clock::time_point start) {
  return to_seconds(Clock::now() - start);
}
inline double seconds_now() {
  return to_seconds(Clock::now().time_since_epoch());
}
inline double milliseconds_now() {
  return seconds_now() * 1e3;
}

// Seconds since 1970, by the system's clock.
inline double unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

}  // namespace hearth
