#pragma once
// How a token is drawn, as one list of options. From an option's line come its
// flag, its key in a request to the server and in a line of a batch, its help,
// its checks and its row in docs/sampling.md (sampling_options_test.cpp holds
// the page against the list). What an option does stands in sampler.cpp, and
// of those marked `on_device` once more in graph/device_sampler.cpp.
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace hearth::infer {

struct SamplingField;

// An option whose value cannot be.
struct SamplerFault {
  const SamplingField* field;
  double got;
};

struct SamplerOptions {
  double temperature = 0;     // 0: the most likely token
  int top_k = 0;              // 0: all
  double top_p = 1;           // smallest set that holds this probability
  double typical_p = 1;       // tokens of usual surprise that hold this much
  double min_p = 0;           // of the most likely token's probability
  double repeat_penalty = 1;  // above 1, tokens already there are less likely
  double frequency_penalty = 0;  // off the logit for each time it was made
  double presence_penalty = 0;   // off the logit once it was made at all
  std::uint64_t seed = 0;

  std::optional<SamplerFault> fault() const;
  // Throws UsageError.
  void check() const;
};

// What a value must be, as everybody reads it.
struct SamplingRange {
  double least, most;
  bool above;  // more than `least`
  const char* must;

  bool holds(double value) const;  // false for what is no number
};

// One option, the seed aside. All values fit a double.
struct SamplingField {
  const char* name;  // of the member
  const char* flag;  // "--top-k"
  const char* key;   // in requests and lines of a batch
  std::variant<double SamplerOptions::*, int SamplerOptions::*> member;
  SamplingRange range;
  // What a request to the server may say, which OpenAI bounds more closely.
  double request_least, request_most;
  // It narrows what is drawn from, and does nothing where nothing is drawn.
  bool narrows;
  // A device can draw by it (draw.h). Requests with another option than its
  // default are drawn by the host.
  bool on_device;
  const char* help;

  bool whole() const { return member.index() == 1; }
  double get(const SamplerOptions& options) const;
  void set(SamplerOptions& options, double value) const;
};

// In the order of SamplerOptions.
std::span<const SamplingField> sampling_fields();

// Those that somebody gave, by their places in the list.
class GivenSampling {
 public:
  GivenSampling();
  void give(std::size_t place, std::optional<double> value) {
    values_[place] = value;
  }
  bool gave(std::string_view name) const;
  void apply(SamplerOptions& options) const;

 private:
  std::vector<std::optional<double>> values_;
};

}  // namespace hearth::infer
