#include "hearth/ops/hand_over.h"

#include <functional>

#include <dlfcn.h>
#include <mlx/scheduler.h>

namespace hearth::ops {
namespace {

namespace mx = mlx::core;

struct Encoder;

// CommandEncoder's, as C++ names them where MLX is built.
struct CudaCalls {
  Encoder* (*encoder)(mx::Stream) = nullptr;
  void (*when_done)(Encoder*, std::function<void()>) = nullptr;
  void (*commit)(Encoder*) = nullptr;

  CudaCalls() {
    find(encoder, "_ZN3mlx4core2cu19get_command_encoderENS0_6StreamE");
    find(
        when_done,
        "_ZN3mlx4core2cu14CommandEncoder21add_completed_handlerESt8functionIFvv"
        "EE"
    );
    find(commit, "_ZN3mlx4core2cu14CommandEncoder6commitEv");
  }
  bool whole() const { return encoder && when_done && commit; }

 private:
  template <class F>
  static void find(F*& f, const char* name) {
    f = reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
  }
};

}  // namespace

void hand_over(mx::Stream s) {
  static const CudaCalls calls;
  if (!calls.whole()) return;
  Encoder* encoder = calls.encoder(s);
  // Counted as MLX counts what it hands over itself.
  mx::scheduler::notify_new_task(s);
  calls.when_done(encoder, [s] { mx::scheduler::notify_task_completion(s); });
  calls.commit(encoder);
}

}  // namespace hearth::ops
