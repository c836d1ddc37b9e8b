#include "hearth/ops/head_loss/cpu_plan.h"

#include <algorithm>

#include "hearth/ops/gemm.h"

namespace hearth::ops {
namespace {

using kernels::GemmFamily;
using kernels::GemmScalar;

constexpr long kMaxChunk = 512, kMinChunk = 32;
// Logits a thread holds before they become exponentials: most of its cache.
// Tiles copy their rows of h for every stretch, so they take longer ones.
constexpr long kStretchFloats = 96 * 1024, kTileStretchFloats = 192 * 1024;

// Hands out pieces of scratch; without memory it only counts.
class Arena {
 public:
  explicit Arena(std::byte* base) : base_(base) {}
  template <class T>
  T* take(long count) {
    const std::size_t at = used_;
    used_ += (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return base_ ? reinterpret_cast<T*>(base_ + at) : nullptr;
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

long whole_blocks(long n) {
  constexpr long kBlock = HeadLossPlan::kBlock;
  return (n + kBlock - 1) / kBlock * kBlock;
}
// A row apart from the next by an odd number of lines, so that rows do not
// fall into the same cache sets.
long padded(long n, long per_line) {
  const long lines = (n + per_line - 1) / per_line;
  return (lines + (lines % 2 == 0 ? 1 : 0)) * per_line;
}

}  // namespace

HeadLossPlan::HeadLossPlan(
    const HeadLossTask& t,
    const GemmFamily& f,
    int threads,
    std::byte* base
)
    : task(t), family(f), gradients(t.dh != nullptr) {
  running = t.terms.soft_cap == 0 && t.terms.label_smoothing == 0 &&
            t.terms.divergence == kernels::Divergence::none &&
            (t.type == GemmScalar::bf16 || !gradients);
  // Tiles want B to serve many rows; vectors have tall blocks of their own.
  tiles = family.rows >= 32;
  block_rows = tiles ? 256 : 96;
  stretch = (tiles ? kTileStretchFloats : kStretchFloats) / block_rows /
            family.columns * family.columns;
  blocks = running && gradients && family.reads_blocks;
  logits_stride = padded(t.vocabulary, 16);
  choose_chunk();
  bytes = lay_out(base, threads);
}

long HeadLossPlan::row_bytes() const {
  if (!running) return logits_stride * 4;
  if (blocks) return whole_blocks(task.vocabulary) * 2;
  return gradients ? padded(task.vocabulary, 32) * 2 : 0;
}

long HeadLossPlan::h_stride() const {
  return blocks ? whole_blocks(task.dim) : task.dim;
}

bool HeadLossPlan::packs_itself() const {
  return !task.packed || &task.packed->family() != &family ||
         (gradients && !task.packed->backward());
}

long HeadLossPlan::gradient_stride() const {
  return row_bytes() / element_bytes(task.type);
}

// As large as the limit allows. Where chunks end decides how dW is summed, so
// the number of threads must not matter.
void HeadLossPlan::choose_chunk() {
  chunk = kMinChunk;
  const std::size_t least = lay_out(nullptr, 1);
  chunk = 2 * kMinChunk;
  const std::size_t step = lay_out(nullptr, 1) - least;
  std::size_t spare =
      task.scratch_limit > least ? task.scratch_limit - least : 0;
  // Tiles multiply a chunk in about the time that adding up dW takes; vectors
  // are so much slower that half of it is as good.
  if (!tiles && !packs_itself()) spare /= 2;
  const auto steps = static_cast<long>(spare / step);
  chunk = std::min(kMaxChunk, kMinChunk * (1 + steps));
  chunk = std::min(chunk, std::max(task.tokens, 1L));
}

std::size_t HeadLossPlan::lay_out(std::byte* base, int threads) {
  Arena arena(base);
  const HeadLossTask& t = task;
  const bool own = packs_itself();
  gemm = arena.take<std::byte>(static_cast<long>(
      weight_gradient_scratch_bytes(family, chunk, t.dim, threads)
  ));
  const auto packed = [&](long n, long k) {
    return arena.take<std::byte>(
        own ? static_cast<long>(family.packed_bytes(n, k)) : 0
    );
  };
  forward = packed(t.vocabulary, t.dim);
  if (gradients) backward = packed(t.dim, t.vocabulary);
  if (running) stretches = arena.take<float>(threads * block_rows * stretch);
  rows = arena.take<std::byte>(whole_blocks(chunk) * row_bytes());
  h = arena.take<std::byte>(
      whole_blocks(chunk) * h_stride() * element_bytes(t.type)
  );
  if (gradients) {
    if (running) {
      scaled_h = arena.take<std::byte>(chunk * t.dim * element_bytes(t.type));
    }
    dh = arena.take<float>(chunk * t.dim);
  }
  states = arena.take<HeadRow>(chunk);
  active = arena.take<int>(t.tokens);
  return arena.used();
}

}  // namespace hearth::ops
