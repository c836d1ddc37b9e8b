#pragma once
// How much work one request may cause: a budget of units, a deadline and a
// flag by which somebody else calls it off. Whoever does the work says how much
// it does before it does it, and what passes the budget ends with an error.
//
//   Effort effort(50'000'000);
//   effort.until(Clock::now() + 2s).unless(client_has_left);
//   auto grammar = grammar_of_schema(schema, {.effort = &effort});
//
// Units are counted, not timed, so that the same text is refused everywhere. A
// unit is a small step, a character read or a name compared: ten million of
// them take a quarter of a second to one second.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"

namespace hearth {

// UsageError, because what was asked for is what is too much.
class EffortError : public UsageError {
 public:
  enum class Reason : unsigned char { too_large, deadline, cancelled };
  EffortError(Reason reason, const std::string& message)
      : UsageError(message), reason_(reason) {}
  Reason reason() const noexcept { return reason_; }

 private:
  Reason reason_;
};

// Only one thread at a time may use it; the flag alone may be set from another.
class Effort {
 public:
  using Flag = std::shared_ptr<const std::atomic<bool>>;
  // The budget where the caller gives none: a second or two of work, far more
  // than an honest request takes.
  static constexpr std::uint64_t kMost = 20'000'000;

  explicit Effort(std::uint64_t most = kMost) : left_(most) {}
  Effort& until(Clock::time_point deadline) {
    deadline_ = deadline;
    return *this;
  }
  Effort& unless(Flag cancelled) {
    cancelled_ = std::move(cancelled);
    return *this;
  }

  // Throws EffortError when that is more than is left, the deadline has passed
  // or the flag is set. The clock is looked at now and then only.
  void spend(std::uint64_t units = 1) {
    if (units > left_) refuse(EffortError::Reason::too_large);
    left_ -= units;
    unseen_ += units;
    if (unseen_ >= kLookEvery) look();
  }
  // Checks the clock and the flag now, and throws as spend() does.
  void look();
  std::uint64_t left() const { return left_; }

  // One for a part of the work: at most so many units of what is left, with the
  // same deadline and flag. What it has used is told with
  // used_by_part().
  Effort part(std::uint64_t most) const {
    Effort out = *this;
    out.left_ = std::min(most, left_);
    return out;
  }
  void used_by_part(std::uint64_t units) noexcept {
    left_ -= std::min(units, left_);
  }

 private:
  static constexpr std::uint64_t kLookEvery = std::uint64_t{1} << 14;
  [[noreturn]] static void refuse(EffortError::Reason reason);

  std::uint64_t left_, unseen_ = 0;
  Clock::time_point deadline_ = Clock::time_point::max();
  Flag cancelled_;
};

}  // namespace hearth
