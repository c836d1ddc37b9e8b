#pragma once
// llama.cpp as the rival of prompts and decoding: the driver that
// tools/build_llamacpp.sh builds, in a process of its own, on the same file.
#include <string>

#include "hearth/bench/runner.h"

namespace hearth::bench {

struct LlamaWork {
  int prompt = 0;  // tokens of a timed prompt; 0: decoding
  int steps = 0, batch = 1, depth = 0;
};

// Starts it and loads the model. Throws Error, saying what is missing, when it
// cannot run.
Timed llama_peer(const std::string& model, const LlamaWork& work);

}  // namespace hearth::bench
