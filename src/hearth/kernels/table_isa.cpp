// The table of one instruction set.
#include "hearth/kernels/isa.h"
#include "hearth/kernels/probe.h"
#if defined(__AMX_TILE__)
#include "hearth/kernels/amx/tiles_impl.h"
#endif

namespace hearth::kernels::HEARTH_ISA {
namespace {

bool supported() noexcept {
#if defined(__AMX_TILE__)
  return probe::HEARTH_ISA() && tiles::product_is_right();
#else
  return probe::HEARTH_ISA();
#endif
}

}  // namespace

const Table table{
    .isa = HEARTH_STRINGIFY(HEARTH_ISA),
    .supported = supported,
// NOLINTNEXTLINE(bugprone-macro-parentheses): it is a member's name.
#define HEARTH_ADDRESS(Type, name) .name = &name,
    HEARTH_KERNEL_GROUPS(HEARTH_ADDRESS)
#undef HEARTH_ADDRESS
};

}  // namespace hearth::kernels::HEARTH_ISA
