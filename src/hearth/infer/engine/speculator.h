#pragma once
// Guesses of the tokens that come next. A step of the runner checks several at
// once: the sampler draws each token from the model's own logits, as it would
// without guesses, and as long as the guess is that token the next row counts
// too. So what comes out is what comes out without, and a guess can only cost
// time.
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "hearth/infer/engine/runner.h"
#include "hearth/infer/sampler.h"

namespace hearth::infer {

class Speculator {
 public:
  Speculator() = default;
  virtual ~Speculator() = default;
  Speculator(const Speculator&) = delete;
  Speculator& operator=(const Speculator&) = delete;

  struct Ask {
    std::uint64_t request = 0;
    std::span<const std::int32_t> tokens;  // the prompt and what was made
    std::size_t prompt = 0;                // tokens of the prompt
    int most = 0;                          // guesses wanted
    Sampler* sampler = nullptr;            // the request's own
    std::vector<std::int32_t> guesses;     // filled in; may stay empty
  };
  virtual void guess(std::span<Ask> asks) = 0;
  // The request has ended: what is kept for it can go.
  virtual void forget(std::uint64_t request) = 0;
};

// What followed the last time the text had these `longest` tokens, or fewer
// but two at least (one where longest is one).
class NgramSpeculator : public Speculator {
 public:
  explicit NgramSpeculator(int longest);
  void guess(std::span<Ask> asks) override;
  void forget(std::uint64_t request) override;

 private:
  int longest_;
};

// A smaller model of the same vocabulary. It draws with the request's own
// sampler, seed and position, so where the two models agree they draw the same.
class DraftSpeculator : public Speculator {
 public:
  explicit DraftSpeculator(std::unique_ptr<Runner> runner);
  void guess(std::span<Ask> asks) override;
  void forget(std::uint64_t request) override;

 private:
  struct Held {
    SequenceId sequence;
    std::vector<std::int32_t> fed;
  };
  // One request in a round of guesses.
  struct Guessing {
    Ask* ask;
    Held* held;
    std::vector<std::int32_t> text;  // with the guesses so far
  };
  std::unique_ptr<Runner> runner_;
  std::map<std::uint64_t, Held> held_;

  Held* prepare(const Ask& ask);
  bool room_for(const std::vector<Guessing>& guessing) const;
  void round(std::vector<Guessing>& guessing);
  void feed_prompt(Held& held, std::span<const std::int32_t> tokens);
};

}  // namespace hearth::infer
