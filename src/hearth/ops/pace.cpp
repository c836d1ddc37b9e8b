#include "hearth/ops/pace.h"

#include <atomic>
#include <limits>
#include <thread>

#include <mlx/memory.h>
#include <mlx/scheduler.h>

#include "hearth/ops/hand_over.h"

namespace hearth::ops {
namespace {

std::atomic<std::size_t> most{std::numeric_limits<std::size_t>::max()};

class Pace : public mx::Primitive {
 public:
  using Primitive::Primitive;
  const char* name() const override { return "Pace"; }
  void eval_cpu(const Arrays& in, Arrays& out) override {
    out[0].copy_shared_buffer(in[0]);
  }
  void eval_gpu(const Arrays& in, Arrays& out) override {
    out[0].copy_shared_buffer(in[0]);
    if (mx::get_active_memory() > most.load()) hand_over(stream());
    while (mx::get_active_memory() > most.load() &&
           mx::scheduler::n_active_tasks() > 0) {
      // It returns at once while there is but one.
      mx::scheduler::wait_for_one();
      std::this_thread::yield();
    }
  }
  Arrays vjp(
      const Arrays&,
      const Arrays& ct,
      const std::vector<int>&,
      const Arrays&
  ) override {
    return {pace(ct[0], stream())};
  }
};

}  // namespace

void set_bytes_under_way(std::size_t bytes) {
  most = bytes;
}

mx::array pace(const mx::array& x, mx::StreamOrDevice s) {
  if (face_of(s, x.dtype()) != Face::gpu) return x;
  const auto stream = mx::to_stream(s);
  return mx::array(x.shape(), x.dtype(), std::make_shared<Pace>(stream), {x});
}

}  // namespace hearth::ops
