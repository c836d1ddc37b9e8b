#pragma once
// Whether this processor and this kernel run the instructions of each table.
// AMX is probed by doing it: permission is asked for, a tile product is run,
// and its result is looked at.
namespace hearth::kernels::probe {

bool generic() noexcept;
bool avx2() noexcept;
bool avx512f() noexcept;
bool avx512() noexcept;
bool amx() noexcept;
bool neon() noexcept;

// Whether CPUID says how large tiles are. Some virtual machines run AMX and
// hide that, and libraries that rely on CPUID crash there.
bool tiles_described() noexcept;

}  // namespace hearth::kernels::probe
