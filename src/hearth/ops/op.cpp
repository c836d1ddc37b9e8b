#include "hearth/ops/op.h"

#include <cstdint>
#include <exception>
#include <future>

#include <sys/mman.h>

#include <fmt/format.h>
#include <mlx/allocator.h>

#include "hearth/base/error.h"
#include "hearth/base/memory.h"

namespace hearth::ops {
namespace {

constexpr std::size_t kAlignment = AlignedBuffer::kAlignment;

// Large outputs ask for huge pages: on small ones the processor's prefetch
// stops, and a fault comes, every 4 KiB. A buffer from MLX's cache has asked
// already and asking again costs a microsecond.
void ask_for_huge_pages(
    [[maybe_unused]] void* data,
    [[maybe_unused]] std::size_t bytes
) {
#if defined(MADV_HUGEPAGE)
  if (bytes < AlignedBuffer::kHugeFrom) return;
  constexpr std::uintptr_t kPage = 4096;
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t begin = (address + kPage - 1) / kPage * kPage;
  const std::uintptr_t end = (address + bytes) / kPage * kPage;
  // Advice: where it is refused nothing is lost.
  auto* first = static_cast<std::byte*>(data) + (begin - address);
  madvise(first, end - begin, MADV_HUGEPAGE);
#endif
}

// MLX's buffers start 8 bytes off any alignment. Taking more and starting
// inside keeps the buffer MLX's own; one with a deleter is never donated.
void set_aligned(mx::array& a) {
  const std::size_t bytes = a.nbytes() + kAlignment;
  DryRun* dry = DryRun::current();
  auto data = mx::allocator::malloc(dry == nullptr ? bytes : 1);
  const auto address =
      reinterpret_cast<std::uintptr_t>(data.buffer().raw_ptr());
  if (dry == nullptr) {
    ask_for_huge_pages(data.buffer().raw_ptr(), a.nbytes());
  }
  // A new array claims to be contiguous in both senses at once and this form
  // of set_data believes what it is told, so it is told the truth.
  int wide = 0;
  for (const auto n : a.shape()) wide += n > 1 ? 1 : 0;
  const mx::array::Flags flags{true, true, wide <= 1};
  const auto offset = static_cast<std::int64_t>(
      (kAlignment - address % kAlignment) % kAlignment
  );
  // The offset is in bytes of the buffer for any dtype.
  a.set_data(std::move(data), a.size(), a.strides(), flags, offset);
  if (dry != nullptr) dry->took(a, bytes);
}

}  // namespace

CpuOp::CpuOp(mx::Stream stream) : Primitive(stream) {
  internal::join_memory_ledger();
}

void CpuOp::eval_gpu(const Arrays&, Arrays&) {
  throw Error(
      fmt::format("[ops.{}] the stream must be a CPU stream, got a GPU", name())
  );
}

void CpuOp::check_room(std::size_t bytes) {
  if (DryRun* dry = DryRun::current()) return dry->begin();
  internal::wait_for_room(stream());
  if (bytes > 0) require_memory(bytes);
}

void CpuOp::allocate(Arrays& outputs) {
  std::size_t bytes = 0;
  const auto lacks = [](const mx::array& o) { return !o.data_shared_ptr(); };
  for (const auto& o : outputs) {
    if (lacks(o)) bytes += o.nbytes() + kAlignment;
  }
  check_room(bytes);
  for (auto& o : outputs) {
    if (lacks(o)) set_aligned(o);
  }
}

void CpuOp::allocate(mx::array& output) {
  check_room(output.nbytes() + kAlignment);
  set_aligned(output);
}

bool CpuOp::take_or_allocate(const mx::array& input, mx::array& output) {
  const bool take = input.is_donatable() && input.flags().row_contiguous &&
                    input.nbytes() == output.nbytes();
  if (take) {
    check_room(0);
    output.copy_shared_buffer(input);
  } else {
    allocate(output);
  }
  return take;
}

namespace {

thread_local std::optional<Face> forced_face;

}  // namespace

ScopedFace::ScopedFace(Face face) : before_(forced_face) {
  forced_face = face;
}
ScopedFace::~ScopedFace() {
  forced_face = before_;
}

Face face_of(mx::StreamOrDevice s, mx::Dtype activations) {
  if (!on_cpu(s)) return Face::gpu;
  if (forced_face) return *forced_face;
  return activations == mx::float16 ? Face::reference : Face::kernels;
}

bool on_cpu(mx::StreamOrDevice s) {
  return forced_face != Face::gpu && mx::to_stream(s).device == mx::Device::cpu;
}

bool ours(mx::StreamOrDevice s, mx::Dtype activations) {
  return face_of(s, activations) == Face::kernels;
}

mx::array dense(const mx::array& a, mx::StreamOrDevice s) {
  return mx::contiguous(a, false, s);
}

mx::array wide(const mx::array& a, mx::StreamOrDevice s) {
  return a.dtype() == mx::float64 ? a : mx::astype(a, mx::float32, s);
}

void run_on_stream(
    const char* zone,
    mx::Stream stream,
    FunctionRef<void(const Execution&)> f
) {
  const Execution run = current_execution();
  internal::note_name(zone);
  std::promise<void> done;
  mx::cpu::get_command_encoder(stream).dispatch([&] {
    try {
      const profile::Zone timed(zone);
      f(run);
    } catch (...) {
      return done.set_exception(std::current_exception());
    }
    done.set_value();
  });
  done.get_future().get();
}

Arrays pick(const Arrays& by_input, const std::vector<int>& argnums) {
  Arrays out;
  out.reserve(argnums.size());
  for (const int i : argnums) {
    out.push_back(by_input.at(static_cast<std::size_t>(i)));
  }
  return out;
}

bool past_caches(const mx::array& result) {
  // From here on a result stored past the caches, and then read again, is the
  // faster; at half of it the two are level (docs/log/kernels.md,
  // "Element-wise").
  constexpr std::size_t kLeast = std::size_t{32} << 20;
  return result.nbytes() >= kLeast;
}

long rows_of(const mx::array& a) {
  const auto last = static_cast<std::size_t>(a.shape(-1));
  return last == 0 ? 0 : static_cast<long>(a.size() / last);
}

void refuse_dtype(const char* where, mx::Dtype dtype) {
  std::ostringstream name;
  name << dtype;
  throw UsageError(
      fmt::format(
          "[{}] dtype must be float32 or bfloat16, got {}", where, name.str()
      )
  );
}

}  // namespace hearth::ops
