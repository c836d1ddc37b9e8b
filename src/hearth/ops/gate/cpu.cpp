// Our kernels behind activations and gates.
#include "hearth/ops/gate/faces_impl.h"
#include "hearth/ops/row_sums.h"

namespace hearth::ops {
namespace {

template <class T>
kernels::GateArgs<T> arguments(const GateConfig& c, const Arrays& in) {
  kernels::GateArgs<T> a{};
  const long width = in[0].shape(-1);
  a.dim = c.layout == GateLayout::halves ? width / 2 : width;
  a.gate = in[0].data<T>(), a.gate_stride = width;
  if (c.layout == GateLayout::halves) {
    a.value = a.gate + a.dim, a.value_stride = width;
  } else if (c.layout == GateLayout::apart) {
    a.value = in[1].data<T>(), a.value_stride = width;
  }
  a.beta = c.form.beta, a.tanh_value = c.form.tanh_value;
  if (c.has_alpha) a.alpha = in[2].data<float>();
  return a;
}

// The forward op's inputs, dy -> their gradients.
class GateGrad : public CpuOp {
 public:
  GateGrad(mx::Stream s, GateConfig c) : CpuOp(s), c_(c) {}
  HEARTH_OP_NAME(GateGrad)
  void eval_cpu(const Arrays& in, Arrays& out) override {
    with_dtype("ops.GateGrad", in[0].dtype(), [&](auto* t) {
      run<std::remove_pointer_t<decltype(t)>>(in, out);
    });
  }

 private:
  GateConfig c_;

  template <class T>
  void run(const Arrays& in, Arrays& out) {
    const long rows = rows_of(in[0]);
    const RowSums partial(stream(), rows, 1);
    allocate(out);
    kernels::GateGradArgs<T> g{};
    g.forward = arguments<T>(c_, in);
    g.forward.past_caches = past_caches(out[0]);
    const long dim = g.forward.dim, width = in[0].shape(-1);
    g.dy = in.back().data<T>(), g.dy_stride = dim;
    g.dgate = out[0].data<T>(), g.dgate_stride = width;
    if (c_.layout == GateLayout::halves) g.dvalue = g.dgate + dim;
    if (c_.layout == GateLayout::apart) g.dvalue = out[1].data<T>();
    g.dvalue_stride = width;
    float* dalpha = c_.has_alpha ? out[2].data<float>() : nullptr;
    launch([=, act = c_.form.act](const Execution& e) noexcept {
      const auto& f = e.kernels.gate->of(act, static_cast<T*>(nullptr));
      partial.for_blocks(e.pool, [&](long begin, long end, float* sum) {
        f.backward(g, begin, end, dalpha != nullptr ? sum : nullptr);
      });
      if (dalpha != nullptr) partial.total(0, 1, dalpha);
    });
  }
};

class Gate : public CpuOp {
 public:
  Gate(mx::Stream s, GateConfig c) : CpuOp(s), c_(c) {}
  HEARTH_OP_NAME(Gate)
  void eval_cpu(const Arrays& in, Arrays& out) override {
    with_dtype("ops.Gate", in[0].dtype(), [&](auto* t) {
      run<std::remove_pointer_t<decltype(t)>>(in, out);
    });
  }

  Arrays vjp(
      const Arrays& p,
      const Arrays& ct,
      const std::vector<int>& argnums,
      const Arrays&
  ) override {
    Arrays in = p;
    in.push_back(dense(ct[0], stream()));
    std::vector<mx::Shape> shapes;
    std::vector<mx::Dtype> types;
    for (const auto& a : p) {
      shapes.push_back(a.shape());
      types.push_back(a.dtype());
    }
    return pick(
        mx::array::make_arrays(
            std::move(shapes), types, std::make_shared<GateGrad>(stream(), c_),
            in
        ),
        argnums
    );
  }

 private:
  GateConfig c_;

  template <class T>
  void run(const Arrays& in, Arrays& out) {
    allocate(out);
    auto a = arguments<T>(c_, in);
    a.y = out[0].data<T>(), a.y_stride = a.dim;
    a.past_caches = past_caches(out[0]);
    launch([a, rows = rows_of(in[0]),
            act = c_.form.act](const Execution& e) noexcept {
      const auto& f = e.kernels.gate->of(act, static_cast<T*>(nullptr));
      e.pool.parallel_for(
          static_cast<std::size_t>(rows), row_grain(a.dim),
          [&](std::size_t begin, std::size_t end) {
            f.forward(a, static_cast<long>(begin), static_cast<long>(end));
          }
      );
    });
  }
};

}  // namespace

mx::array gate_cpu(const GateConfig& c, Arrays in, mx::StreamOrDevice s) {
  with_dtype("ops.gate", in[0].dtype(), [](auto*) {});
  auto shape = in[0].shape();
  if (c.layout == GateLayout::halves) shape.back() /= 2;
  for (auto& a : in) a = dense(a, s);
  const auto dtype = in[0].dtype();
  return mx::array(
      std::move(shape), dtype, std::make_shared<Gate>(mx::to_stream(s), c),
      std::move(in)
  );
}

}  // namespace hearth::ops
