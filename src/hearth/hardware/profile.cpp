#include "hearth/hardware/profile.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/hardware/builtin_profiles.h"

namespace hearth::hardware {

void MatchRule::fields(FieldVisitor& v) {
  v("os", os, "operating system", one_of({"linux", "macos"}));
  v("architecture", architecture, "processor", one_of({"arm64", "x86_64"}));
  v("chip", chip, "the processor's whole brand string");
  v("gpu", gpu, "part of an accelerator's name");
  v("isa", isa, "the best kernel table the machine runs");
  v("gpu_cores", gpu_cores, "core counts of the bin", at_least(1));
  v("min_memory_gb", min_memory_gb, "installed memory", at_least(0));
}

void ShapeMix::fields(FieldVisitor& v) {
  v("lengths", lengths, "sequence lengths a run trains with", at_least(1));
  v("probs", probs, "share of each length", between(0, 1));
}

void Spec::fields(FieldVisitor& v) {
  v("bandwidth_gb_s", bandwidth_gb_s, "published bandwidth", positive());
  v("fp32_tflops", fp32_tflops, "published GPU rate", positive());
  v("neural_engine_tops", neural_engine_tops, "published rate", positive());
}

void SpeedTarget::fields(FieldVisitor& v) {
  v("context", context, "prompt length", required(positive()));
  v("model", model, "what ran", required());
  v("source", source, "who measured it, on what", required());
  v("ttft_ms_p50", ttft_ms_p50, "low and high", positive());
  v("ttft_ms_p95", ttft_ms_p95, "low and high", positive());
  v("tps_p50", tps_p50, "low and high", positive());
  v("tps_p95", tps_p95, "low and high (slow tail)", positive());
}

void MaxRegression::fields(FieldVisitor& v) {
  v("ttft_ms_p50", ttft_ms_p50, "per cent slower", positive());
  v("ttft_ms_p95", ttft_ms_p95, "per cent slower", positive());
  v("tps_p50", tps_p50, "per cent slower", positive());
  v("tps_p95", tps_p95, "per cent slower", positive());
}

void AbsoluteBounds::fields(FieldVisitor& v) {
  v("ttfa_tokens_p95_max", ttfa_tokens_p95_max, "tokens", positive());
}

void Gating::fields(FieldVisitor& v) {
  v("max_regression_pct", max_regression_pct, "largest regressions");
  v("absolute_bounds", absolute_bounds, "limits whatever the baseline");
  v("require_same_profile", require_same_profile, "refuse other hardware");
}

void BatchPolicy::fields(FieldVisitor& v) {
  v("interactive", interactive, "batch of an interactive request", at_least(1));
  v("offline", offline, "batches to try for offline work", at_least(1));
  v("min_gain_pct", min_gain_pct, "throughput a larger batch must gain",
    at_least(0));
  v("max_p95_penalty_pct", max_p95_penalty_pct, "latency it may cost",
    at_least(0));
}

void QuantPolicy::fields(FieldVisitor& v) {
  v("weight_bits", weight_bits, "weights", between(2, 16));
  v("act_bits", act_bits, "activations", between(8, 16));
  v("keep", keep, "layers left as they are");
}

void Profile::fields(FieldVisitor& v) {
  v("key", key, "the profile's name", required());
  v("describes", describes, "the machine in words", required());
  v("match", match, "which machines it is for");
  v("shape_mix", shape_mix, "lengths to train with");
  v("spec", spec, "what the maker publishes");
  v("gating", gating, "limits of hearth gate");
  v("batch_policy", batch_policy, "how the batch is chosen");
  v("quant_policy", quant_policy, "default quantisation");
  v("speed_targets", speed_targets_node, "measured bands, by context length");
}

namespace {

void check_band(
    const std::vector<double>& band,
    const char* name,
    const YamlNode& at
) {
  if (band.empty() || (band.size() == 2 && band[0] <= band[1])) return;
  throw FormatError(
      fmt::format("{}: speed_targets.{} must be [low, high]", at.where(), name)
  );
}

void read_speed_targets(Profile& p) {
  const YamlNode& list = p.speed_targets_node;
  if (list.kind == YamlNode::Kind::kNull) return;
  if (list.kind != YamlNode::Kind::kList) {
    throw FormatError(
        fmt::format("{}: speed_targets must be a list", list.where())
    );
  }
  for (const YamlNode& node : list.items) {
    SpeedTarget& t = p.speed_targets.emplace_back();
    ConfigReader reader(t);
    reader.apply(node);
    reader.require_all(node);
    check_band(t.ttft_ms_p50, "ttft_ms_p50", node);
    check_band(t.ttft_ms_p95, "ttft_ms_p95", node);
    check_band(t.tps_p50, "tps_p50", node);
    check_band(t.tps_p95, "tps_p95", node);
  }
}

void check_shape_mix(const ShapeMix& mix, const YamlNode& at) {
  if (mix.lengths.size() != mix.probs.size() || mix.lengths.empty()) {
    throw FormatError(
        fmt::format(
            "{}: shape_mix.probs must have one share for each of {} lengths, "
            "got "
            "{}",
            at.where(), mix.lengths.size(), mix.probs.size()
        )
    );
  }
  const double sum = std::accumulate(mix.probs.begin(), mix.probs.end(), 0.0);
  if (std::abs(sum - 1) > 1e-6) {
    throw FormatError(
        fmt::format(
            "{}: shape_mix.probs must add up to 1, got {}", at.where(), sum
        )
    );
  }
}

Profile read_profile(const YamlNode& node) {
  Profile p;
  p.where = node.where();
  ConfigReader reader(p);
  reader.apply(node);
  reader.require_all(node);
  read_speed_targets(p);
  check_shape_mix(p.shape_mix, node);
  return p;
}

bool cores_overlap(const std::vector<int>& a, const std::vector<int>& b) {
  if (a.empty() && b.empty()) return true;
  return std::any_of(a.begin(), a.end(), [&](int n) {
    return std::find(b.begin(), b.end(), n) != b.end();
  });
}

// Two rules that some machine satisfies equally well.
bool tie(const MatchRule& a, const MatchRule& b) {
  return a.os == b.os && a.architecture == b.architecture && a.chip == b.chip &&
         a.gpu == b.gpu && a.isa == b.isa &&
         cores_overlap(a.gpu_cores, b.gpu_cores) &&
         a.min_memory_gb == b.min_memory_gb;
}

void check_unique(const std::vector<Profile>& profiles) {
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Profile &a = profiles[j], &b = profiles[i];
      if (a.key == b.key) {
        throw FormatError(
            fmt::format(
                "{}: key '{}' must be unique, it is also at {}", b.where, b.key,
                a.where
            )
        );
      }
      if (tie(a.match, b.match)) {
        throw FormatError(
            fmt::format(
                "{}: match of '{}' must differ from that of '{}' ({}): the "
                "same "
                "machines fit both equally well",
                b.where, b.key, a.key, a.where
            )
        );
      }
    }
  }
}

std::vector<std::string> yaml_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder, ignored)) {
    const auto extension = entry.path().extension();
    if (extension == ".yaml" || extension == ".yml") {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<Profile> profiles_of(const YamlNode& root) {
  const YamlNode* list = root.find("profiles");
  for (const auto& [key, value] : root.entries) {
    if (key != "profiles") {
      throw FormatError(
          fmt::format(
              "{}: there is no key '{}', a profile file holds 'profiles'",
              value.where(), key
          )
      );
    }
  }
  if (list == nullptr || list->kind != YamlNode::Kind::kList) {
    throw FormatError(
        fmt::format(
            "{}: key 'profiles' must be given, a list of profiles", root.where()
        )
    );
  }
  std::vector<Profile> profiles;
  for (const YamlNode& node : list->items)
    profiles.push_back(read_profile(node));
  return profiles;
}

}  // namespace

std::vector<Profile> parse_profiles(
    std::string_view text,
    std::string_view name
) {
  auto profiles = profiles_of(parse_yaml(text, name));
  check_unique(profiles);
  return profiles;
}

std::vector<Profile> load_profiles(const std::string& user_folder) {
  std::vector<Profile> all;
  for (const BuiltinFile& file : builtin_profiles()) {
    for (Profile& p : parse_profiles(file.text, file.name)) {
      all.push_back(std::move(p));
    }
  }
  check_unique(all);
  for (const std::string& path : yaml_files(user_folder)) {
    for (Profile& p : profiles_of(read_yaml_file(path))) {
      std::erase_if(all, [&](const Profile& old) { return old.key == p.key; });
      all.push_back(std::move(p));
    }
  }
  check_unique(all);
  return all;
}

}  // namespace hearth::hardware
