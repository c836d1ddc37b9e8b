#include "hearth/ops/leaf.h"

#include <cstring>
#include <memory>

#include <mlx/allocator.h>

#include "hearth/base/error.h"
#include "hearth/ops/execution.h"

namespace hearth::ops {
namespace {

std::size_t bytes_of(const mx::Shape& shape, mx::Dtype dtype) {
  std::size_t bytes = mx::size_of(dtype);
  for (const auto n : shape) bytes *= static_cast<std::size_t>(n);
  return bytes;
}

// In memory that the host and the GPU both see from the start: what an op made
// is moved there by the first data() on the host, and threads that fill an
// array together would all move it.
mx::array shared_leaf(mx::Shape shape, mx::Dtype dtype) {
  const std::size_t bytes = bytes_of(shape, dtype);
  auto& memory = mx::allocator::allocator();
  mx::allocator::Buffer buffer = memory.malloc(bytes);
  if (bytes > 0) std::memset(buffer.raw_ptr(), 0, bytes);
  return mx::array(
      mx::allocator::Data(
          buffer, [&memory](mx::allocator::Buffer b) { memory.free(b); }
      ),
      std::move(shape), dtype
  );
}

}  // namespace

// MLX's CPU allocator keeps a buffer's size in the 8 bytes before its data and
// Buffer::raw_ptr() skips those 8, so the buffer handed over starts 8 bytes
// before an aligned address.
mx::array make_leaf(
    mx::Shape shape,
    mx::Dtype dtype,
    MemoryZone zone,
    AlignedBuffer::Kept kept
) {
  internal::join_memory_ledger();
  if (mx::is_available(mx::Device::gpu)) {
    return shared_leaf(std::move(shape), dtype);
  }
  const std::size_t bytes = bytes_of(shape, dtype);
  constexpr std::size_t kHead = AlignedBuffer::kAlignment;
  auto memory = std::make_shared<AlignedBuffer>(zone, bytes + kHead, kept);
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

mx::array leaf_over(
    const std::byte* data,
    mx::Shape shape,
    mx::Dtype dtype,
    std::shared_ptr<const void> owner
) {
  internal::join_memory_ledger();
  std::size_t length = 0;
  // MLX's pointers are not const; nothing writes to a leaf but who made it.
  std::byte* size_field = const_cast<std::byte*>(data) - sizeof(std::size_t);
  std::memcpy(&length, size_field, sizeof length);
  if (length != bytes_of(shape, dtype)) {
    throw UsageError(
        "[ops.leaf_over] the memory must have its length before it"
    );
  }
  return mx::array(
      mx::allocator::Data(
          mx::allocator::Buffer(size_field),
          [owner](mx::allocator::Buffer) mutable { owner.reset(); }
      ),
      std::move(shape), dtype
  );
}

}  // namespace hearth::ops
