// Memory and CPU limits of containers. A limit may sit on any folder between
// the process's own cgroup and the root; the tightest one holds. Inside a
// container the mount's root is the container's own group, so the path from
// /proc/self/cgroup is taken relative to the root that mountinfo names.
#include <algorithm>
#include <charconv>
#include <sstream>
#include <vector>

#include "hearth/hardware/linux_machine.h"

namespace hearth::hardware {
namespace {

struct Mount {
  std::string root, point, type, options;
};

// The cgroup mounts of /proc/self/mountinfo:
//   36 25 0:31 ROOT POINT rw,... shared:9 - TYPE SOURCE rw,memory
std::vector<Mount> cgroup_mounts(const std::string& mountinfo) {
  std::vector<Mount> mounts;
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream left(line.substr(0, dash)), right(line.substr(dash + 3));
    std::string skip, source;
    Mount m;
    left >> skip >> skip >> skip >> m.root >> m.point;
    right >> m.type >> source >> m.options;
    if (m.type == "cgroup" || m.type == "cgroup2") mounts.push_back(m);
  }
  return mounts;
}

// The group's path in one hierarchy: "4:memory:/docker/x", "0::/user.slice".
std::optional<std::string> group_path(
    const std::string& self_cgroup,
    const std::string& controller
) {
  std::istringstream lines(self_cgroup);
  for (std::string line; std::getline(lines, line);) {
    const auto a = line.find(':'), b = line.find(':', a + 1);
    if (a == std::string::npos || b == std::string::npos) continue;
    const std::string list = "," + line.substr(a + 1, b - a - 1) + ",";
    const bool hit = controller.empty()
                         ? list == ",,"
                         : list.find("," + controller + ",") != list.npos;
    if (hit) return line.substr(b + 1);
  }
  return std::nullopt;
}

// Every folder from the group up to the mount point.
std::vector<std::string> folders(const Mount& mount, std::string path) {
  if (mount.root != "/" && path.starts_with(mount.root)) {
    path = path.substr(mount.root.size());
  }
  std::vector<std::string> all;
  while (path.size() > 1) {
    all.push_back(mount.point + path);
    path = path.substr(0, path.rfind('/'));
  }
  all.push_back(mount.point);
  return all;
}

// A byte count; nothing for "max" and for version 1's "no limit", which is
// LONG_MAX rounded down to a page.
std::optional<std::size_t> read_limit(
    const FileReader& read,
    const std::string& path
) {
  const auto text = read(path);
  if (!text) return std::nullopt;
  std::size_t value = 0;
  const auto [stop, error] =
      std::from_chars(text->data(), text->data() + text->size(), value);
  constexpr std::size_t kUnlimited = std::size_t{1} << 60;
  if (error != std::errc{} || value >= kUnlimited) return std::nullopt;
  return value;
}

// File cache that the kernel would drop under pressure does not count as used.
std::size_t reclaimable(const std::string& stat, const std::string& key) {
  std::istringstream lines(stat);
  std::string name;
  for (std::size_t value = 0; lines >> name >> value;) {
    if (name == key) return value;
  }
  return 0;
}

struct MemoryFiles {
  const char *version, *limit, *usage, *inactive;
};
constexpr MemoryFiles kV1{
    "v1", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
    "total_inactive_file"
};
constexpr MemoryFiles kV2{
    "v2", "/memory.max", "/memory.current", "inactive_file"
};

void tighten_memory(
    const FileReader& read,
    const std::string& folder,
    const MemoryFiles& files,
    Memory& memory
) {
  const auto limit = read_limit(read, folder + files.limit);
  if (!limit) return;
  const std::size_t used = read_limit(read, folder + files.usage).value_or(0);
  const std::size_t cache =
      reclaimable(read(folder + "/memory.stat").value_or(""), files.inactive);
  const std::size_t in_use = used - std::min(used, cache);
  const bool first = memory.cgroup_limit == 0;
  const std::size_t left = *limit - std::min(in_use, *limit);
  const std::size_t known = memory.cgroup_limit - memory.cgroup_used;
  if (!first && left >= known) return;
  memory.cgroup = files.version;
  memory.cgroup_limit = *limit;
  memory.cgroup_used = std::min(in_use, *limit);
}

void tighten_quota(double cores, Cpu& cpu) {
  if (cores > 0 && (cpu.quota == 0 || cores < cpu.quota)) cpu.quota = cores;
}

void read_quota_v1(
    const FileReader& read,
    const std::string& folder,
    Cpu& cpu
) {
  const auto quota = read(folder + "/cpu.cfs_quota_us");
  const auto period = read(folder + "/cpu.cfs_period_us");
  if (!quota || !period) return;
  const double q = std::strtod(quota->c_str(), nullptr);
  const double p = std::strtod(period->c_str(), nullptr);
  if (q > 0 && p > 0) tighten_quota(q / p, cpu);
}

void read_quota_v2(
    const FileReader& read,
    const std::string& folder,
    Cpu& cpu
) {
  const auto text = read(folder + "/cpu.max");  // "200000 100000", "max 100000"
  if (!text) return;
  std::istringstream words(*text);
  double quota = 0, period = 0;
  if (words >> quota >> period && quota > 0 && period > 0) {
    tighten_quota(quota / period, cpu);
  }
}

}  // namespace

void read_cgroups(const FileReader& read, Memory& memory, Cpu& cpu) {
  const std::string self = read("/proc/self/cgroup").value_or("");
  const auto mounts = cgroup_mounts(read("/proc/self/mountinfo").value_or(""));
  for (const Mount& mount : mounts) {
    const bool v2 = mount.type == "cgroup2";
    const std::string options = "," + mount.options + ",";
    const auto has = [&](const char* controller) {
      return v2 ||
             options.find("," + std::string(controller) + ",") != options.npos;
    };
    if (has("memory")) {
      const auto path = group_path(self, v2 ? "" : "memory").value_or("/");
      for (const std::string& folder : folders(mount, path)) {
        tighten_memory(read, folder, v2 ? kV2 : kV1, memory);
      }
    }
    if (has("cpu")) {
      const auto path = group_path(self, v2 ? "" : "cpu").value_or("/");
      for (const std::string& folder : folders(mount, path)) {
        v2 ? read_quota_v2(read, folder, cpu)
           : read_quota_v1(read, folder, cpu);
      }
    }
  }
}

}  // namespace hearth::hardware
