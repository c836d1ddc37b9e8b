#include "hearth/ops/gate/op.h"

#include <array>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/base/spelling.h"
#include "hearth/ops/row_sums.h"

namespace hearth::ops {
namespace {

constexpr std::array<std::string_view, kernels::kActivations> kNames = {
    "silu", "gelu", "gelu_tanh", "relu", "sigmoid", "tanh", "mish"
};

// Where gate and value come from.
enum class Layout { plain, halves, apart };

struct Config {
  Layout layout;
  PartialGate form;
  bool has_alpha;
};

// Inputs: gate | gate_up | gate, value, each followed by alpha where it is.
template <class T>
kernels::GateArgs<T> arguments(const Config& c, const Arrays& in) {
  kernels::GateArgs<T> a{};
  const long width = in[0].shape(-1);
  a.dim = c.layout == Layout::halves ? width / 2 : width;
  a.gate = in[0].data<T>(), a.gate_stride = width;
  if (c.layout == Layout::halves) {
    a.value = a.gate + a.dim, a.value_stride = width;
  } else if (c.layout == Layout::apart) {
    a.value = in[1].data<T>(), a.value_stride = width;
  }
  a.beta = c.form.beta, a.tanh_value = c.form.tanh_value;
  if (c.has_alpha) a.alpha = in[2].data<float>();
  return a;
}

// The forward op's inputs, dy -> their gradients.
class GateGrad : public CpuOp {
 public:
  GateGrad(mx::Stream s, Config c) : CpuOp(s), c_(c) {}
  HEARTH_OP_NAME(GateGrad)
  void eval_cpu(const Arrays& in, Arrays& out) override {
    with_dtype("ops.GateGrad", in[0].dtype(), [&](auto* t) {
      run<std::remove_pointer_t<decltype(t)>>(in, out);
    });
  }

 private:
  Config c_;

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
    if (c_.layout == Layout::halves) g.dvalue = g.dgate + dim;
    if (c_.layout == Layout::apart) g.dvalue = out[1].data<T>();
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
  Gate(mx::Stream s, Config c) : CpuOp(s), c_(c) {}
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
  Config c_;

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

void check(const char* where, const mx::array& a, const mx::array& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype() || a.ndim() == 0) {
    throw UsageError(
        fmt::format(
            "[{}] gate and value must have one dtype and one shape of at least "
            "one dimension, got [{}] and [{}]",
            where, fmt::join(a.shape(), ", "), fmt::join(b.shape(), ", ")
        )
    );
  }
}

mx::array build(
    const char* where,
    Config c,
    Arrays in,
    mx::Shape shape,
    mx::Stream s
) {
  with_dtype(where, in[0].dtype(), [](auto*) {});
  for (auto& a : in) a = dense(a, s);
  return mx::array(
      std::move(shape), in[0].dtype(), std::make_shared<Gate>(s, c), in
  );
}

}  // namespace

Activation activation_named(std::string_view name) {
  if (name == "swish") return Activation::silu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") {
    return Activation::gelu_tanh;
  }
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Activation>(i);
  }
  const std::vector<std::string> known(kNames.begin(), kNames.end());
  throw UsageError(
      fmt::format(
          "[ops.activation_named] the activation must be one of {}, got '{}'{}",
          fmt::join(known, ", "), name, did_you_mean(name, known)
      )
  );
}

std::string_view name_of(Activation a) {
  return kNames[static_cast<std::size_t>(a)];
}

mx::array activate(const mx::array& x, Activation act, mx::StreamOrDevice s) {
  if (!ours(s, x.dtype())) return activate_reference(x, act, 1, s);
  const Config c{Layout::plain, {act}, false};
  if (x.ndim() == 0) {
    return mx::squeeze(activate(mx::expand_dims(x, 0, s), act, s), 0, s);
  }
  return build("ops.activate", c, {x}, x.shape(), mx::to_stream(s));
}

mx::array gated_mlp_activation(
    const mx::array& gate,
    const mx::array& up,
    Activation act,
    mx::StreamOrDevice s
) {
  constexpr const char* kWhere = "ops.gated_mlp_activation";
  check(kWhere, gate, up);
  if (!ours(s, gate.dtype())) {
    return mx::multiply(activate_reference(gate, act, 1, s), up, s);
  }
  const Config c{Layout::apart, {act}, false};
  return build(kWhere, c, {gate, up}, gate.shape(), mx::to_stream(s));
}

mx::array gated_mlp_activation(
    const mx::array& gate_up,
    Activation act,
    mx::StreamOrDevice s
) {
  constexpr const char* kWhere = "ops.gated_mlp_activation";
  if (gate_up.ndim() == 0 || gate_up.shape(-1) % 2 != 0) {
    throw UsageError(
        fmt::format(
            "[{}] the last dimension must be even, got shape [{}]", kWhere,
            fmt::join(gate_up.shape(), ", ")
        )
    );
  }
  if (!ours(s, gate_up.dtype())) {
    const auto half = mx::split(gate_up, 2, -1, s);
    return mx::multiply(activate_reference(half[0], act, 1, s), half[1], s);
  }
  auto shape = gate_up.shape();
  shape.back() /= 2;
  const Config c{Layout::halves, {act}, false};
  return build(kWhere, c, {gate_up}, std::move(shape), mx::to_stream(s));
}

mx::array partial_gate(
    const mx::array& value,
    const mx::array& gate,
    const mx::array& alpha,
    PartialGate form,
    mx::StreamOrDevice s
) {
  constexpr const char* kWhere = "ops.partial_gate";
  check(kWhere, gate, value);
  if (alpha.size() != 1) {
    throw UsageError(
        fmt::format(
            "[{}] alpha must have one element, got {}", kWhere, alpha.size()
        )
    );
  }
  if (!ours(s, gate.dtype())) {
    return partial_gate_reference(value, gate, alpha, form, s);
  }
  const Config c{Layout::apart, form, true};
  return build(
      kWhere, c, {gate, value, mx::astype(alpha, mx::float32, s)}, gate.shape(),
      mx::to_stream(s)
  );
}

}  // namespace hearth::ops
