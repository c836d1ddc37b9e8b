#include "hearth/hub/retry.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/units.h"

namespace hearth::hub {

Retry::Retry(
    const RetryPolicy& policy,
    RetryNote note,
    std::function<void()> check
)
    : policy_(policy), note_(std::move(note)), check_(std::move(check)) {}

void Retry::after(const net::NetworkError& error) {
  if (++failures_ > policy_.retries) {
    throw net::NetworkError(
        policy_.retries == 0
            ? std::string(error.what())
            : fmt::format("{} (tried {} times)", error.what(), failures_)
    );
  }
  double wait = std::min(
      policy_.longest_wait, policy_.first_wait * std::exp2(failures_ - 1)
  );
  if (error.wait()) {
    wait = *error.wait();
    if (wait > policy_.longest_asked) {
      throw net::NetworkError(
          fmt::format(
              "{}, and asks to be left alone for {}", error.what(),
              format_seconds(wait)
          )
      );
    }
  }
  note_(error.what(), wait);
  const double end = seconds_now() + wait;
  while (seconds_now() < end) {
    check_();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace hearth::hub
