#include "hearth/hardware/linux_machine.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "hearth/hardware/capture_test.h"

namespace hearth::hardware {
namespace {

constexpr std::size_t kGiB = std::size_t{1} << 30;

bool has_flag(const Machine& m, const char* flag) {
  return std::count(m.cpu.flags.begin(), m.cpu.flags.end(), flag) == 1;
}

TEST(LinuxMachine, AVirtualZen4) {
  const Machine m = describe_linux(capture_reader("epyc-zen4-vm"), "x86_64", 2);
  EXPECT_EQ(m.cpu.model, "AMD EPYC");
  EXPECT_EQ(m.cpu.vendor, "AuthenticAMD");
  EXPECT_EQ(m.cpu.physical_cores, 2);
  EXPECT_EQ(m.cpu.usable_threads, 2);
  EXPECT_EQ(m.cpu.l1d_bytes, 32u << 10);
  EXPECT_EQ(m.cpu.l2_bytes, 1u << 20);
  EXPECT_EQ(m.cpu.l3_bytes, 32u << 20);
  EXPECT_TRUE(m.virtual_machine);
  EXPECT_TRUE(has_flag(m, "avx512_bf16"));
  EXPECT_FALSE(has_flag(m, "amx_tile"));
  EXPECT_EQ(m.os_version, "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(m.memory.cgroup_limit, 0u);
}

TEST(LinuxMachine, TwoSocketsWithHyperThreads) {
  const Machine m = describe_linux(capture_reader("xeon-spr-2s"), "x86_64", 8);
  EXPECT_EQ(m.cpu.logical_cores, 8);
  EXPECT_EQ(m.cpu.physical_cores, 4);
  EXPECT_EQ(m.cpu.sockets, 2);
  EXPECT_EQ(m.cpu.numa_nodes, 2);
  EXPECT_EQ(m.cpu.usable_threads, 4);
  EXPECT_EQ(m.cpu.l3_bytes, 2 * 107520ul * 1024);
  EXPECT_TRUE(has_flag(m, "amx_bf16"));
  EXPECT_TRUE(m.nvidia_driver);
  EXPECT_FALSE(m.virtual_machine);
  const auto found = warnings(m);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].what.find("huge pages"), std::string::npos);
}

TEST(LinuxMachine, ArmWithoutModelNameOrTopology) {
  const Machine m = describe_linux(capture_reader("graviton3"), "aarch64", 4);
  EXPECT_EQ(m.cpu.architecture, "arm64");
  EXPECT_EQ(m.cpu.model, "Arm Neoverse V1");
  EXPECT_EQ(m.cpu.physical_cores, 4);
  EXPECT_TRUE(has_flag(m, "bf16"));
  EXPECT_EQ(m.memory.huge_pages, "");
}

TEST(LinuxMachine, ALimitOfCgroupVersion1) {
  const Machine m =
      describe_linux(capture_reader("docker-cgroup-v1"), "x86_64", 32);
  EXPECT_EQ(m.memory.cgroup, "v1");
  EXPECT_EQ(m.memory.cgroup_limit, 8 * kGiB);
  EXPECT_EQ(m.memory.cgroup_used, 2 * kGiB);  // 3 less 1 of inactive file cache
  EXPECT_DOUBLE_EQ(m.cpu.quota, 3.5);
  EXPECT_EQ(m.cpu.usable_threads, 4);
  const SafeMemory safe = safe_memory(m);
  EXPECT_EQ(safe.bytes, 6 * kGiB - (256u << 20));
  EXPECT_NE(safe.derivation.find("cgroup v1"), std::string::npos);
}

TEST(LinuxMachine, TheTightestLimitOfNestedVersion2Groups) {
  const Machine m =
      describe_linux(capture_reader("nested-cgroup-v2"), "x86_64", 32);
  EXPECT_EQ(m.memory.cgroup, "v2");
  EXPECT_EQ(m.memory.cgroup_limit, 4 * kGiB);
  EXPECT_EQ(m.memory.cgroup_used, 3 * kGiB / 2);
  EXPECT_DOUBLE_EQ(m.cpu.quota, 8);
  EXPECT_EQ(m.cpu.usable_threads, 8);
  EXPECT_EQ(safe_memory(m).bytes, 5 * kGiB / 2 - (256u << 20));
}

TEST(LinuxMachine, NoLimitIsNoLimit) {
  const Machine m =
      describe_linux(capture_reader("bare-cgroup-v1"), "x86_64", 32);
  EXPECT_EQ(m.memory.cgroup_limit, 0u);
  EXPECT_EQ(m.memory.swap_used, 3ul << 30);
  EXPECT_EQ(m.cpu.usable_threads, 16);
  const auto found = warnings(m);
  ASSERT_FALSE(found.empty());
  EXPECT_NE(found[0].what.find("swap"), std::string::npos);
  EXPECT_NE(safe_memory(m).derivation.find("MemAvailable"), std::string::npos);
}

TEST(LinuxMachine, NothingReadableIsNotACrash) {
  const auto nothing = [](const std::string&) { return std::nullopt; };
  const Machine m = describe_linux(nothing, "riscv64", 0);
  EXPECT_EQ(m.cpu.usable_threads, 1);
  EXPECT_EQ(safe_memory(m).bytes, 0u);
}

TEST(LinuxMachine, CpuLists) {
  EXPECT_EQ(count_cpu_list("0-3,8\n"), 5);
  EXPECT_EQ(count_cpu_list("0"), 1);
  EXPECT_EQ(count_cpu_list(""), 0);
  EXPECT_EQ(count_cpu_list("x"), 1);
}

TEST(LinuxMachine, ThisMachineIsDetected) {
  const Machine m = detect();
  EXPECT_FALSE(m.cpu.model.empty());
  EXPECT_GT(m.memory.total, 0u);
  EXPECT_GT(m.cpu.usable_threads, 0);
  EXPECT_LE(safe_memory(m).bytes, m.memory.total);
}

}  // namespace
}  // namespace hearth::hardware
