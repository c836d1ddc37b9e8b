#pragma once
// One request's events, brought from the engine's thread to this one as they
// come, with the times they came at.
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "hearth/infer/engine/engine.h"

namespace hearth::cli {

struct Answer {
  std::string text;
  std::vector<infer::GeneratedToken> tokens;  // the stop id among them
  infer::Finish finish = infer::Finish::length;
  int prompt_tokens = 0, cached_tokens = 0;
  double first_step_ms = 0;  // the prompt, to the first token
  double decode_ms = 0;      // all later tokens
  double tokens_per_s = 0;   // of later tokens; 0 where there are none

  std::vector<std::int32_t> ids() const;
};

// Submits, shows each token as it comes and returns the whole. `go_on` is asked
// a few times a second and at each token; once it says no the request is
// cancelled. Throws Error when the request failed.
Answer stream_answer(
    infer::Engine& engine,
    infer::Request request,
    const std::function<void(const infer::GeneratedToken&)>& show,
    const std::function<bool()>& go_on
);

}  // namespace hearth::cli
