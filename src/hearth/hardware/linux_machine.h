#pragma once
// Linux described by its own text files. Everything is a function of a reader,
// so that captures of other machines can stand in for this one.
#include <functional>
#include <optional>
#include <string>

#include "hearth/hardware/machine.h"

namespace hearth::hardware {

// The whole text of a file, or nothing when it cannot be read.
using FileReader =
    std::function<std::optional<std::string>(const std::string& path)>;

Machine describe_linux(
    const FileReader& read,
    const std::string& architecture,
    int affinity_cores
);

// Parts of it, for their own tests.
void read_cpuinfo(const std::string& text, Cpu& cpu);
void read_meminfo(const std::string& text, Memory& memory);
std::string read_os_release(const std::string& text);
// The tightest memory and CPU limits of this process's cgroup and those above
// it, version 1 or 2.
void read_cgroups(const FileReader& read, Memory& memory, Cpu& cpu);
// "0-3,8" is 5.
int count_cpu_list(const std::string& text);

}  // namespace hearth::hardware
