// Products with quantised weights, for one instruction set.
#include "hearth/kernels/isa.h"
#include "hearth/kernels/quant/exact_impl.h"
#include "hearth/kernels/quant/half_impl.h"
#include "hearth/kernels/quant/matmul.h"
#include "hearth/kernels/quant/matmul_impl.h"
#include "hearth/kernels/quant/panel_impl.h"
#include "hearth/kernels/quant/widen_impl.h"
#if defined(__AMX_INT8__)
#include "hearth/kernels/quant/amx_impl.h"
#endif

namespace hearth::kernels::HEARTH_ISA {

const QuantMatmulKernels quant_matmul{
    .round_activations = round_activations,
#if defined(__AMX_INT8__)
    .int8 = amx_product,
#else
    .int8 = int8_product,
#endif
    .exact = exact_product,
    .input_gradient = exact_gradient,
    .widen = widen_panels,
};

}  // namespace hearth::kernels::HEARTH_ISA
