#pragma once
// Hardware profiles: what is known and decided about a kind of machine. Files
// hold a list of them; the most specific one that matches a machine wins, two
// equally specific ones are an error in the file, and a machine that none
// knows is "unknown" and still works.
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hearth/base/config.h"
#include "hearth/hardware/device.h"
#include "hearth/hardware/machine.h"

namespace hearth::hardware {

// Every rule that is given must hold.
struct MatchRule {
  std::string os, architecture;
  std::string chip;  // the whole brand string
  std::string gpu;   // part of an accelerator's name
  std::string isa;   // best kernel table this machine runs
  std::vector<int> gpu_cores;
  double min_memory_gb = 0;
  void fields(FieldVisitor& v);
};

struct ShapeMix {
  std::vector<int> lengths{512, 1024, 2048, 4096};
  std::vector<double> probs{0.4, 0.4, 0.15, 0.05};
  void fields(FieldVisitor& v);
};

// What a maker publishes; never a measurement of ours.
struct Spec {
  double bandwidth_gb_s = 0, fp32_tflops = 0, neural_engine_tops = 0;
  void fields(FieldVisitor& v);
};

// Measured speed at one context length. `source` says who measured it, on
// what: a band without one is refused.
struct SpeedTarget {
  int context = 0;
  std::string model, source;
  std::vector<double> ttft_ms_p50, ttft_ms_p95, tps_p50, tps_p95;  // low, high
  void fields(FieldVisitor& v);
};

struct MaxRegression {  // per cent
  double ttft_ms_p50 = 5, ttft_ms_p95 = 5, tps_p50 = 5, tps_p95 = 5;
  void fields(FieldVisitor& v);
};

struct AbsoluteBounds {
  double ttfa_tokens_p95_max = 25;
  void fields(FieldVisitor& v);
};

struct Gating {
  MaxRegression max_regression_pct;
  AbsoluteBounds absolute_bounds;
  bool require_same_profile = true;
  void fields(FieldVisitor& v);
};

struct BatchPolicy {
  int interactive = 1;
  std::vector<int> offline{1, 2, 4, 8};
  double min_gain_pct = 10, max_p95_penalty_pct = 10;
  void fields(FieldVisitor& v);
};

struct QuantPolicy {
  int weight_bits = 8, act_bits = 16;
  std::vector<std::string> keep{"norm", "softmax"};
  void fields(FieldVisitor& v);
};

struct Profile {
  std::string key, describes;
  MatchRule match;
  ShapeMix shape_mix;
  Spec spec;
  Gating gating;
  BatchPolicy batch_policy;
  QuantPolicy quant_policy;
  std::vector<SpeedTarget> speed_targets;
  YamlNode speed_targets_node;
  std::string where;  // file:line it came from
  void fields(FieldVisitor& v);
};

// All profiles of one file's text. Throws FormatError with file, line and key.
std::vector<Profile> parse_profiles(
    std::string_view text,
    std::string_view name
);

// The ones built in, then those of `user_folder` (*.yaml, by name), which
// replace built-in ones of the same key. Keys are unique and no two rules tie.
std::vector<Profile> load_profiles(const std::string& user_folder);

// What a rule is held against.
struct MachineTraits {
  std::string os, architecture, chip, isa, gpu;
  int gpu_cores = 0;
  double memory_gb = 0;
};
MachineTraits traits_of(
    const Machine& machine,
    std::string_view isa,
    std::span<const Device> devices
);

struct ProfileMatch {
  const Profile* profile = nullptr;
  std::string reason;  // which rules decided
};
// The most specific match; the profile "unknown" when there is none.
ProfileMatch match_profile(
    std::span<const Profile> profiles,
    const MachineTraits& traits
);
const Profile& profile_named(
    std::span<const Profile> profiles,
    std::string_view key
);

}  // namespace hearth::hardware
