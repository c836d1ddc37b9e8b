#pragma once
// PyTorch as the rival of a training step: tools/pytorch_peer.py in a process
// of its own, which trains one step when told to.
#include <string>
#include <vector>

#include "hearth/bench/runner.h"

namespace hearth::bench {

// {fp32, bf16} x {eager, compile} x {malloc as it comes, tuned}.
struct TorchVariant {
  std::string name;  // "bf16-compile-tuned"
  bool bf16 = true, compile = true, tuned = true;
};

// Those whose name the regex finds, the best last; all eight with ".". Throws
// UsageError when it finds none.
std::vector<TorchVariant> torch_variants(const std::string& regex);

// Starts it and waits until it is warm. work is b20, g124 or lora05. Throws
// Error, saying what is missing, when it cannot run.
Timed torch_peer(const std::string& work, const TorchVariant& variant);

}  // namespace hearth::bench
