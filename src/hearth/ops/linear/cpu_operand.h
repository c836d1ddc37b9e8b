#pragma once
// The weight of a linear layer as one product reads it.
#include <memory>

#include "hearth/ops/gemm.h"
#include "hearth/ops/linear/packed_weight.h"
#include "hearth/ops/op.h"

namespace hearth::ops {

using Packed = std::shared_ptr<const PackedWeight>;

inline kernels::GemmScalar gemm_scalar(mx::Dtype t) {
  return t == mx::bfloat16 ? kernels::GemmScalar::bf16
                           : kernels::GemmScalar::f32;
}

// The companion's copy, or a place in scratch that is filled when the work
// runs. `forward` is the order for y, else it is that for dx.
class LinearOperand {
 public:
  LinearOperand(
      const kernels::GemmFamily& family,
      const mx::array& w,
      const Packed& packed,
      bool forward
  )
      : family_(&family) {
    const long n = w.shape(0), k = w.shape(1);
    if (packed && &packed->family() == &family) {
      ready_ = forward ? packed->forward() : packed->backward();
    }
    pack_ = {
        .source = w.data<void>(),
        .type = gemm_scalar(w.dtype()),
        .stride = k,
        .by_column = forward,
        .n = forward ? n : k,
        .k = forward ? k : n
    };
  }
  // A weight that is packed and no more.
  LinearOperand(const PackedWeight& packed, bool forward)
      : family_(&packed.family()),
        ready_(forward ? packed.forward() : packed.backward()) {}

  // Of scratch, a multiple of 64.
  std::size_t bytes() const {
    if (ready_) return 0;
    return (family_->packed_bytes(pack_.n, pack_.k) + 63) / 64 * 64;
  }
  const void* fill(ThreadPool& pool, std::byte* place) const {
    if (ready_) return ready_;
    kernels::GemmPack to = pack_;
    to.packed = place;
    pack_gemm(pool, *family_, to);
    return place;
  }

 private:
  const kernels::GemmFamily* family_;
  const std::byte* ready_ = nullptr;
  kernels::GemmPack pack_;
};

}  // namespace hearth::ops
