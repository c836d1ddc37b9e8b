#pragma once
// A weight in the orders the products read it in: forward, and for the input
// gradient unless it is made without. It is refreshed once per optimiser step,
// or filled once for inference, by whoever has the weight, rows at a time; ops
// only read it. It knows neither MLX nor threads.
#include <memory>
#include <span>

#include "hearth/base/aligned_buffer.h"
#include "hearth/kernels/gemm.h"
#include "hearth/kernels/table.h"

namespace hearth::ops {

// Inference reads the forward order alone, so it need not hold the other.
enum class PackedOrders : unsigned char { both, forward };

class PackedWeight {
 public:
  // For a weight [n, k] multiplied as bf16 or f32 by that table's kernels.
  // Throws OutOfMemory.
  PackedWeight(
      long n,
      long k,
      kernels::GemmScalar operand,
      MemoryZone zone,
      PackedOrders orders = PackedOrders::both,
      const kernels::Table& table = kernels::best()
  );

  // Over a forward order that is packed already, in memory that owner holds
  // and nobody writes to. Throws UsageError when it is not as long as that
  // table's kernels want it.
  PackedWeight(
      long n,
      long k,
      kernels::GemmScalar operand,
      std::span<const std::byte> forward,
      std::shared_ptr<const void> owner,
      const kernels::Table& table = kernels::best()
  );

  // One that has its sizes and no numbers: for graphs that are never computed
  // (dry_run.h).
  static std::shared_ptr<PackedWeight> described(
      long n,
      long k,
      kernels::GemmScalar operand,
      PackedOrders orders,
      const kernels::Table& table
  );

  // Packs rows of the weight anew from the whole of it, row-major, fp32 or of
  // the operand's type. Ranges begin at multiples of kRowGrain and end at one
  // or at n; different ranges may be packed by different threads.
  // Not for one over lent memory.
  static constexpr long kRowGrain = 32;
  void refresh(
      const void* weight,
      kernels::GemmScalar type,
      kernels::GemmRange rows
  ) noexcept;

  // The same from memory that holds nothing but those rows, as a loader has
  // them when it reads a large weight piece by piece.
  void refresh_rows(
      const void* rows_alone,
      kernels::GemmScalar type,
      kernels::GemmRange rows
  ) noexcept;

  long n() const noexcept { return n_; }
  long k() const noexcept { return k_; }
  const kernels::GemmFamily& family() const noexcept { return family_; }
  const std::byte* forward() const noexcept {
    return owner_ ? lent_.data() : forward_.data();
  }
  std::size_t forward_bytes() const noexcept {
    return owner_ ? lent_.size() : forward_.size();
  }
  // Null when made without.
  const std::byte* backward() const noexcept {
    return owner_ ? lent_backward_.data() : backward_.data();
  }
  std::size_t bytes() const noexcept {
    return forward_.size() + backward_.size() + lent_.size() +
           lent_backward_.size();
  }

 private:
  long n_, k_;
  const kernels::GemmFamily& family_;
  AlignedBuffer forward_, backward_;
  // In place of forward_ and backward_.
  std::span<const std::byte> lent_, lent_backward_;
  std::shared_ptr<const void> owner_;
};

}  // namespace hearth::ops
