#pragma once
// The base of every primitive that runs our kernels on a CPU stream, and the
// helpers its free function is written with. It knows how memory is taken and
// how work is launched; what is computed is the derived class's alone.
//
// The shape of an op (the folder norm is the example):
//   * the free function in op.cpp checks shapes and dtypes, throws UsageError,
//     and calls the form of its face; on a CPU that is cpu.cpp's, which makes
//     the primitive over dense inputs;
//   * eval_cpu calls allocate(outputs), which may refuse, then launch(work);
//   * vjp makes ONE gradient primitive with all its outputs. As several, MLX
//     would run the whole chain of input gradients first and keep every
//     activation alive until the weights' gradients come.
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <mlx/backend/cpu/encoder.h>
#include <mlx/mlx.h>
#include <mlx/primitives.h>

#include "hearth/ops/dry_run.h"
#include "hearth/ops/execution.h"
#include "hearth/profile/zone.h"

namespace hearth::ops {

using Arrays = std::vector<mx::array>;

class CpuOp : public mx::Primitive {
 public:
  explicit CpuOp(mx::Stream stream);
  void eval_gpu(const Arrays& inputs, Arrays& outputs) override;

 protected:
  // Memory for outputs, all or none: 64-byte aligned, owned by MLX and so
  // cached and donatable. An output that has memory already keeps it. Waits for
  // the run-ahead limit. Throws OutOfMemory when the budget refuses; nothing is
  // allocated then.
  void allocate(Arrays& outputs);
  void allocate(mx::array& output);
  // Gives output the buffer of input where nothing else needs it, else
  // allocates. Returns whether it was taken; if not, output is not filled.
  bool take_or_allocate(const mx::array& input, mx::array& output);

  // Sends work(run) to the stream's thread, timed under name(). It must be
  // noexcept: an error there cannot be reported. The kernel table and the pool
  // are chosen now, by the thread that evaluates. MLX keeps the inputs and
  // outputs of this op alive until it is done; anything else must be held by
  // the work itself.
  template <class Work>
  void launch(Work work) {
    static_assert(
        std::is_nothrow_invocable_v<Work&, const Execution&>,
        "launched work takes (const Execution&) and is noexcept"
    );
    if (DryRun* dry = DryRun::current()) {
      return dry->sent(stream(), true);
    }
    const Execution run = current_execution();
    const char* zone_name = name();
    auto& encoder = mx::cpu::get_command_encoder(stream());
    internal::note_launch(stream().index, zone_name);
    encoder.dispatch([work = std::move(work), run, zone_name]() mutable {
      const profile::Zone zone(zone_name);
      work(run);
    });
  }

 private:
  void check_room(std::size_t bytes);
};

// Defines name(). The name is what op cases list and zones show.
#define HEARTH_OP_NAME(Class)         \
  const char* name() const override { \
    return #Class;                    \
  }

// The three forms an op has: our kernels; what a GPU runs, MLX's ops and GPU
// kernels of ours, in the activations' type; the definition in plain MLX ops.
enum class Face : unsigned char { kernels, gpu, reference };

// The form of an op on activations of that dtype. Float16, which our kernels
// lack, is the definition's on a CPU, and slow there.
Face face_of(mx::StreamOrDevice s, mx::Dtype activations);

// While one lives, graphs that this thread builds have this face whatever their
// stream: how a CPU holds the GPU's face against the definition.
class ScopedFace {
 public:
  explicit ScopedFace(Face face);
  ~ScopedFace();
  ScopedFace(const ScopedFace&) = delete;
  ScopedFace& operator=(const ScopedFace&) = delete;

 private:
  std::optional<Face> before_;
};

// Whether graphs on this stream or device are for a CPU (the face of a
// ScopedFace counts).
bool on_cpu(mx::StreamOrDevice s);
// Whether such an op is our kernels'.
bool ours(mx::StreamOrDevice s, mx::Dtype activations);

// Row-major: the array itself, or a copy when it is strided or broadcast, as
// cotangents can be.
mx::array dense(const mx::array& a, mx::StreamOrDevice s);

// For references, which compute in at least float32: a itself when it is
// float64, else a as float32.
mx::array wide(const mx::array& a, mx::StreamOrDevice s);

// Runs f on the stream's thread after all that was sent there, so that it has
// the pool to itself, and waits. Exceptions come back to the caller. This is
// how optimisers update leaves in place.
void run_on_stream(
    const char* zone,
    mx::Stream stream,
    FunctionRef<void(const Execution&)> f
);

// The gradients vjp must return, one for each of argnums in that order, out of
// all the op's gradients by input.
Arrays pick(const Arrays& by_input, const std::vector<int>& argnums);

// Whether a result is so large that nothing of it would be found in the caches
// by whoever reads it. Kernels may then store past them.
bool past_caches(const mx::array& result);

// Product of all dimensions but the last.
long rows_of(const mx::array& a);

// Calls f with a null pointer of the kernels' type for dtype (float or Bf16).
// Throws UsageError "[where] dtype must be ..." for any other.
template <class F>
decltype(auto) with_dtype(const char* where, mx::Dtype dtype, F&& f);

[[noreturn]] void refuse_dtype(const char* where, mx::Dtype dtype);

template <class F>
decltype(auto) with_dtype(const char* where, mx::Dtype dtype, F&& f) {
  if (dtype == mx::float32) return f(static_cast<float*>(nullptr));
  if (dtype == mx::bfloat16) return f(static_cast<kernels::Bf16*>(nullptr));
  refuse_dtype(where, dtype);
}

}  // namespace hearth::ops
