#pragma once
// Notices a server that says nothing, and one that drips.

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/units.h"
#include "hearth/net/http_client.h"

namespace hearth::net {

class SpeedWatch {
 public:
  explicit SpeedWatch(const HttpLimits& limits) : limits_(limits) {}

  void add(std::size_t bytes) {
    bytes_ += bytes;
    last_byte_ = Clock::now();
  }

  // Throws NetworkError. What passes before the connection stands is libcurl's
  // to limit.
  void check(bool connected) {
    const Clock::time_point now = Clock::now();
    if (!connected) {
      last_byte_ = window_ = now;
      return;
    }
    if (to_seconds(now - last_byte_) >= limits_.idle_seconds) {
      throw NetworkError(
          fmt::format("it sent nothing for {:.0f} s", limits_.idle_seconds)
      );
    }
    if (to_seconds(now - window_) < limits_.slow_seconds) return;
    if (bytes_ < limits_.slow_bytes) {
      throw NetworkError(
          fmt::format(
              "it sent {} in {:.0f} s, which is too slow", format_bytes(bytes_),
              limits_.slow_seconds
          )
      );
    }
    window_ = now;
    bytes_ = 0;
  }

 private:
  const HttpLimits& limits_;
  Clock::time_point last_byte_ = Clock::now(), window_ = Clock::now();
  std::size_t bytes_ = 0;
};

}  // namespace hearth::net
