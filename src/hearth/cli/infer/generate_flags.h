#pragma once
// The flags of generate, and what they ask for.
#include <optional>
#include <string>

#include "hearth/cli/infer/engine_flags.h"
#include "hearth/cli/infer/sampling_flags.h"

namespace hearth::cli {

// What is asked for, before a model is there: all of it is checked by now but
// for what depends on one.
struct Asked {
  infer::Request request;
  std::string grammar;  // what it was made of
  Json tools;
  std::string text;  // of the prompt
};

struct GenerateFlags {
  ModelFlags model;
  SamplingFlags sampling;
  GrammarFlags grammar;
  EngineFlags engine;
  std::optional<std::string> prompt, file, ids, system, jsonl, tools;
  std::string out = "-";
  std::optional<std::int64_t> log_probs;
  std::int64_t batch = 0;
  bool raw = false, profile = false, force = false;

  void declare(Args& args);
  // Throws UsageError for flags that exclude or need each other.
  void check() const;
  // Reads the files that flags name. Throws UsageError.
  Asked read(const Context& context) const;
  // 16 hexadecimal digits of all that has a say in an answer, the model and
  // its prompt aside.
  std::string key(const Context& context, const Asked& asked) const;
};

}  // namespace hearth::cli
