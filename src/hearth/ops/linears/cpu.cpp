// Linear layers of one input over our kernels.
#include "hearth/ops/linear/cpu_grad.h"
#include "hearth/ops/linears/faces_impl.h"

namespace hearth::ops {
namespace {

using kernels::GemmFamily;

// A part without its arrays.
struct Layer {
  Packed packed, packed_a, packed_b;
  Home home, home_a, home_b;
  bool whole = false, bias = false, adapter = false;
  float scale = 1;
  bool operator==(const Layer&) const = default;
};

// Where the arrays of a part are among the op's: inputs, and the output that
// is kept for the gradient.
struct Places {
  std::size_t w = 0, bias = 0, a = 0, b = 0, inner = 0;
};

std::vector<Places> places_of(const std::vector<Layer>& layers) {
  std::vector<Places> all;
  std::size_t in = 1, out = layers.size();
  for (const Layer& layer : layers) {
    Places& p = all.emplace_back();
    if (layer.whole) p.w = in++;
    if (layer.bias) p.bias = in++;
    if (!layer.adapter) continue;
    p.a = in++, p.b = in++;
    p.inner = out++;
  }
  return all;
}

// A layer while it runs.
struct Job {
  long n = 0, rank = 0;
  std::optional<LinearOperand> w, a, b;
  std::size_t w_at = 0, a_at = 0, b_at = 0;  // in scratch
  const float* bias = nullptr;
  void *y = nullptr, *inner = nullptr;
  float scale = 1;
};

// x, then of every layer [w][, bias][, a, b] -> every y, then the scaled x a^T
// of those that have an adapter
class Linears : public CpuOp {
 public:
  Linears(mx::Stream s, std::vector<Layer> layers)
      : CpuOp(s), layers_(std::move(layers)), places_(places_of(layers_)) {}
  HEARTH_OP_NAME(Linears)
  bool is_equivalent(const mx::Primitive& other) const override {
    return layers_ == static_cast<const Linears&>(other).layers_;
  }

  void eval_cpu(const Arrays& in, Arrays& out) override {
    const auto& x = in[0];
    const Execution now = current_execution();
    const GemmFamily& family = family_for(now, x);
    const std::size_t own = gemm_scratch_bytes(family, now.pool.size());
    allocate(out);
    std::size_t used = own;
    std::vector<Job> jobs = jobs_of(in, out, family, used);
    const auto room = scratch(stream(), used);
    const long m = rows_of(x), k = x.shape(-1);
    launch([=, jobs = std::move(jobs), &family, x = x.data<void>(),
            keep = layers_](const Execution& run) noexcept {
      for (const Job& job : jobs) {
        multiply(run.pool, family, {x, k, m}, job, room->data());
      }
    });
  }

  Arrays vjp(
      const Arrays& p,
      const Arrays& ct,
      const std::vector<int>& argnums,
      const Arrays& out
  ) override {
    std::vector<bool> wanted(p.size());
    for (const int i : argnums) wanted[static_cast<std::size_t>(i)] = true;
    std::vector<LinearUse> uses;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const Places& at = places_[i];
      const Layer& layer = layers_[i];
      auto& use = uses.emplace_back(
          LinearUse{dense(ct[i], stream()), {}, layer.packed, {}, {}, {}}
      );
      if (layer.whole) use.w = p[at.w], use.wanted.w = wanted[at.w];
      use.home = layer.home;
      use.wanted.bias = layer.bias && wanted[at.bias];
      if (!layer.adapter) continue;
      use.adapter = AdapterUse{p[at.a],        p[at.b],        out[at.inner],
                               layer.packed_a, layer.packed_b, layer.home_a,
                               layer.home_b,   layer.scale};
      use.wanted.a = wanted[at.a], use.wanted.b = wanted[at.b];
    }
    const auto g = linear_gradients(p[0], uses, wanted[0], 1, stream());
    Arrays by_input(p.size(), p[0]);  // what is not wanted is not picked
    const auto put = [&](std::size_t at, const std::optional<mx::array>& a) {
      if (a) by_input[at] = *a;
    };
    put(0, g.x);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const auto& of = g.parts[i];
      put(places_[i].w, of.w), put(places_[i].bias, of.bias);
      put(places_[i].a, of.a), put(places_[i].b, of.b);
    }
    return pick(by_input, argnums);
  }

 private:
  std::vector<Layer> layers_;
  std::vector<Places> places_;

  const GemmFamily& family_for(const Execution& now, const mx::array& x) const {
    for (const Layer& layer : layers_) {
      if (!layer.whole) return layer.packed->family();
    }
    return gemm_family(now.kernels, gemm_scalar(x.dtype()));
  }

  // Counts the scratch they take, from `used` on.
  std::vector<Job> jobs_of(
      const Arrays& in,
      Arrays& out,
      const GemmFamily& family,
      std::size_t& used
  ) const {
    const auto take = [&](const LinearOperand& operand) {
      const std::size_t at = used;
      used += operand.bytes();
      return at;
    };
    std::vector<Job> jobs;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const Layer& layer = layers_[i];
      const Places& at = places_[i];
      Job& job = jobs.emplace_back();
      job.n = out[i].shape(-1);
      if (layer.whole)
        job.w.emplace(family, in[at.w], layer.packed, true);
      else
        job.w.emplace(*layer.packed, true);
      job.w_at = take(*job.w);
      if (layer.bias) job.bias = in[at.bias].data<float>();
      job.y = out[i].data<void>();
      if (!layer.adapter) continue;
      job.rank = in[at.a].shape(0);
      job.scale = layer.scale;
      job.inner = out[at.inner].data<void>();
      job.a.emplace(family, in[at.a], layer.packed_a, true);
      job.b.emplace(family, in[at.b], layer.packed_b, true);
      job.a_at = take(*job.a), job.b_at = take(*job.b);
    }
    return jobs;
  }

  struct Rows {
    const void* x;
    long k, m;
  };
  static void multiply(
      ThreadPool& pool,
      const GemmFamily& family,
      const Rows& in,
      const Job& job,
      std::byte* place
  ) {
    kernels::GemmArgs g{
        .m = in.m,
        .n = job.n,
        .k = in.k,
        .a = in.x,
        .a_stride = in.k,
        .c = job.y,
        .c_stride = job.n,
        .c_type = family.operand,
        .bias = job.bias,
        .past_caches = product_goes_past_caches(in.m, job.n, family)
    };
    kernels::GemmTerm adapter;
    if (job.a) {
      kernels::GemmArgs inner = g;
      inner.n = inner.c_stride = job.rank;
      inner.c = job.inner;
      inner.scale = job.scale;
      inner.bias = nullptr;
      inner.packed = job.a->fill(pool, place + job.a_at);
      run_gemm(pool, family, inner, place);
      const void* b = job.b->fill(pool, place + job.b_at);
      adapter = {job.inner, job.rank, job.rank, b};
      g.more = {&adapter, 1};
    }
    g.packed = job.w->fill(pool, place + job.w_at);
    run_gemm(pool, family, g, place);
  }
};

int columns_of(const LinearPart& part) {
  return part.w ? part.w->shape(0) : static_cast<int>(part.packed->n());
}

}  // namespace

Arrays linears_cpu(
    const mx::array& x,
    const std::vector<LinearPart>& parts,
    mx::StreamOrDevice s
) {
  with_dtype("ops.linears", x.dtype(), [](auto*) {});
  Arrays in{dense(x, s)};
  const auto weight = [&](const mx::array& w) {
    with_dtype("ops.linears", w.dtype(), [](auto*) {});
    const bool narrow = x.dtype() == mx::float32 && w.dtype() == mx::bfloat16;
    in.push_back(dense(narrow ? mx::astype(w, mx::float32, s) : w, s));
  };
  std::vector<Layer> layers;
  std::vector<mx::Shape> shapes;
  for (const LinearPart& part : parts) {
    Layer& layer = layers.emplace_back();
    layer.packed = part.packed, layer.home = part.home;
    layer.whole = part.w.has_value();
    if (part.w) weight(*part.w);
    if (part.bias) {
      layer.bias = true;
      in.push_back(dense(mx::astype(*part.bias, mx::float32, s), s));
    }
    shapes.push_back(x.shape());
    shapes.back().back() = columns_of(part);
    if (!part.adapter) continue;
    layer.adapter = true, layer.scale = part.adapter->scale;
    layer.packed_a = part.adapter->packed_a;
    layer.packed_b = part.adapter->packed_b;
    layer.home_a = part.adapter->home_a, layer.home_b = part.adapter->home_b;
    weight(part.adapter->a), weight(part.adapter->b);
  }
  for (const LinearPart& part : parts) {
    if (!part.adapter) continue;
    shapes.push_back(x.shape());
    shapes.back().back() = part.adapter->a.shape(0);
  }
  const std::vector<mx::Dtype> types(shapes.size(), x.dtype());
  auto out = mx::array::make_arrays(
      std::move(shapes), types,
      std::make_shared<Linears>(mx::to_stream(s), std::move(layers)), in
  );
  out.erase(out.begin() + static_cast<std::ptrdiff_t>(parts.size()), out.end());
  return out;
}

}  // namespace hearth::ops
