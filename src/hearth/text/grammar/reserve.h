#pragma once
// What reading a text in its grammar may cost.
#include <algorithm>
#include <cstdint>

#include "hearth/base/effort.h"
#include "hearth/base/error.h"

namespace hearth::text::grammar {

// Places that a mask, or the reading of a text, may look at: a reserve for what
// is hard once, and what each token adds to it.
constexpr std::uint64_t kReserve = 2'000'000, kPerToken = 50'000;

// What it counts to make a table of stacks anew, or to let a large one go.
constexpr std::uint64_t kRenewal = 20'000;

// Work on one token: what the stacks do counts while this lives. It may use the
// token's reserve, and no more than the caller gives: null, all of the reserve.
class TokenEffort {
 public:
  TokenEffort(std::uint64_t reserve, Effort* given)
      : reserve_(reserve),
        given_(given),
        effort_(given != nullptr ? given->part(reserve) : Effort(reserve)),
        most_(effort_.left()) {}
  ~TokenEffort() {
    if (given_ != nullptr) given_->used_by_part(used());
  }
  TokenEffort(const TokenEffort&) = delete;
  TokenEffort& operator=(const TokenEffort&) = delete;

  Effort& effort() { return effort_; }
  std::uint64_t left_of_reserve() const { return reserve_ - used(); }

  // What passes the caller's effort is an EffortError, and may be begun again.
  // What passes the reserve tells of the grammar.
  template <typename Work>
  auto run(const Work& work) {
    try {
      return work();
    } catch (const EffortError& e) {
      const bool the_callers = most_ < reserve_;
      if (the_callers || e.reason() != EffortError::Reason::too_large) throw;
      throw UsageError(
          "[infer.grammar] the grammar is too ambiguous: too many ways to read "
          "the text must be looked at for its next token"
      );
    }
  }

 private:
  std::uint64_t used() const { return most_ - effort_.left(); }

  const std::uint64_t reserve_;
  Effort* const given_;
  Effort effort_;
  const std::uint64_t most_;
};

}  // namespace hearth::text::grammar
