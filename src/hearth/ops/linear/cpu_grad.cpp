#include "hearth/ops/linear/cpu_grad.h"

#include <algorithm>
#include <array>

#include "hearth/base/error.h"

namespace hearth::ops {
namespace {

using kernels::GemmFamily;
using kernels::GemmScalar;

constexpr std::size_t kMostTerms = 1 + kernels::kMaxGemmTerms;

// How a part is computed; what it computes on are the op's inputs.
struct Part {
  Packed packed, packed_a, packed_b;
  bool whole = false;  // the weight is there, not only packed
  bool adapter = false;
  float scale = 1;  // the adapter's
  Home home, home_a, home_b;
  LinearUse::Wanted wanted;
};

// A part while it runs.
struct Job {
  const void *dy = nullptr, *inner = nullptr;
  long n = 0, rank = 0;
  std::optional<LinearOperand> w, a, b;
  std::byte *w_place = nullptr, *a_place = nullptr, *b_place = nullptr;
  std::byte* d_inner = nullptr;  // scale * dy b
  float *dw = nullptr, *dbias = nullptr, *da = nullptr, *db = nullptr;
  bool dw_begun = false, da_begun = false, db_begun = false;
  float scale = 1;
};

// x, then of every part dy[, w][, a, b, inner] -> [dx], then of every part
// [dw][, dbias][, da][, db]
class LinearGrad : public CpuOp {
 public:
  LinearGrad(mx::Stream s, std::vector<Part> parts, bool want_x, float scale)
      : CpuOp(s), parts_(std::move(parts)), want_x_(want_x), scale_(scale) {}
  HEARTH_OP_NAME(LinearGrad)

  void eval_cpu(const Arrays& in, Arrays& out) override {
    const auto& x = in[0];
    const Execution now = current_execution();
    const GemmFamily& family = family_for(now, x);
    const long m = rows_of(x), k = x.shape(-1);
    std::vector<Job> jobs = jobs_of(in, family);
    const std::size_t products = std::max(
        gemm_scratch_bytes(family, now.pool.size()),
        weight_gradient_scratch_bytes(
            family, m, std::max({k, 1L, widest(jobs)}), now.pool.size()
        )
    );
    const auto room =
        scratch(stream(), products + places(jobs, m, x.itemsize(), nullptr));
    places(jobs, m, x.itemsize(), room->data() + products);
    enter_homes(jobs, out);
    allocate(out);
    void* dx = results(jobs, out);
    launch([=, jobs = std::move(jobs), &family, x = x.data<void>(),
            keep = parts_, scale = scale_](const Execution& run) noexcept {
      std::byte* place = room->data();
      for (const Job& job : jobs)
        inner_gradient(run.pool, family, m, job, place);
      weights(run.pool, family, m, k, x, jobs, scale, place);
      if (dx) input_gradient(run.pool, family, m, k, jobs, scale, dx, place);
    });
  }

 private:
  std::vector<Part> parts_;
  bool want_x_;
  float scale_;

  const GemmFamily& family_for(const Execution& now, const mx::array& x) const {
    for (const Part& part : parts_) {
      if (!part.whole) return part.packed->family();
    }
    return gemm_family(now.kernels, gemm_scalar(x.dtype()));
  }

  std::vector<Job> jobs_of(const Arrays& in, const GemmFamily& family) const {
    std::vector<Job> jobs;
    std::size_t at = 1;
    for (const Part& part : parts_) {
      Job& job = jobs.emplace_back();
      const auto& dy = in[at++];
      job.dy = dy.data<void>();
      job.n = dy.shape(-1);
      if (part.whole) {
        const auto& w = in[at++];
        if (want_x_) job.w.emplace(family, w, part.packed, false);
      } else if (want_x_) {
        job.w.emplace(*part.packed, false);
      }
      if (!part.adapter) continue;
      const auto &a = in[at], &b = in[at + 1];
      job.rank = a.shape(0);
      job.scale = part.scale;
      job.inner = in[at + 2].data<void>();
      at += 3;
      if (want_x_) job.a.emplace(family, a, part.packed_a, false);
      if (want_x_ || part.wanted.a) {
        job.b.emplace(family, b, part.packed_b, false);
      }
    }
    return jobs;
  }

  // The widest operand beside x whose columns a weight's gradient packs.
  static long widest(const std::vector<Job>& jobs) {
    long most = 0;
    for (const Job& job : jobs) most = std::max(most, job.rank);
    return most;
  }

  // Gives out scratch for what is packed here and for the gradients of inner;
  // without memory it only counts.
  static std::size_t places(
      std::vector<Job>& jobs,
      long m,
      std::size_t element,
      std::byte* base
  ) {
    std::size_t used = 0;
    const auto take = [&](std::size_t bytes) {
      std::byte* at = base ? base + used : nullptr;
      used += (bytes + 63) / 64 * 64;
      return at;
    };
    for (Job& job : jobs) {
      if (job.w) job.w_place = take(job.w->bytes());
      if (job.a) job.a_place = take(job.a->bytes());
      if (!job.b) continue;
      job.b_place = take(job.b->bytes());
      job.d_inner = take(static_cast<std::size_t>(m * job.rank) * element);
    }
    return used;
  }

  void enter_homes(std::vector<Job>& jobs, Arrays& out) const {
    std::size_t next = want_x_ ? 1 : 0;
    const auto enter = [&](bool wanted, const Home& home) {
      if (!wanted) return false;
      mx::array& to = out[next++];
      return home && home->enter(to);
    };
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const Part& part = parts_[i];
      jobs[i].dw_begun = enter(part.wanted.w, part.home);
      enter(part.wanted.bias, nullptr);
      jobs[i].da_begun = enter(part.wanted.a, part.home_a);
      jobs[i].db_begun = enter(part.wanted.b, part.home_b);
    }
  }

  void* results(std::vector<Job>& jobs, Arrays& out) const {
    std::size_t next = 0;
    void* dx = want_x_ ? out[next++].data<void>() : nullptr;
    const auto take = [&](bool wanted, float*& to) {
      if (wanted) to = out[next++].data<float>();
    };
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const auto& wanted = parts_[i].wanted;
      take(wanted.w, jobs[i].dw), take(wanted.bias, jobs[i].dbias);
      take(wanted.a, jobs[i].da), take(wanted.b, jobs[i].db);
    }
    return dx;
  }

  static void inner_gradient(
      ThreadPool& pool,
      const GemmFamily& family,
      long m,
      const Job& job,
      std::byte* place
  ) {
    if (!job.b) return;
    run_gemm(
        pool, family,
        {.m = m,
         .n = job.rank,
         .k = job.n,
         .a = job.dy,
         .a_stride = job.n,
         .packed = job.b->fill(pool, job.b_place),
         .c = job.d_inner,
         .c_stride = job.rank,
         .c_type = family.operand,
         .scale = job.scale},
        place
    );
  }

  static void weights(
      ThreadPool& pool,
      const GemmFamily& family,
      long m,
      long k,
      const void* x,
      const std::vector<Job>& jobs,
      float scale,
      std::byte* place
  ) {
    std::array<WeightGradientOf, kMostTerms> of_x;
    std::size_t count = 0;
    for (const Job& job : jobs) {
      if (job.dw) {
        of_x[count++] = {job.dy, job.n, job.n, job.dw, job.dw_begun};
      }
      if (job.da) {
        of_x[count++] = {job.d_inner, job.rank, job.rank, job.da, job.da_begun};
      }
    }
    const WeightGradients all{
        .tokens = m, .k = k, .x = x, .x_stride = k, .scale = scale
    };
    weight_gradients(pool, family, all, std::span(of_x).first(count), place);
    for (const Job& job : jobs) {
      const std::array dy = {
          WeightGradientOf{job.dy, job.n, job.n, job.db, job.db_begun}
      };
      if (job.db) {
        WeightGradients of_inner = all;
        of_inner.k = of_inner.x_stride = job.rank;
        of_inner.x = job.inner;
        weight_gradients(pool, family, of_inner, dy, place);
      }
      if (job.dbias) bias_gradient(pool, family, all, job, place);
    }
  }

  // The gradient of the bias is that of a weight whose one input is always 1.
  static void bias_gradient(
      ThreadPool& pool,
      const GemmFamily& family,
      WeightGradients all,
      const Job& job,
      std::byte* place
  ) {
    static constexpr float kOne = 1.0f;
    static constexpr kernels::Bf16 kHalfOne{0x3f80};
    const bool bf16 = family.operand == GemmScalar::bf16;
    all.k = 1;
    all.x = bf16 ? static_cast<const void*>(&kHalfOne) : &kOne;
    all.x_stride = 0;
    const std::array dy = {
        WeightGradientOf{job.dy, job.n, job.n, job.dbias, false}
    };
    weight_gradients(pool, family, all, dy, place);
  }

  static void input_gradient(
      ThreadPool& pool,
      const GemmFamily& family,
      long m,
      long k,
      const std::vector<Job>& jobs,
      float scale,
      void* dx,
      std::byte* place
  ) {
    std::array<kernels::GemmTerm, kMostTerms> terms;
    std::size_t count = 0;
    for (const Job& job : jobs) {
      const void* w = job.w->fill(pool, job.w_place);
      terms[count++] = {job.dy, job.n, job.n, w};
      if (!job.a) continue;
      const void* a = job.a->fill(pool, job.a_place);
      terms[count++] = {job.d_inner, job.rank, job.rank, a};
    }
    const kernels::GemmTerm& first = terms[0];
    run_gemm(
        pool, family,
        {.m = m,
         .n = k,
         .k = first.k,
         .a = first.a,
         .a_stride = first.a_stride,
         .packed = first.packed,
         .c = dx,
         .c_stride = k,
         .c_type = family.operand,
         .more = std::span(terms).subspan(1, count - 1),
         .scale = scale,
         .past_caches = product_goes_past_caches(m, k, family)},
        place
    );
  }
};

}  // namespace

LinearGradients linear_gradients(
    const mx::array& x,
    const std::vector<LinearUse>& uses,
    bool want_x,
    float scale,
    mx::Stream s
) {
  std::vector<mx::Shape> shapes;
  std::vector<mx::Dtype> types;
  Arrays in{x};
  std::vector<Part> parts;
  if (want_x) shapes.push_back(x.shape()), types.push_back(x.dtype());
  const auto want = [&](bool wanted, const mx::Shape& shape) {
    if (wanted) shapes.push_back(shape), types.push_back(mx::float32);
  };
  for (const LinearUse& use : uses) {
    in.push_back(use.dy);
    Part& part = parts.emplace_back();
    part.packed = use.packed, part.home = use.home, part.wanted = use.wanted;
    if (use.w) {
      part.whole = true;
      in.push_back(*use.w);
      want(use.wanted.w, use.w->shape());
    } else if (want_x && !use.packed->backward()) {
      throw UsageError(
          "[ops.linear] packed must hold both orders for a gradient of x, got "
          "the forward order alone"
      );
    }
    want(use.wanted.bias, {use.dy.shape(-1)});
    if (!use.adapter) continue;
    const AdapterUse& adapter = *use.adapter;
    in.insert(in.end(), {adapter.a, adapter.b, adapter.inner});
    part.adapter = true, part.scale = adapter.scale;
    part.packed_a = adapter.packed_a, part.packed_b = adapter.packed_b;
    part.home_a = adapter.home_a, part.home_b = adapter.home_b;
    want(use.wanted.a, adapter.a.shape());
    want(use.wanted.b, adapter.b.shape());
  }
  LinearGradients out{.x = {}, .parts = {}};
  out.parts.resize(uses.size());
  if (shapes.empty()) return out;
  const auto all = mx::array::make_arrays(
      std::move(shapes), types,
      std::make_shared<LinearGrad>(s, std::move(parts), want_x, scale), in
  );
  std::size_t next = 0;
  if (want_x) out.x = all[next++];
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const auto& wanted = uses[i].wanted;
    auto& of = out.parts[i];
    if (wanted.w) of.w = all[next++];
    if (wanted.bias) of.bias = all[next++];
    if (wanted.a) of.a = all[next++];
    if (wanted.b) of.b = all[next++];
  }
  return out;
}

}  // namespace hearth::ops
