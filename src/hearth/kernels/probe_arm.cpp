#include "hearth/kernels/probe.h"

namespace hearth::kernels::probe {

bool generic() noexcept {
  return true;
}
bool neon() noexcept {
  return true;
}  // part of the architecture
bool avx2() noexcept {
  return false;
}
bool avx512f() noexcept {
  return false;
}
bool avx512() noexcept {
  return false;
}
bool amx() noexcept {
  return false;
}
bool tiles_described() noexcept {
  return false;
}

}  // namespace hearth::kernels::probe
