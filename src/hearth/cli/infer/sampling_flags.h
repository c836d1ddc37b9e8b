#pragma once
// The flags that say how tokens are chosen and what the text may be. Everything
// is checked here, before a model is loaded, and by the flag's own name.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/cli/command.h"
#include "hearth/infer/engine/engine.h"

namespace hearth::cli {

struct SamplingFlags {
  std::int64_t max_tokens = 256;
  double usual_temperature = 0;  // where none is given
  // The values that were given, in the order of infer::sampling_fields().
  std::vector<std::optional<double>> numbers;
  std::vector<std::optional<std::int64_t>> whole_numbers;
  std::vector<std::string> bias, stop;

  void declare(Args& args);
  // max_tokens, sampling, logit_bias and stop of a request. Without --seed a
  // fresh one is drawn, so ask once. Throws UsageError.
  infer::Request request(const Context& context) const;
  // Says which flags do nothing because nothing is drawn.
  void note_idle(const Context& context) const;

 private:
  infer::GivenSampling given() const;
};

struct GrammarFlags {
  std::optional<std::string> schema, regex, gbnf;

  struct Read {
    std::shared_ptr<const text::Grammar> grammar;  // null: none asked for
    std::string source;                            // what it was made of
  };

  void declare(Args& args);
  // Throws UsageError for more than one, and for what is no grammar.
  Read read() const;
};

// Throws UsageError where --logit-bias names what is no token of the model.
void check_bias_ids(const infer::Request& request, int vocabulary);

// A flag's number as an int; UsageError when it is below least or no int.
int flag_number(std::int64_t value, const char* name, int least = 0);

}  // namespace hearth::cli
