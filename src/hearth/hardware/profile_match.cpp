// Which profile a machine gets. Rules rank by how much they pin down: an
// accelerator, then a chip, then the bin's GPU cores, then memory, then the
// instruction set, then the processor kind and the system.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/base/spelling.h"
#include "hearth/hardware/profile.h"

namespace hearth::hardware {
namespace {

bool fits(const MatchRule& r, const MachineTraits& t) {
  const auto is = [](const std::string& rule, const std::string& value) {
    return rule.empty() || rule == value;
  };
  const bool cores_fit =
      r.gpu_cores.empty() ||
      std::find(r.gpu_cores.begin(), r.gpu_cores.end(), t.gpu_cores) !=
          r.gpu_cores.end();
  return is(r.os, t.os) && is(r.architecture, t.architecture) &&
         is(r.chip, t.chip) && is(r.isa, t.isa) && cores_fit &&
         (r.gpu.empty() || t.gpu.find(r.gpu) != std::string::npos) &&
         t.memory_gb >= r.min_memory_gb;
}

using Rank = std::array<double, 7>;

Rank rank(const MatchRule& r) {
  const auto given = [](const std::string& s) { return s.empty() ? 0.0 : 1.0; };
  return {
      static_cast<double>(r.gpu.size()),
      given(r.chip),
      r.gpu_cores.empty() ? 0.0 : 1.0,
      r.min_memory_gb,
      given(r.isa),
      given(r.architecture),
      given(r.os)
  };
}

std::string reason_of(const MatchRule& r, const MachineTraits& t) {
  std::vector<std::string> parts;
  if (!r.gpu.empty()) parts.push_back(fmt::format("accelerator '{}'", t.gpu));
  if (!r.chip.empty()) parts.push_back(fmt::format("chip '{}'", t.chip));
  if (!r.gpu_cores.empty()) {
    parts.push_back(fmt::format("{} GPU cores", t.gpu_cores));
  }
  if (r.min_memory_gb > 0) {
    parts.push_back(
        fmt::format(
            "{:.0f} GB of memory (at least {})", t.memory_gb, r.min_memory_gb
        )
    );
  }
  if (!r.isa.empty()) parts.push_back(fmt::format("instruction set {}", t.isa));
  if (!r.architecture.empty()) parts.push_back(t.architecture);
  if (!r.os.empty()) parts.push_back(t.os);
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

MachineTraits traits_of(
    const Machine& machine,
    std::string_view isa,
    std::span<const Device> devices
) {
  MachineTraits t;
  t.os = machine.os;
  t.architecture = machine.cpu.architecture;
  t.chip = machine.cpu.model;
  t.isa = isa;
  t.gpu_cores = machine.apple_gpu.cores;
  // Memory is sold in binary gigabytes, and firmware keeps a little of it.
  t.memory_gb =
      static_cast<double>(machine.memory.total) / static_cast<double>(1 << 30) +
      0.5;
  for (const Device& d : devices) {
    if (d.kind == DeviceKind::kCuda && t.gpu.empty()) t.gpu = d.name;
  }
  return t;
}

ProfileMatch match_profile(
    std::span<const Profile> profiles,
    const MachineTraits& traits
) {
  const Profile *best = nullptr, *rival = nullptr;
  for (const Profile& p : profiles) {
    if (p.key == "unknown" || !fits(p.match, traits)) continue;
    if (best == nullptr || rank(p.match) > rank(best->match)) {
      best = &p;
      rival = nullptr;
    } else if (rank(p.match) == rank(best->match)) {
      rival = &p;
    }
  }
  if (rival != nullptr) {
    throw FormatError(
        fmt::format(
            "{}: profile '{}' must not tie with '{}' ({}) on this machine",
            rival->where, rival->key, best->key, best->where
        )
    );
  }
  if (best != nullptr) return {best, reason_of(best->match, traits)};
  return {
      &profile_named(profiles, "unknown"),
      fmt::format("no profile knows '{}'", traits.chip)
  };
}

const Profile& profile_named(
    std::span<const Profile> profiles,
    std::string_view key
) {
  std::vector<std::string> known;
  for (const Profile& p : profiles) {
    if (p.key == key) return p;
    known.push_back(p.key);
  }
  throw UsageError(
      fmt::format(
          "there is no hardware profile '{}'{}; known: {}", key,
          did_you_mean(key, known), fmt::join(known, ", ")
      )
  );
}

}  // namespace hearth::hardware
