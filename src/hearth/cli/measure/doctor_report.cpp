#include "hearth/cli/measure/doctor_report.h"

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
  const auto on = [](int threads) {
    return fmt::format("on {} thread{}", threads, threads == 1 ? "" : "s");
  };
  for (const auto& a : p.arithmetic) {
    const auto rate = fmt::format("{} {:>8.1f} GOP/s ", a.dtype, a.gops);
    text += line(a.isa.c_str(), rate + on(a.threads));
  }
  for (const auto& b : p.bandwidth) {
    const auto rate = fmt::format("{} {:>8.1f} GB/s ", b.kind, b.gb_s);
    text += line("memory", rate + on(b.threads));
  }
  std::string disk = p.disk_note;
  if (p.disk_read_gb_s) {
    disk = fmt::format("read {:>8.2f} GB/s ({})", *p.disk_read_gb_s, disk);
  }
  return text + line("disk", disk);
}

std::string machine_text(const hardware::Machine& m) {
  std::string text = "machine\n";
  text += line("cpu", m.cpu.model + (m.virtual_machine ? " (virtual)" : ""));
  text += line("cores", cores_text(m.cpu));
  text += line("caches", cache_text(m.cpu));
  text += line("memory", memory_text(m.memory));
  const auto& gpu = m.apple_gpu;
  if (!gpu.name.empty()) {
    const auto about =
        fmt::format("{}, {} cores, {}", gpu.name, gpu.cores, gpu.architecture);
    text += line("gpu", about);
  }
  const std::string kernel = m.kernel.empty() ? "" : ", kernel " + m.kernel;
  text += line("system", m.os_version + kernel);
  text += line("power", m.power.source);
  text += line("thermal", m.power.thermal);
  return text;
}

std::string device_text(const hardware::Device& d, const DoctorReport& r) {
  const auto& c = r.choice;
  const bool chosen = d.kind == c.device.kind && d.index == c.device.index;
  return fmt::format(
      "{} ({}){}{}", hardware::device_word(d.kind), d.name,
      d.memory > 0 ? ", " + format_bytes(d.memory) : "",
      chosen ? fmt::format(" <- chosen, {}", c.reason) : ""
  );
}

std::string training_text(const DoctorReport& r) {
  std::string text = "\nfor training\n";
  const std::string safe = format_bytes(r.safe.bytes);
  text += line("safe", fmt::format("{} ({})", safe, r.safe.derivation));
  for (const auto& d : r.devices) text += line("device", device_text(d, r));
  const auto tables = fmt::format(
      "{} (runs {}; built {})", r.isa, fmt::join(r.isa_usable, ", "),
      fmt::join(r.isa_known, ", ")
  );
  text += line("kernels", tables);
  const auto profile = fmt::format(
      "{}: {} ({})", r.profile, r.profile_describes, r.profile_reason
  );
  text += line("profile", profile);
  return text + line("mlx", r.mlx_version);
}

}  // namespace

std::string to_text(const DoctorReport& r) {
  std::string text = machine_text(r.machine) + training_text(r) + "\n";
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
