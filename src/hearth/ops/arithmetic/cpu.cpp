// Our kernels behind the small arithmetic.
#include "hearth/kernels/arithmetic.h"
#include "hearth/kernels/math.h"
#include "hearth/ops/arithmetic/faces_impl.h"
#include "hearth/ops/arithmetic/op.h"

namespace hearth::ops {
namespace {

// Elements that make a share of work worth a thread. A multiple of the groups
// that random numbers come in.
constexpr std::size_t kGrain = 32768;
static_assert(kGrain % kernels::ArithmeticKernels::kNoiseGroup == 0);

// f(begin, count) over shares of [0, n).
template <class F>
void for_shares(ThreadPool& pool, std::size_t n, F f) {
  pool.parallel_for(n, kGrain, [&](std::size_t begin, std::size_t end) {
    f(begin, static_cast<long>(end - begin));
  });
}

class Add : public CpuOp {
 public:
  using CpuOp::CpuOp;
  HEARTH_OP_NAME(Add)
  void eval_cpu(const Arrays& in, Arrays& out) override {
    if (in[1].dtype() == in[0].dtype()) {
      with_dtype("ops.Add", in[0].dtype(), [&](auto* t) {
        run(t, t, in, out);
      });
    } else {
      run(static_cast<float*>(nullptr), static_cast<kernels::Bf16*>(nullptr),
          in, out);
    }
  }
  Arrays vjp(
      const Arrays& p,
      const Arrays& ct,
      const std::vector<int>& argnums,
      const Arrays&
  ) override {
    Arrays g;
    for (const int i : argnums) {
      g.push_back(
          cast(ct[0], p[static_cast<std::size_t>(i)].dtype(), stream())
      );
    }
    return g;
  }

 private:
  template <class A, class B>
  void run(A* ta, B* tb, const Arrays& in, Arrays& out) {
    take_or_allocate(in[0], out[0]);
    launch([=, n = in[0].size(), a = in[0].data<A>(), b = in[1].data<B>(),
            y = out[0].data<A>()](const Execution& e) noexcept {
      const auto f = e.kernels.arithmetic->add(ta, tb);
      for_shares(e.pool, n, [&](std::size_t i, long count) {
        f(count, a + i, b + i, y + i);
      });
    });
  }
};

// x, factor -> y. Its gradient is itself.
class Scale : public CpuOp {
 public:
  using CpuOp::CpuOp;
  HEARTH_OP_NAME(Scale)
  void eval_cpu(const Arrays& in, Arrays& out) override {
    take_or_allocate(in[0], out[0]);
    with_dtype("ops.Scale", in[0].dtype(), [&](auto* t) {
      using T = std::remove_pointer_t<decltype(t)>;
      launch([t, n = in[0].size(), x = in[0].data<T>(), y = out[0].data<T>(),
              factor = in[1].data<float>()](const Execution& e) noexcept {
        if (*factor == 1.0f && x == y) return;
        const auto f = e.kernels.arithmetic->scale(t);
        for_shares(e.pool, n, [&](std::size_t i, long count) {
          f(count, *factor, x + i, y + i);
        });
      });
    });
  }
  Arrays vjp(
      const Arrays& p,
      const Arrays& ct,
      const std::vector<int>& argnums,
      const Arrays&
  ) override {
    if (argnums != std::vector<int>{0}) {
      throw UsageError("[ops.scale] only x has a gradient");
    }
    return {scale(ct[0], p[1], stream())};
  }
};

// Its gradient is itself, the other way.
class Cast : public CpuOp {
 public:
  using CpuOp::CpuOp;
  HEARTH_OP_NAME(Cast)
  void eval_cpu(const Arrays& in, Arrays& out) override {
    allocate(out);
    const std::size_t n = in[0].size();
    if (out[0].dtype() == mx::float32) {
      launch([n, x = in[0].data<kernels::Bf16>(),
              y = out[0].data<float>()](const Execution& e) noexcept {
        for_shares(e.pool, n, [&](std::size_t i, long count) {
          e.kernels.math->bf16_to_float(count, x + i, y + i);
        });
      });
    } else {
      launch([n, x = in[0].data<float>(),
              y = out[0].data<kernels::Bf16>()](const Execution& e) noexcept {
        for_shares(e.pool, n, [&](std::size_t i, long count) {
          e.kernels.math->float_to_bf16(count, x + i, y + i);
        });
      });
    }
  }
  Arrays vjp(
      const Arrays& p,
      const Arrays& ct,
      const std::vector<int>&,
      const Arrays&
  ) override {
    return {cast(ct[0], p[0].dtype(), stream())};
  }
};

class CastStochastic : public CpuOp {
 public:
  CastStochastic(mx::Stream s, RandomKey key) : CpuOp(s), key_(key) {}
  HEARTH_OP_NAME(CastStochastic)
  void eval_cpu(const Arrays& in, Arrays& out) override {
    allocate(out);
    launch([key = key_.bits(), n = in[0].size(), x = in[0].data<float>(),
            y = out[0].data<kernels::Bf16>()](const Execution& e) noexcept {
      e.pool.parallel_for(n, kGrain, [&](std::size_t begin, std::size_t end) {
        e.kernels.arithmetic->float_to_bf16_stochastic(
            static_cast<long>(begin), static_cast<long>(end), key, x, y
        );
      });
    });
  }
  Arrays vjp(
      const Arrays&,
      const Arrays& ct,
      const std::vector<int>&,
      const Arrays&
  ) override {
    return {cast(ct[0], mx::float32, stream())};
  }

 private:
  RandomKey key_;
};

// One array as several outputs over its buffer.
class Fork : public CpuOp {
 public:
  using CpuOp::CpuOp;
  HEARTH_OP_NAME(Fork)
  void eval_cpu(const Arrays& in, Arrays& out) override {
    for (auto& o : out) o.copy_shared_buffer(in[0]);
    launch([](const Execution&) noexcept {});
  }
  Arrays vjp(
      const Arrays& p,
      const Arrays& ct,
      const std::vector<int>&,
      const Arrays&
  ) override {
    mx::array sum = dense(ct[0], stream());
    for (std::size_t i = 1; i < ct.size(); ++i)
      sum = ops::add(sum, ct[i], stream());
    return {
        sum.dtype() == p[0].dtype() ? sum : cast(sum, p[0].dtype(), stream())
    };
  }
};

}  // namespace

mx::array add_cpu(
    const mx::array& a,
    const mx::array& b,
    mx::StreamOrDevice s
) {
  const bool narrow_a = a.dtype() == mx::bfloat16 && b.dtype() == mx::float32;
  const auto& second = narrow_a ? cast(b, mx::bfloat16, s) : b;
  return mx::array(
      a.shape(), a.dtype(), std::make_shared<Add>(mx::to_stream(s)),
      {dense(a, s), dense(second, s)}
  );
}

mx::array scale_cpu(
    const mx::array& x,
    const mx::array& factor,
    mx::StreamOrDevice s
) {
  return mx::array(
      x.shape(), x.dtype(), std::make_shared<Scale>(mx::to_stream(s)),
      {dense(x, s), mx::astype(factor, mx::float32, s)}
  );
}

mx::array cast_cpu(const mx::array& x, mx::Dtype dtype, mx::StreamOrDevice s) {
  return mx::array(
      x.shape(), dtype, std::make_shared<Cast>(mx::to_stream(s)), {dense(x, s)}
  );
}

mx::array cast_stochastic_cpu(
    const mx::array& x,
    RandomKey key,
    mx::StreamOrDevice s
) {
  return mx::array(
      x.shape(), mx::bfloat16,
      std::make_shared<CastStochastic>(mx::to_stream(s), key), {dense(x, s)}
  );
}

Arrays fork_cpu(const mx::array& x, int n, mx::StreamOrDevice s) {
  const auto uses = static_cast<std::size_t>(n);
  return mx::array::make_arrays(
      std::vector<mx::Shape>(uses, x.shape()),
      std::vector<mx::Dtype>(uses, x.dtype()),
      std::make_shared<Fork>(mx::to_stream(s)), {dense(x, s)}
  );
}

}  // namespace hearth::ops
