#pragma once
// llama.cpp as the rival of prompts, decoding and quantised products: the
// drivers that tools/build_llamacpp.sh builds, in a process of their own.
#include <cstddef>
#include <string>

#include "hearth/bench/runner.h"

namespace hearth::bench {

struct LlamaWork {
  int prompt = 0;  // tokens of a timed prompt; 0: decoding
  int steps = 0, batch = 1, depth = 0;
};

// Starts it and loads the model, the same file as ours. Throws Error, saying
// what is missing, when it cannot run.
Timed llama_peer(const std::string& model, const LlamaWork& work);
// One product of so many rows with a 4096 x 4096 matrix of a GGUF type, going
// through `copies` of it. Throws likewise.
Timed llama_product(const std::string& type, long rows, std::size_t copies);

}  // namespace hearth::bench
