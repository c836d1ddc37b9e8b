#pragma once
// Generated data as a file, so that a recipe can start from nothing: the
// `data.synth` section, written once to the user's cache folder.
#include <cstdint>
#include <functional>
#include <string>

#include "hearth/base/config.h"

namespace hearth::data {

struct SynthConfig {
  std::string kind = "stories";
  std::int64_t n = 20000;
  std::uint64_t seed = 0;

  void fields(FieldVisitor& v);
};

struct SynthWatch {
  // Called now and then with records done and in all.
  std::function<void(std::uint64_t, std::uint64_t)> progress;
  // Asked often; true makes the writing throw Interrupted.
  std::function<bool()> stop;
};

// The JSONL that `hearth data synth` prints for the same settings. Its name
// holds a fingerprint of what the generator makes, so that a file of an older
// generator is never taken for it. It is there whole or not at all.
std::string synth_file(const SynthConfig& config, const SynthWatch& watch);

}  // namespace hearth::data
