#include "hearth/ops/linear/packed_weight.h"

#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/ops/gemm.h"

namespace hearth::ops {

PackedWeight::PackedWeight(
    long n,
    long k,
    kernels::GemmScalar operand,
    MemoryZone zone,
    PackedOrders orders,
    const kernels::Table& table
)
    : n_(n),
      k_(k),
      family_(gemm_family(table, operand)),
      forward_(
          zone,
          family_.packed_bytes(n, k),
          orders == PackedOrders::both ? AlignedBuffer::Kept::any_time
                                       : AlignedBuffer::Kept::long_time
      ),
      backward_(
          orders == PackedOrders::both
              ? AlignedBuffer(zone, family_.packed_bytes(k, n))
              : AlignedBuffer()
      ) {}

PackedWeight::PackedWeight(
    long n,
    long k,
    kernels::GemmScalar operand,
    std::span<const std::byte> forward,
    std::shared_ptr<const void> owner,
    const kernels::Table& table
)
    : n_(n),
      k_(k),
      family_(gemm_family(table, operand)),
      lent_(forward),
      owner_(std::move(owner)) {
  if (forward.size() == family_.packed_bytes(n, k)) return;
  throw UsageError(
      fmt::format(
          "[ops.PackedWeight] a packed {} x {} must be {} bytes, got {}", n, k,
          family_.packed_bytes(n, k), forward.size()
      )
  );
}

std::shared_ptr<PackedWeight> PackedWeight::described(
    long n,
    long k,
    kernels::GemmScalar operand,
    PackedOrders orders,
    const kernels::Table& table
) {
  static constexpr std::byte kPlace{};
  const auto nobody = std::shared_ptr<const void>(&kPlace, [](auto*) {});
  const auto& family = gemm_family(table, operand);
  auto w = std::make_shared<PackedWeight>(
      n, k, operand, std::span(&kPlace, family.packed_bytes(n, k)), nobody,
      table
  );
  if (orders == PackedOrders::both) {
    w->lent_backward_ = {&kPlace, family.packed_bytes(k, n)};
  }
  return w;
}

void PackedWeight::refresh(
    const void* weight,
    kernels::GemmScalar type,
    kernels::GemmRange rows
) noexcept {
  kernels::GemmPack pack{
      .source = weight,
      .type = type,
      .stride = k_,
      .by_column = true,
      .n = n_,
      .k = k_,
      .packed = forward_.data()
  };
  family_.pack(pack, rows, {0, k_});
  if (!backward_.data()) return;
  pack.by_column = false;
  pack.n = k_;
  pack.k = n_;
  pack.packed = backward_.data();
  family_.pack(pack, {0, k_}, rows);
}

void PackedWeight::refresh_rows(
    const void* rows_alone,
    kernels::GemmScalar type,
    kernels::GemmRange rows
) noexcept {
  // Where row 0 would be; packing reads none but the rows asked for.
  const long element = type == kernels::GemmScalar::bf16 ? 2 : 4;
  const auto first = reinterpret_cast<std::uintptr_t>(rows_alone) -
                     static_cast<std::uintptr_t>(rows.begin * k_ * element);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it may lie outside the memory.
  refresh(reinterpret_cast<const void*>(first), type, rows);
}

}  // namespace hearth::ops
