// Losses of rows of logits; see head_loss.h for what each means.
#include "hearth/kernels/head_loss_rows_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

constexpr float kHeadroom = 60;

// Calls body(place in e, column, lanes) for columns [0, n) of a row. In e 32 of
// them lie together, and from there to the next 32 it is `step` elements.
template <class Body>
HEARTH_INLINE void each_exponential(long n, long step, const Body& body) {
  constexpr long kTogether = 32;
  const long whole = step == kTogether ? n : kTogether;
  for (long from = 0; from < n; from += whole) {
    const long count = n - from < whole ? n - from : whole;
    const long place = from / kTogether * step;
    each_vector(0, count, [&](long i, auto lanes) {
      body(place + i, from + i, lanes);
    });
  }
}

// Writes exp(logit - reference) as bf16, for which the quick function is exact
// enough, and adds them to `sum`. Returns how far the largest logit is above
// the reference, or 0.
float exponentials(
    const float* logits,
    long n,
    Bf16* to,
    long step,
    float reference,
    float& sum
) {
  const F32 shift = splat(reference);
  F32 sums[2] = {zero(), zero()};
  F32 most = zero();
  each_exponential(n, step, [&](long at, long i, auto lanes) {
    const F32 above = load(logits + i, lanes) - shift;
    most = max(only(above, lanes), most);
    const F32 x = exp_quick(above);
    sums[i / kLanes & 1] += only(x, lanes);
    store(to + at, x, lanes);
  });
  sum += reduce_add(sums[0] + sums[1]);
  return reduce_max(most);
}

void softmax(
    const float* logits,
    long n,
    Bf16* e,
    long step,
    long done,
    SoftmaxRow& row
) noexcept {
  const auto move_reference = [&](float most) {
    const float k = __builtin_expf(row.max - most);
    const F32 by = splat(k);
    if (e) {
      each_exponential(done, step, [&](long at, long, auto lanes) {
        store(e + at, load(e + at, lanes) * by, lanes);
      });
    }
    row.sum *= k;
    row.max = most;
  };
  if (done == 0 || !e) {
    const float most = row_max(logits, n);
    if (done == 0)
      row.max = most;
    else if (most > row.max + kHeadroom)
      move_reference(most);
  }
  if (!e) {
    row.sum += sum_exp(logits, n, row.max, 1.0f);
    return;
  }
  Bf16* to = e + done / 32 * step;
  float sum = 0;
  const float above = exponentials(logits, n, to, step, row.max, sum);
  if (above > kHeadroom) {
    move_reference(row.max + above);
    sum = 0;
    exponentials(logits, n, to, step, row.max, sum);
  }
  row.sum += sum;
}

void cap_row(float* l, long n, float cap) {
  const F32 up = splat(cap), down = splat(1.0f / cap);
  each_vector(0, n, [&](long i, auto lanes) {
    store(l + i, up * tanh(load(l + i, lanes) * down), lanes);
  });
}

// The gradient of a row is a sum of parts that are functions of the logit (and
// of the teacher's) at each place; a few places, such as the target's, are
// corrected one by one afterwards.
struct Gradient {
  const LossRow& row;
  float cap;

  // d c(l) / d l, from the capped logit.
  F32 slope(F32 l) const {
    if (cap == 0) return splat(1.0f);
    const F32 t = l * splat(1.0f / cap);
    return fnma(t, t, splat(1.0f));
  }
  template <class Part>
  void write(Part part) const {
    const float* l = row.logits;
    each_vector(0, row.n, [&](long i, auto lanes) {
      const F32 x = load(l + i, lanes);
      const F32 d = part(i, lanes, x) * slope(x);
      // The gradient may lie where the logits do. Where a lane is a plain float
      // the compiler would assume that two types never share memory.
      if constexpr (kLanes == 1) asm volatile("" ::: "memory");
      if (row.gradient)
        store(row.gradient + i, d, lanes);
      else
        store(row.half_gradient + i, d, lanes);
    });
  }
  // The value a place would get, before it is written.
  template <class Part>
  float at(long i, Part part) const {
    const F32 x = load(row.logits + i, 1);
    return first_lane(part(i, ::hearth::kernels::HEARTH_ISA::Part{1}, x));
  }
  void put(long i, float d, float l) const {
    const F32 x = splat(d) * slope(splat(l));
    if (row.gradient)
      store(row.gradient + i, x, 1);
    else
      store(row.half_gradient + i, x, 1);
  }
};

struct CrossEntropy {
  float loss;  // weighted as a term, not as a token
  float log_prob;
  LogSoftmax student;
  float by_p, by_all, by_target;  // gradient: by_p * p + by_all, and at target
};
CrossEntropy cross_entropy(const LossRow& row, const LossTerms& terms) {
  const LogSoftmax s = log_softmax(row.logits, row.n, 1.0f);
  const float target = row.logits[row.target], n = float(row.n);
  const float smooth = terms.label_smoothing;
  float loss = s.lse - (1 - smooth) * target;
  if (smooth > 0) loss -= smooth * (sum(row.logits, row.n) / n);
  loss += terms.z_loss * s.lse * s.lse;
  const float w = row.weight * terms.cross_entropy;
  return {
      terms.cross_entropy * loss,         target - s.lse,  s,
      w * (1 + 2 * terms.z_loss * s.lse), -w * smooth / n, -w * (1 - smooth)
  };
}

template <class Lanes>
HEARTH_INLINE F32 ce_part(const CrossEntropy& c, F32 l, Lanes) {
  const F32 p = exp(l - splat(c.student.lse));
  return fma(splat(c.by_p), p, splat(c.by_all));
}

LossValue plain_loss(const LossRow& row, const LossTerms& terms) {
  const CrossEntropy c = cross_entropy(row, terms);
  if (row.gradient || row.half_gradient) {
    const Gradient g{row, terms.soft_cap};
    const auto part = [&](long, auto lanes, F32 l) {
      return ce_part(c, l, lanes);
    };
    const float l = row.logits[row.target];
    const float d = g.at(row.target, part) + c.by_target;
    g.write(part);
    g.put(row.target, d, l);
  }
  return {row.weight * c.loss, c.log_prob};
}

// T^2 D has the gradient T * d D / d (l / T).
template <Divergence kind, class T>
LossValue dense_loss(
    const LossRow& row,
    const LossTerms& terms,
    const T* teacher
) {
  const CrossEntropy c = cross_entropy(row, terms);
  const float by = 1.0f / terms.temperature;
  const LogSoftmax s = log_softmax(row.logits, row.n, by);
  const LogSoftmax t = log_softmax(teacher, row.n, by);
  const auto logs = [&](long i, auto lanes, F32 l, F32& lp, F32& lq) {
    lp = fma(l, splat(by), splat(-s.lse));
    lq = fma(load(teacher + i, lanes), splat(by), splat(-t.lse));
  };
  F32 values = zero(), mean_slope = zero();
  each_vector(0, row.n, [&](long i, auto lanes) {
    F32 lp, lq;
    logs(i, lanes, load(row.logits + i, lanes), lp, lq);
    const F32 p = exp(lp), q = exp(lq);
    const Term term = divergence_term<kind>(p, lp, q, lq);
    values += only(term.value, lanes);
    mean_slope += only(weighted(p, term.slope), lanes);
  });
  const float temperature = terms.temperature;
  const float w = row.weight * terms.divergence_weight;
  if (row.gradient || row.half_gradient) {
    const F32 mean = splat(reduce_add(mean_slope));
    const F32 scale_by = splat(w * temperature);
    const Gradient g{row, terms.soft_cap};
    const auto part = [&](long i, auto lanes, F32 l) {
      F32 lp, lq;
      logs(i, lanes, l, lp, lq);
      const F32 p = exp(lp), q = exp(lq);
      F32 d;
      if constexpr (kind == Divergence::forward_kl)
        d = p - q;
      else
        d = weighted(p, divergence_term<kind>(p, lp, q, lq).slope - mean);
      return fma(scale_by, d, ce_part(c, l, lanes));
    };
    const float l = row.logits[row.target];
    const float d = g.at(row.target, part) + c.by_target;
    g.write(part);
    g.put(row.target, d, l);
  }
  const float value = reduce_add(values) * temperature * temperature;
  return {row.weight * (c.loss + terms.divergence_weight * value), c.log_prob};
}

// The student's outcomes as a sparse teacher sees them.
struct Outcomes {
  float lse;   // at the temperature
  float tail;  // probability of all others
  float log_tail;
};
Outcomes outcomes(const LossRow& row, float by, const TeacherRow& t) {
  float kept[kMaxTeacherEntries];
  const float m = row_max(row.logits, row.n);
  float listed = 0;
  for (long k = 0; k < t.count; ++k) {
    float& l = row.logits[t.indices[k]];
    kept[k] = l;
    listed += __builtin_expf((l - m) * by);
    l = -__builtin_inff();
  }
  const float others = sum_exp(row.logits, row.n, m, by);
  for (long k = 0; k < t.count; ++k) row.logits[t.indices[k]] = kept[k];
  const float all = listed + others;
  const float tail = others / all < 1e-20f ? 1e-20f : others / all;
  return {m * by + __builtin_logf(all), tail, __builtin_logf(tail)};
}

template <Divergence kind>
LossValue sparse_loss(
    const LossRow& row,
    const LossTerms& terms,
    const TeacherRow& teacher
) {
  const CrossEntropy c = cross_entropy(row, terms);
  const float by = 1.0f / terms.temperature;
  const Outcomes s = outcomes(row, by, teacher);
  float slopes[kMaxTeacherEntries], student[kMaxTeacherEntries];
  float value = 0, mean = 0, rest = 1;
  const auto join = [&](float p, float lp, float q, float lq) {
    const Term term =
        divergence_term<kind>(splat(p), splat(lp), splat(q), splat(lq));
    value += first_lane(term.value);
    const float slope = first_lane(term.slope);
    mean += p != 0 ? p * slope : 0.0f;
    return slope;
  };
  for (long k = 0; k < teacher.count; ++k) {
    const float lp = row.logits[teacher.indices[k]] * by - s.lse;
    const float lq = teacher.log_probs[k], q = __builtin_expf(lq);
    student[k] = __builtin_expf(lp);
    rest -= q;
    slopes[k] = join(student[k], lp, q, lq);
  }
  rest = rest > kTailFloor ? rest : kTailFloor;
  const float tail = join(s.tail, s.log_tail, rest, __builtin_logf(rest));
  const float temperature = terms.temperature;
  const float w = row.weight * terms.divergence_weight;
  if (row.gradient || row.half_gradient) {
    const Gradient g{row, terms.soft_cap};
    const float by_p = w * temperature * (tail - mean);
    const auto part = [&](long, auto lanes, F32 l) {
      const F32 p = exp(fma(l, splat(by), splat(-s.lse)));
      return fma(splat(by_p), p, ce_part(c, l, lanes));
    };
    const auto plain = [&](long, auto lanes, F32 l) {
      return ce_part(c, l, lanes);
    };
    float at_target = g.at(row.target, part) + c.by_target;
    const float l_target = row.logits[row.target];
    float logits[kMaxTeacherEntries];
    for (long k = 0; k < teacher.count; ++k) {
      const long i = teacher.indices[k];
      logits[k] = row.logits[i];
      const float d = student[k] != 0 ? student[k] * (slopes[k] - mean) : 0.0f;
      slopes[k] = g.at(i, plain) + w * temperature * d;
      if (i == row.target) at_target = slopes[k] + c.by_target;
    }
    g.write(part);
    for (long k = 0; k < teacher.count; ++k) {
      g.put(teacher.indices[k], slopes[k], logits[k]);
    }
    g.put(row.target, at_target, l_target);
  }
  value *= temperature * temperature;
  return {row.weight * (c.loss + terms.divergence_weight * value), c.log_prob};
}

template <Divergence kind>
LossValue divergence_loss(
    const LossRow& row,
    const LossTerms& terms,
    const TeacherRow& teacher
) {
  if (teacher.logits) return dense_loss<kind>(row, terms, teacher.logits);
  if (teacher.half_logits) {
    return dense_loss<kind>(row, terms, teacher.half_logits);
  }
  return sparse_loss<kind>(row, terms, teacher);
}

LossValue loss(
    const LossRow& row,
    const LossTerms& terms,
    const TeacherRow& teacher
) noexcept {
  if (terms.soft_cap > 0) cap_row(row.logits, row.n, terms.soft_cap);
  switch (terms.divergence) {
    case Divergence::forward_kl:
      return divergence_loss<Divergence::forward_kl>(row, terms, teacher);
    case Divergence::reverse_kl:
      return divergence_loss<Divergence::reverse_kl>(row, terms, teacher);
    case Divergence::jensen_shannon:
      return divergence_loss<Divergence::jensen_shannon>(row, terms, teacher);
    case Divergence::none:
      break;
  }
  return plain_loss(row, terms);
}

template <class In, class Out>
void scale_row(const In* in, long n, float by, Out* out) noexcept {
  const F32 k = splat(by);
  each_vector(0, n, [&](long i, auto lanes) {
    store(out + i, load(in + i, lanes) * k, lanes);
  });
}

}  // namespace

const HeadLossKernels head_loss{
    .softmax = softmax,
    .loss = loss,
    .scale_bf16 = scale_row<Bf16, Bf16>,
    .scale_to_bf16 = scale_row<float, Bf16>,
    .scale_f32 = scale_row<float, float>,
};

}  // namespace hearth::kernels::HEARTH_ISA
