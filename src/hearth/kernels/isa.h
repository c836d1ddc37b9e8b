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

namespace hearth::kernels::HEARTH_ISA {
extern const PeakKernels peak;
extern const QuantRowKernels quant_rows;
extern const QuantMatmulKernels quant_matmul;
extern const Table table;
}  // namespace hearth::kernels::HEARTH_ISA
