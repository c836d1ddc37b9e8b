#pragma once
// What a *_isa.cpp file opens with. CMake compiles each such file once per
// instruction set and defines HEARTH_ISA as its name; the file puts what it
// offers into hearth::kernels::HEARTH_ISA and all else into an anonymous
// namespace inside it, so that no two copies of a function can be mixed up.
// Standard-library templates stay out of these files for the same reason.
#include "hearth/kernels/table.h"

#ifndef HEARTH_ISA
#define HEARTH_ISA generic  // for editors and checks that compile one file
#endif

#define HEARTH_STRINGIFY_IMPL(x) #x
#define HEARTH_STRINGIFY(x) HEARTH_STRINGIFY_IMPL(x)

// Whether this translation unit is of that table: HEARTH_ISA_IS(neon), for use
// in #if. An unlisted table's name is an undefined macro, which counts as 0.
#define HEARTH_ISA_IS_generic_generic 1
#define HEARTH_ISA_IS_amx_amx 1
#define HEARTH_ISA_IS_neon_neon 1
#define HEARTH_ISA_IS_IMPL2(isa, name) HEARTH_ISA_IS_##isa##_##name
#define HEARTH_ISA_IS_IMPL(isa, name) HEARTH_ISA_IS_IMPL2(isa, name)
#define HEARTH_ISA_IS(name) HEARTH_ISA_IS_IMPL(HEARTH_ISA, name)

namespace hearth::kernels::HEARTH_ISA {
#define HEARTH_DECLARE(Type, name) extern const Type name;
HEARTH_KERNEL_GROUPS(HEARTH_DECLARE)
#undef HEARTH_DECLARE
extern const Table table;
}  // namespace hearth::kernels::HEARTH_ISA
