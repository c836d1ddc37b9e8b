#include "hearth/ops/leaf.h"

#include <cstring>
#include <memory>

#include <mlx/allocator.h>

#include "hearth/base/aligned_buffer.h"
#include "hearth/ops/execution.h"

namespace hearth::ops {

// MLX's CPU allocator keeps a buffer's size in the 8 bytes before its data and
// Buffer::raw_ptr() skips those 8, so the buffer handed over starts 8 bytes
// before an aligned address.
mx::array make_leaf(mx::Shape shape, mx::Dtype dtype, MemoryZone zone) {
  internal::join_memory_ledger();
  if (mx::is_available(mx::Device::gpu)) {
    auto a = mx::zeros(shape, dtype);
    a.eval();
    return a;
  }
  std::size_t bytes = mx::size_of(dtype);
  for (const auto n : shape) bytes *= static_cast<std::size_t>(n);
  constexpr std::size_t kHead = AlignedBuffer::kAlignment;
  auto memory = std::make_shared<AlignedBuffer>(zone, bytes + kHead);
  std::byte* size_field = memory->data() + kHead - sizeof(std::size_t);
  std::memcpy(size_field, &bytes, sizeof bytes);
  return mx::array(
      mx::allocator::Data(
          mx::allocator::Buffer(size_field),
          [memory](mx::allocator::Buffer) mutable { memory.reset(); }
      ),
      std::move(shape), dtype
  );
}

}  // namespace hearth::ops
