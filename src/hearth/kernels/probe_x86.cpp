// What an x86-64 processor can run.
#include <sys/syscall.h>
#include <unistd.h>

#include "hearth/kernels/probe.h"

namespace hearth::kernels::probe {

bool generic() noexcept {
  return true;
}
bool neon() noexcept {
  return false;
}

bool avx2() noexcept {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2");
}

bool avx512f() noexcept {
  return avx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

bool avx512() noexcept {
  return avx512f() && __builtin_cpu_supports("avx512bf16") &&
         __builtin_cpu_supports("avx512vnni");
}

namespace {

struct Cpuid {
  unsigned eax, ebx = 0, ecx = 0, edx = 0;
  explicit Cpuid(unsigned leaf) noexcept : eax(leaf) {
    asm volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
  }
};

bool cpuid_has_amx() noexcept {
  const unsigned edx = Cpuid(7).edx;
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25;
  constexpr unsigned kAll = kBf16 | kTile | kInt8;
  return (edx & kAll) == kAll;
}

// Linux hands out the tile state on request, for the whole process; it must
// happen before threads start.
bool request_tile_state() noexcept {
#ifdef __linux__
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace

bool amx() noexcept {
  static const bool works = avx512() && cpuid_has_amx() && request_tile_state();
  return works;
}

bool tiles_described() noexcept {
  constexpr unsigned kTileLeaf = 0x1D;
  return Cpuid(0).eax >= kTileLeaf;
}

}  // namespace hearth::kernels::probe
