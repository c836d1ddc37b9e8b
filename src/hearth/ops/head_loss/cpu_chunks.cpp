// The chunk of logits is written once and read by the two products only; where
// these read blocks, they find them written so. For
// plain cross-entropy in bf16 it holds e = exp(l - m) as soon as a stretch of
// logits is known. The normaliser Z comes last, so it is applied to the small
// sides: with P = e - Z onehot and s = weight / Z,
//   dH = diag(s) P W      dW += P^T (diag(s) H)
#include "hearth/ops/head_loss/cpu_chunks.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "hearth/kernels/table.h"
#include "hearth/ops/gemm.h"
#include "hearth/ops/head_loss/cpu_plan.h"

namespace hearth::ops {
namespace {

using kernels::Bf16;
using kernels::GemmFamily;
using kernels::GemmScalar;

constexpr long kBlock = HeadLossPlan::kBlock;

class HeadLoss {
 public:
  HeadLoss(
      ThreadPool& pool,
      const kernels::Table& table,
      const GemmFamily& family,
      const HeadLossTask& task,
      std::byte* scratch
  )
      : pool_(pool),
        kernels_(*table.head_loss),
        family_(family),
        t_(task),
        p_(task, family, pool.size(), scratch) {}

  void run() {
    const long active = prepare();
    double loss = 0, weight = 0;
    long start = 0;
    do {
      const long rows = std::min(p_.chunk, active - start);
      gather(start, rows);
      pool_.run([&](int worker) { work(worker, start, rows); });
      if (t_.dw) add_to_dw(rows, t_.dw_begun || start > 0);
      for (long r = 0; r < rows; ++r) {
        loss += p_.states[r].loss;
        weight += p_.states[r].weight;
      }
      start += rows;
    } while (start < active);
    *t_.loss_sum = valid_ ? static_cast<float>(loss) : std::nanf("");
    *t_.weight_sum = static_cast<float>(weight);
  }

 private:
  ThreadPool& pool_;
  const kernels::HeadLossKernels& kernels_;
  const GemmFamily& family_;
  const HeadLossTask& t_;
  const HeadLossPlan p_;
  const std::byte *forward_ = nullptr, *backward_ = nullptr;
  bool valid_ = true;

  float weight(long token) const { return t_.weights ? t_.weights[token] : 1; }

  // Lists the tokens that count, clears the results of the others, and has the
  // weight ready in the orders the products read it in. Returns how many.
  long prepare() {
    long count = 0;
    for (long i = 0; i < t_.tokens; ++i) {
      t_.log_probs[i] = 0;
      const bool wanted = t_.targets[i] >= 0 && weight(i) != 0;
      const bool counts = wanted && in_vocabulary(i);
      if (wanted && !counts) valid_ = false;
      if (counts)
        p_.active[count++] = static_cast<int>(i);
      else if (p_.gradients)
        std::memset(dh_of(i), 0, dim_bytes());
    }
    const bool own = p_.packs_itself();
    forward_ = own ? p_.forward : t_.packed->forward();
    backward_ = own ? p_.backward : t_.packed->backward();
    if (own && count > 0) pack(true, p_.forward);
    if (own && count > 0 && p_.gradients) pack(false, p_.backward);
    return count;
  }
  bool in_vocabulary(long token) const {
    const kernels::TeacherRow row = teacher(token);
    for (long k = 0; k < row.count; ++k) {
      const long i = row.indices[k];
      if (i < 0 || i >= t_.vocabulary) return false;
    }
    return t_.targets[token] < t_.vocabulary;
  }
  void pack(bool by_column, std::byte* to) {
    pack_gemm(
        pool_, family_,
        {.source = t_.w,
         .type = t_.w_type,
         .stride = t_.dim,
         .by_column = by_column,
         .n = by_column ? t_.vocabulary : t_.dim,
         .k = by_column ? t_.dim : t_.vocabulary,
         .packed = to}
    );
  }

  std::size_t dim_bytes() const {
    return static_cast<std::size_t>(t_.dim * element_bytes(t_.type));
  }
  std::byte* dh_of(long token) const {
    return static_cast<std::byte*>(t_.dh) +
           static_cast<std::size_t>(token) * dim_bytes();
  }
  std::byte* h_of(long row) const {
    return p_.h + row * p_.h_stride() * element_bytes(t_.type);
  }
  std::byte* row_of(long row) const { return p_.rows + row * p_.row_bytes(); }
  Bf16* exponentials(long row) const {
    auto* e = reinterpret_cast<Bf16*>(p_.rows);
    const long stride = p_.gradient_stride();
    return e +
           (p_.blocks ? kernels::block_place(row, 0, stride) : row * stride);
  }
  // Calls body(exponentials, count) for the stretches of a row.
  template <class Body>
  void each_stretch(long row, const Body& body) {
    Bf16* e = exponentials(row);
    const long whole = p_.blocks ? kBlock : t_.vocabulary;
    for (long v = 0; v < t_.vocabulary; v += whole) {
      body(
          e + v / kBlock * p_.exponential_step(),
          std::min(whole, t_.vocabulary - v)
      );
    }
  }

  const std::byte* input_of(long token) const {
    return static_cast<const std::byte*>(t_.h) +
           static_cast<std::size_t>(token) * dim_bytes();
  }
  // The rows that count, one after the other or in blocks.
  void gather(long start, long rows) {
    for (long r = 0; r < rows; ++r) {
      const std::byte* from = input_of(p_.active[start + r]);
      if (!p_.blocks) {
        std::memcpy(h_of(r), from, dim_bytes());
        continue;
      }
      constexpr long kBytes = kBlock * sizeof(Bf16);
      std::byte* to =
          p_.h + kernels::block_place(r, 0, p_.h_stride()) * long{sizeof(Bf16)};
      const auto end = static_cast<long>(dim_bytes());
      for (long at = 0; at < end; at += kBytes, to += kBlock * kBytes) {
        const long count = std::min(kBytes, end - at);
        std::memcpy(to, from + at, static_cast<std::size_t>(count));
        std::memset(to + count, 0, static_cast<std::size_t>(kBytes - count));
      }
    }
  }

  std::byte* gemm_scratch(int worker) const {
    return p_.gemm + (family_.scratch_bytes + 63) / 64 * 64 *
                         static_cast<std::size_t>(worker);
  }

  // One thread's rows of a chunk, from h to dh.
  void work(int worker, long start, long rows) {
    const Range mine = partition(
        static_cast<std::size_t>(rows), static_cast<std::size_t>(family_.rows),
        worker, pool_.size()
    );
    const long end = static_cast<long>(mine.end);
    for (long r = static_cast<long>(mine.begin); r < end; r += p_.block_rows) {
      const long count = std::min(p_.block_rows, end - r);
      if (p_.running)
        running_rows(worker, start, r, count);
      else
        whole_rows(worker, start, r, count);
      if (p_.gradients) input_gradient(worker, start, r, count);
    }
  }

  // logits[count, n] of rows from r on and columns from v on.
  void logits(
      int worker,
      long r,
      long count,
      long v,
      long n,
      float* out,
      long stride
  ) {
    const std::size_t panel = family_.packed_bytes(family_.columns, t_.dim);
    family_.run(
        {.m = count,
         .n = n,
         .k = t_.dim,
         .a = h_of(r),
         .a_stride = p_.h_stride(),
         .a_in_blocks = p_.blocks,
         .packed =
             forward_ + panel * static_cast<std::size_t>(v / family_.columns),
         .c = out,
         .c_stride = stride},
        {0, count}, {0, n}, gemm_scratch(worker)
    );
  }

  void running_rows(int worker, long start, long r, long count) {
    float* out = p_.stretches + worker * p_.block_rows * p_.stretch;
    kernels::SoftmaxRow rows[256];
    float targets[256];
    for (long i = 0; i < count; ++i) rows[i] = {0, 0};
    for (long v = 0; v < t_.vocabulary; v += p_.stretch) {
      const long n = std::min(p_.stretch, t_.vocabulary - v);
      logits(worker, r, count, v, n, out, p_.stretch);
      for (long i = 0; i < count; ++i) {
        const float* l = out + i * p_.stretch;
        Bf16* e = p_.gradients ? exponentials(r + i) : nullptr;
        kernels_.softmax(l, n, e, p_.exponential_step(), v, rows[i]);
        const long at = t_.targets[p_.active[start + r + i]] - v;
        if (at >= 0 && at < n) targets[i] = l[at];
      }
    }
    for (long i = 0; i < count; ++i) {
      finish_running(p_.active[start + r + i], r + i, rows[i], targets[i]);
    }
  }

  void finish_running(
      long token,
      long row,
      const kernels::SoftmaxRow& s,
      float target
  ) {
    const float lse = s.max + std::log(s.sum);
    const float z = t_.terms.z_loss;
    const float w = weight(token) * t_.terms.cross_entropy;
    t_.log_probs[token] = target - lse;
    p_.states[row] = {0, w * (lse - target + z * lse * lse), weight(token)};
    if (!p_.gradients) return;
    // The z-loss multiplies p by `by`: it goes into the scale, and the target's
    // entry is divided by it, unless it is too small for that.
    const float by = 1 + 2 * z * lse;
    float scale = w / s.sum, in_row = 1;
    if (by > 0.5f)
      scale *= by;
    else
      in_row = by;
    if (in_row != 1) {
      each_stretch(row, [&](Bf16* e, long count) {
        kernels_.scale_bf16(e, count, in_row, e);
      });
    }
    const float one = by > 0.5f ? s.sum / by : s.sum;
    const float entry = in_row * std::exp(target - s.max) - one;
    const long at = t_.targets[token];
    Bf16* e = exponentials(row) + at / kBlock * p_.exponential_step();
    kernels_.scale_to_bf16(&entry, 1, 1, e + at % kBlock);
    const long over = t_.vocabulary % kBlock;
    if (p_.blocks && over > 0) {
      Bf16* last =
          exponentials(row) + t_.vocabulary / kBlock * p_.exponential_step();
      std::fill(last + over, last + kBlock, Bf16{});
    }
    p_.states[row].scale = scale;
    kernels_.scale_bf16(
        reinterpret_cast<const Bf16*>(input_of(token)), t_.dim, scale,
        reinterpret_cast<Bf16*>(p_.scaled_h) + row * t_.dim
    );
  }

  kernels::TeacherRow teacher(long token) const {
    kernels::TeacherRow row = t_.teacher;
    if (row.logits) row.logits += token * t_.vocabulary;
    if (row.half_logits) row.half_logits += token * t_.vocabulary;
    if (row.indices) row.indices += token * row.count;
    if (row.log_probs) row.log_probs += token * row.count;
    return row;
  }

  void whole_rows(int worker, long start, long r, long count) {
    auto* first = reinterpret_cast<float*>(row_of(r));
    logits(worker, r, count, 0, t_.vocabulary, first, p_.logits_stride);
    for (long i = 0; i < count; ++i) {
      const long token = p_.active[start + r + i];
      kernels::LossRow row{
          .logits = first + i * p_.logits_stride,
          .n = t_.vocabulary,
          .target = t_.targets[token],
          .weight = weight(token)
      };
      if (p_.gradients && t_.type == GemmScalar::bf16) {
        row.half_gradient = reinterpret_cast<Bf16*>(row.logits);
      } else if (p_.gradients) {
        row.gradient = row.logits;
      }
      const auto value = kernels_.loss(row, t_.terms, teacher(token));
      t_.log_probs[token] = value.log_prob;
      p_.states[r + i] = {1, value.loss, weight(token)};
    }
  }

  void input_gradient(int worker, long start, long r, long count) {
    float* dh = p_.dh + r * t_.dim;
    family_.run(
        {.m = count,
         .n = t_.dim,
         .k = t_.vocabulary,
         .a = row_of(r),
         .a_stride = p_.gradient_stride(),
         .a_in_blocks = p_.blocks,
         .packed = backward_,
         .c = dh,
         .c_stride = t_.dim},
        {0, count}, {0, t_.dim}, gemm_scratch(worker)
    );
    for (long i = 0; i < count; ++i) {
      std::byte* to = dh_of(p_.active[start + r + i]);
      const float* from = dh + i * t_.dim;
      const float scale = p_.states[r + i].scale;
      if (t_.type == GemmScalar::bf16) {
        kernels_.scale_to_bf16(
            from, t_.dim, scale, reinterpret_cast<Bf16*>(to)
        );
      } else {
        kernels_.scale_f32(from, t_.dim, scale, reinterpret_cast<float*>(to));
      }
    }
  }

  void add_to_dw(long rows, bool accumulate) {
    const WeightGradientOf part{
        p_.rows, t_.vocabulary, p_.gradient_stride(), t_.dw, accumulate
    };
    weight_gradients(
        pool_, family_,
        {.tokens = rows,
         .k = t_.dim,
         .x = p_.running ? p_.scaled_h : p_.h,
         .x_stride = t_.dim,
         .dy_in_blocks = p_.blocks},
        {&part, 1}, p_.gemm
    );
  }
};

}  // namespace

std::size_t head_loss_scratch_bytes(
    const HeadLossTask& task,
    const GemmFamily& family,
    int threads
) {
  return HeadLossPlan(task, family, threads, nullptr).bytes;
}

void run_head_loss(
    ThreadPool& pool,
    const kernels::Table& table,
    const GemmFamily& family,
    const HeadLossTask& task,
    std::byte* scratch
) {
  HeadLoss(pool, table, family, task, scratch).run();
}

}  // namespace hearth::ops
