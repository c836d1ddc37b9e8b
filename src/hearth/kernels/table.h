#pragma once
// One table of kernels per instruction set. A caller fetches best() once per
// evaluation and calls through it; it never asks which ISA it has.
//
// A kernel takes pointers, sizes and strides; it allocates nothing, throws
// nothing, knows neither MLX nor threads. Scratch and a share of the work are
// handed to it from above.
#include <span>
#include <string_view>

#include "hearth/kernels/adafactor.h"
#include "hearth/kernels/arithmetic.h"
#include "hearth/kernels/attention.h"
#include "hearth/kernels/embedding.h"
#include "hearth/kernels/gate.h"
#include "hearth/kernels/gemm.h"
#include "hearth/kernels/head_loss.h"
#include "hearth/kernels/math.h"
#include "hearth/kernels/norm.h"
#include "hearth/kernels/optim.h"
#include "hearth/kernels/paged_attention.h"
#include "hearth/kernels/peak.h"
#include "hearth/kernels/quant/matmul.h"
#include "hearth/kernels/quant/rows.h"
#include "hearth/kernels/rope.h"

namespace hearth::kernels {

// The groups of kernels that a table has: type and name. Each *_isa.cpp defines
// one group under its name; the rest comes from this list: a table's members,
// their declarations (isa.h) and their addresses (table_isa.cpp).
#define HEARTH_KERNEL_GROUPS(X)       \
  X(PeakKernels, peak)                \
  X(GemmKernels, gemm)                \
  X(HeadLossKernels, head_loss)       \
  X(MathKernels, math)                \
  X(AttentionKernels, attention)      \
  X(NormKernels, norm)                \
  X(GateKernels, gate)                \
  X(RopeKernels, rope)                \
  X(EmbeddingKernels, embedding)      \
  X(ArithmeticKernels, arithmetic)    \
  X(OptimKernels, optim)              \
  X(AdafactorKernels, adafactor)      \
  X(QuantRowKernels, quant_rows)      \
  X(QuantMatmulKernels, quant_matmul) \
  X(PagedAttentionKernels, paged_attention)

struct Table {
  const char* isa;
  // Whether this processor runs the table's instructions, found by asking it
  // (AMX: by doing it).
  bool (*supported)() noexcept;
#define HEARTH_MEMBER(Type, name) const Type* name;
  HEARTH_KERNEL_GROUPS(HEARTH_MEMBER)
#undef HEARTH_MEMBER
};

// Every table built in, plainest first.
std::span<const Table* const> tables() noexcept;
// The tables this machine runs, plainest first; never empty.
std::span<const Table* const> usable_tables() noexcept;
// The last usable one, or the one HEARTH_ISA names. Chosen at first use; throws
// UsageError when the name is unknown or cannot run here.
const Table& best();
// The usable table of that name; throws UsageError that lists the known.
const Table& table_named(std::string_view isa);

}  // namespace hearth::kernels
