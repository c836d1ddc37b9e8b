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
    .peak = &peak,
    .gemm = &gemm,
    .head_loss = &head_loss,
    .math = &math,
    .attention = &attention,
    .norm = &norm,
    .gate = &gate,
    .rope = &rope,
    .embedding = &embedding,
    .arithmetic = &arithmetic,
    .optim = &optim,
    .adafactor = &adafactor,
    .quant_rows = &quant_rows,
    .quant_matmul = &quant_matmul,
    .paged_attention = &paged_attention,
};

}  // namespace hearth::kernels::HEARTH_ISA
