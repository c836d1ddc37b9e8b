// The JSON of `hearth doctor --json`; docs/doctor.md describes it. What is not
// known is absent, never 0.
#include "hearth/cli/measure/doctor_report.h"

namespace hearth::cli {
namespace {

void set(Json& j, const char* key, const std::string& value) {
  if (!value.empty()) j[key] = value;
}
void set(Json& j, const char* key, std::size_t value) {
  if (value > 0) j[key] = value;
}
void set(Json& j, const char* key, int value) {
  if (value > 0) j[key] = value;
}

Json cpu_json(const hardware::Cpu& cpu) {
  Json j;
  set(j, "vendor", cpu.vendor);
  set(j, "model", cpu.model);
  set(j, "architecture", cpu.architecture);
  set(j, "physical_cores", cpu.physical_cores);
  set(j, "logical_cores", cpu.logical_cores);
  set(j, "sockets", cpu.sockets);
  set(j, "numa_nodes", cpu.numa_nodes);
  set(j, "usable_threads", cpu.usable_threads);
  if (cpu.quota > 0) j["quota_cores"] = cpu.quota;
  set(j, "l1d_bytes", cpu.l1d_bytes);
  set(j, "l2_bytes", cpu.l2_bytes);
  set(j, "l3_bytes", cpu.l3_bytes);
  j["clusters"] = Json::array();
  for (const auto& c : cpu.clusters) {
    j["clusters"].push_back({{"kind", c.kind}, {"cores", c.cores}});
  }
  j["flags"] = cpu.flags;
  return j;
}

Json memory_json(const DoctorReport& r) {
  const auto& m = r.machine.memory;
  Json j;
  set(j, "total_bytes", m.total);
  set(j, "available_bytes", m.available);
  j["swap_total_bytes"] = m.swap_total;
  j["swap_used_bytes"] = m.swap_used;
  set(j, "cgroup", m.cgroup);
  set(j, "cgroup_limit_bytes", m.cgroup_limit);
  if (m.cgroup_limit > 0) j["cgroup_used_bytes"] = m.cgroup_used;
  set(j, "huge_pages", m.huge_pages);
  j["safe_bytes"] = r.safe.bytes;
  j["safe_derivation"] = r.safe.derivation;
  return j;
}

Json devices_json(const DoctorReport& r) {
  Json list = Json::array();
  for (const auto& d : r.devices) {
    Json j = {{"device", hardware::device_word(d.kind)}, {"index", d.index}};
    set(j, "name", d.name);
    set(j, "architecture", d.architecture);
    set(j, "memory_bytes", d.memory);
    list.push_back(j);
  }
  return list;
}

}  // namespace

Json to_json(const DoctorReport& r) {
  const auto& m = r.machine;
  Json j;
  j["os"] = {{"name", m.os}, {"version", m.os_version}, {"kernel", m.kernel}};
  j["virtual_machine"] = m.virtual_machine;
  j["cpu"] = cpu_json(m.cpu);
  j["memory"] = memory_json(r);
  if (!m.apple_gpu.name.empty()) {
    j["gpu"] = {
        {"name", m.apple_gpu.name},
        {"architecture", m.apple_gpu.architecture},
        {"cores", m.apple_gpu.cores},
        {"recommended_working_set_bytes", m.apple_gpu.recommended_working_set}
    };
  }
  Json power;
  set(power, "source", m.power.source);
  set(power, "thermal", m.power.thermal);
  power["low_power"] = m.power.low_power;
  j["power"] = power;
  j["devices"] = devices_json(r);
  j["device"] = {
      {"chosen", hardware::device_word(r.choice.device.kind)},
      {"reason", r.choice.reason}
  };
  j["isa"] = {
      {"chosen", r.isa}, {"usable", r.isa_usable}, {"built", r.isa_known}
  };
  j["profile"] = {
      {"key", r.profile},
      {"describes", r.profile_describes},
      {"reason", r.profile_reason}
  };
  j["mlx"] = r.mlx_version;
  if (r.peaks) j["peaks"] = hardware::to_json(*r.peaks);
  j["warnings"] = Json::array();
  for (const auto& w : r.warnings) {
    j["warnings"].push_back({{"what", w.what}, {"remedy", w.remedy}});
  }
  return j;
}

}  // namespace hearth::cli
