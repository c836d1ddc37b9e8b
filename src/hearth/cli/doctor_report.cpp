#include "hearth/cli/doctor_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/env.h"
#include "hearth/base/units.h"
#include "hearth/bench/measure.h"
#include "hearth/kernels/table.h"
#include "hearth/ops/device.h"

namespace hearth::cli {
namespace {

void add_hardware_warnings(DoctorReport& r) {
  r.warnings = hardware::warnings(r.machine);
  const bool has_cuda = r.devices.front().kind == hardware::DeviceKind::kCuda;
  if (r.machine.nvidia_driver && !has_cuda) {
    r.warnings.push_back(
        {"an NVIDIA driver is loaded, but this build has no CUDA",
         "HEARTH_MLX=cuda13 ./dev build"}
    );
  }
  if (r.profile == "unknown" || r.profile == "unknown-apple-silicon") {
    r.warnings.push_back(
        {"no hardware profile knows this machine",
         fmt::format(
             "everything works; add one in {}/profiles", env::config_folder()
         )}
    );
  }
}

}  // namespace

DoctorReport gather_report(const std::string& wanted_device) {
  DoctorReport r;
  r.devices = ops::available_devices();
  r.choice = hardware::choose_device(wanted_device, r.devices);
  r.machine = hardware::detect();
  r.safe = hardware::safe_memory(r.machine);
  for (const auto* t : kernels::tables()) r.isa_known.emplace_back(t->isa);
  for (const auto* t : kernels::usable_tables())
    r.isa_usable.emplace_back(t->isa);
  r.isa = kernels::best().isa;
  const auto profiles =
      hardware::load_profiles(env::config_folder() + "/profiles");
  const auto match = hardware::match_profile(
      profiles, hardware::traits_of(r.machine, r.isa_usable.back(), r.devices)
  );
  r.profile = match.profile->key;
  r.profile_describes = match.profile->describes;
  r.profile_reason = match.reason;
  add_hardware_warnings(r);
  r.peaks = hardware::load_peaks(bench::machine_id(r.machine));
  r.mlx_version = ops::mlx_version();
  return r;
}

namespace {

std::string cores_text(const hardware::Cpu& cpu) {
  std::string text = fmt::format("{} cores", cpu.physical_cores);
  for (const auto& c : cpu.clusters) {
    text += fmt::format(", {} {}", c.cores, c.kind);
  }
  if (cpu.logical_cores > cpu.physical_cores) {
    text += fmt::format(" ({} with hyper-threads)", cpu.logical_cores);
  }
  if (cpu.sockets > 1) text += fmt::format(", {} sockets", cpu.sockets);
  if (cpu.numa_nodes > 1)
    text += fmt::format(", {} NUMA nodes", cpu.numa_nodes);
  return text + fmt::format("; a team of {} threads", cpu.usable_threads);
}

std::string cache_text(const hardware::Cpu& cpu) {
  std::vector<std::string> parts;
  if (cpu.l1d_bytes > 0) parts.push_back("L1d " + format_bytes(cpu.l1d_bytes));
  if (cpu.l2_bytes > 0) parts.push_back("L2 " + format_bytes(cpu.l2_bytes));
  if (cpu.l3_bytes > 0) parts.push_back("L3 " + format_bytes(cpu.l3_bytes));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string memory_text(const hardware::Memory& m) {
  std::string text = fmt::format(
      "{}, {} available", format_bytes(m.total), format_bytes(m.available)
  );
  if (m.swap_total > 0) {
    text += fmt::format(
        "; swap {} of {} in use", format_bytes(m.swap_used),
        format_bytes(m.swap_total)
    );
  }
  if (m.cgroup_limit > 0) {
    text += fmt::format(
        "; cgroup {} limit {}", m.cgroup, format_bytes(m.cgroup_limit)
    );
  }
  return text;
}

std::string line(const char* name, const std::string& value) {
  return value.empty() ? "" : fmt::format("  {:<10} {}\n", name, value);
}

std::string peaks_text(const hardware::Peaks& p) {
  std::string text = fmt::format("measured ({})\n", p.date);
  for (const auto& a : p.arithmetic) {
    text += line(
        a.isa.c_str(), fmt::format(
                           "{} {:>8.1f} GOP/s on {} thread{}", a.dtype, a.gops,
                           a.threads, a.threads == 1 ? "" : "s"
                       )
    );
  }
  for (const auto& b : p.bandwidth) {
    text += line(
        "memory", fmt::format(
                      "{} {:>8.1f} GB/s on {} thread{}", b.kind, b.gb_s,
                      b.threads, b.threads == 1 ? "" : "s"
                  )
    );
  }
  text += line(
      "disk", p.disk_read_gb_s ? fmt::format(
                                     "read {:>8.2f} GB/s ({})",
                                     *p.disk_read_gb_s, p.disk_note
                                 )
                               : p.disk_note
  );
  return text;
}

}  // namespace

std::string to_text(const DoctorReport& r) {
  const auto& m = r.machine;
  std::string text = "machine\n";
  text += line("cpu", m.cpu.model + (m.virtual_machine ? " (virtual)" : ""));
  text += line("cores", cores_text(m.cpu));
  text += line("caches", cache_text(m.cpu));
  text += line("memory", memory_text(m.memory));
  if (!m.apple_gpu.name.empty()) {
    text += line(
        "gpu", fmt::format(
                   "{}, {} cores, {}", m.apple_gpu.name, m.apple_gpu.cores,
                   m.apple_gpu.architecture
               )
    );
  }
  text += line(
      "system", m.os_version + (m.kernel.empty() ? "" : ", kernel " + m.kernel)
  );
  text += line("power", m.power.source);
  text += line("thermal", m.power.thermal);
  text += "\nfor training\n";
  text += line(
      "safe",
      fmt::format("{} ({})", format_bytes(r.safe.bytes), r.safe.derivation)
  );
  for (const auto& d : r.devices) {
    const bool chosen =
        d.kind == r.choice.device.kind && d.index == r.choice.device.index;
    text += line(
        "device",
        fmt::format(
            "{} ({}){}{}", hardware::device_word(d.kind), d.name,
            d.memory > 0 ? ", " + format_bytes(d.memory) : "",
            chosen ? fmt::format(" <- chosen, {}", r.choice.reason) : ""
        )
    );
  }
  text += line(
      "kernels", fmt::format(
                     "{} (runs {}; built {})", r.isa,
                     fmt::join(r.isa_usable, ", "), fmt::join(r.isa_known, ", ")
                 )
  );
  text += line(
      "profile",
      fmt::format(
          "{}: {} ({})", r.profile, r.profile_describes, r.profile_reason
      )
  );
  text += line("mlx", r.mlx_version);
  text += "\n";
  if (r.peaks) {
    text += peaks_text(*r.peaks);
  } else {
    text += "not measured yet: hearth doctor --measure\n";
  }
  for (const auto& w : r.warnings) {
    text += fmt::format("\nwarning: {}\n  {}\n", w.what, w.remedy);
  }
  return text;
}

}  // namespace hearth::cli
