#pragma once
// Losses of rows of logits and their gradients. There are two ways: a running
// softmax over stretches of a row, for cross-entropy alone, and a whole row at
// once for every other loss. The products before and after are gemm.h's.
#include "hearth/kernels/scalar.h"

namespace hearth::kernels {

// A softmax in progress: max is a reference that e never exceeds by more than
// a factor of exp(60), sum is the sum of e = exp(logit - max).
struct SoftmaxRow {
  float max, sum;
};

enum class Divergence : unsigned char {
  none,
  forward_kl,     // KL(teacher || student)
  reverse_kl,     // KL(student || teacher)
  jensen_shannon  // mean of both to the even mixture
};

// loss = cross_entropy * (smoothed cross-entropy + z_loss * lse^2)
//      + divergence_weight * T^2 * D(teacher, student) at temperature T,
// all of it of c(logits), where c(l) = soft_cap * tanh(l / soft_cap).
struct LossTerms {
  float soft_cap = 0;  // 0: none
  float label_smoothing = 0, z_loss = 0;
  float cross_entropy = 1;
  Divergence divergence = Divergence::none;
  float divergence_weight = 0, temperature = 1;
};

// What a teacher says of one token: logits of the whole vocabulary, or the log
// probabilities (at the temperature asked for) of `count` different tokens;
// then all others are one more outcome, in teacher and student alike.
struct TeacherRow {
  const float* logits = nullptr;
  const Bf16* half_logits = nullptr;
  const int* indices = nullptr;
  const float* log_probs = nullptr;
  long count = 0;
};
inline constexpr long kMaxTeacherEntries = 1024;
// The least probability of that one more outcome.
inline constexpr float kTailFloor = 1e-7f;

struct LossRow {
  float* logits;  // n of them; overwritten
  long n;
  long target;  // in [0, n)
  float weight;
  // d loss / d logits, one of the two or none. May start where logits do.
  float* gradient = nullptr;
  Bf16* half_gradient = nullptr;
};
struct LossValue {
  float loss;      // times weight
  float log_prob;  // of the target, at temperature 1
};

struct HeadLossKernels {
  // Adds n more logits to a row's softmax, which has `done` of them (a multiple
  // of 32) and starts with sum = 0. e, where not null, holds the whole row's
  // exponentials, 32 together and `step` elements from there to the next 32;
  // those of earlier calls are scaled when max has to move.
  void (*softmax)(
      const float* logits,
      long n,
      Bf16* e,
      long step,
      long done,
      SoftmaxRow& row
  ) noexcept;
  LossValue (*loss)(
      const LossRow& row,
      const LossTerms& terms,
      const TeacherRow& teacher
  ) noexcept;
  // out[i] = in[i] * scale
  void (*scale_bf16)(const Bf16* in, long n, float scale, Bf16* out) noexcept;
  void (*scale_to_bf16)(
      const float* in,
      long n,
      float scale,
      Bf16* out
  ) noexcept;
  void (*scale_f32)(const float* in, long n, float scale, float* out) noexcept;
};

}  // namespace hearth::kernels
