#include "hearth/ops/gpu_kernel/self_check.h"

#include <exception>

#include <mlx/transforms.h>

#include "hearth/ops/arithmetic/gpu_squares.h"
#include "hearth/ops/embedding/op.h"
#include "hearth/ops/gate/op.h"
#include "hearth/ops/norm/op.h"
#include "hearth/ops/paged_attention/op.h"
#include "hearth/ops/rope/op.h"

namespace hearth::ops {
namespace {

// Values between -1 and 1 that need no random numbers.
mx::array wave(const mx::Shape& shape, float step, mx::StreamOrDevice s) {
  int size = 1;
  for (const int n : shape) size *= n;
  const auto at = mx::arange(0.0f, static_cast<float>(size), s);
  return mx::reshape(
      mx::sin(mx::multiply(at, mx::array(step), s), s), shape, s
  );
}

bool same(const mx::array& got, const mx::array& want, mx::StreamOrDevice s) {
  const auto as_float = [s](const mx::array& a) {
    return mx::astype(a, mx::float32, s);
  };
  return mx::allclose(as_float(got), as_float(want), 1e-3, 1e-3, false, s)
      .item<bool>();
}

bool same_with_gradients(
    const std::function<mx::array(const Arrays&)>& kernel,
    const std::function<mx::array(const Arrays&)>& definition,
    const Arrays& in,
    mx::StreamOrDevice s
) {
  const auto run = [&](const auto& f) {
    const auto once = [&f](const Arrays& v) { return Arrays{f(v)}; };
    const auto y = once(in)[0];
    auto [values, gradients] = mx::vjp(once, in, {wave(y.shape(), 0.7f, s)});
    gradients.push_back(values[0]);
    return gradients;
  };
  const Arrays got = run(kernel), want = run(definition);
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!same(got[i], want[i], s)) return false;
  }
  return true;
}

bool norms_agree(mx::StreamOrDevice s) {
  const Arrays in{
      wave({5, 64}, 0.1f, s), wave({5, 64}, 0.3f, s), wave({64}, 0.2f, s)
  };
  return same_with_gradients(
      [s](const Arrays& v) {
        const auto [h, y] = add_rms_norm(v[0], v[1], v[2], 1e-5f, true, s);
        return mx::add(h, y, s);
      },
      [s](const Arrays& v) {
        const auto h = mx::add(v[0], v[1], s);
        return mx::add(
            h, rms_norm_reference(h, v[2], 1e-5f, mx::float32, s), s
        );
      },
      in, s
  );
}

// The forward pass that keeps what its result is made again from.
bool kept_norms_agree(mx::StreamOrDevice s) {
  const auto x = wave({5, 64}, 0.1f, s), r = wave({5, 64}, 0.3f, s);
  const auto w = wave({64}, 0.2f, s);
  const auto h = mx::add(x, r, s);
  const auto y = rms_norm_reference(h, w, 1e-5f, mx::float32, s);
  const AddedNorm kept = add_rms_norm_kept(x, r, w, 1e-5f, true, s);
  return kept.again && same(kept.h, h, s) && same(kept.y, y, s) &&
         same(norm_again(*kept.again, s), y, s);
}

bool rotations_agree(mx::StreamOrDevice s) {
  const auto table = wave({9, 32}, 0.05f, s);
  const auto positions = mx::array({0, 3, 8}, mx::int32);
  return same_with_gradients(
      [&](const Arrays& v) {
        return rope(v[0], positions, table, RopePairs::halves, s);
      },
      [&](const Arrays& v) {
        return rope_reference(v[0], positions, table, RopePairs::halves, s);
      },
      {wave({2, 3, 2, 32}, 0.1f, s)}, s
  );
}

// Two query heads, a key head and a value head side by side.
bool joint_heads_agree(mx::StreamOrDevice s) {
  const auto table = wave({9, 32}, 0.05f, s);
  const auto positions = mx::array({0, 3, 8}, mx::int32);
  const auto heads = [s](const mx::array& x, int from, int to) {
    return mx::slice(x, {0, 0, from, 0}, {2, 3, to, 32}, s);
  };
  return same_with_gradients(
      [&](const Arrays& v) {
        return mx::concatenate(
            rope_heads(v[0], 2, 1, positions, table, RopePairs::halves, s), 2, s
        );
      },
      [&](const Arrays& v) {
        const auto rotated = rope_reference(
            heads(v[0], 0, 3), positions, table, RopePairs::halves, s
        );
        return mx::concatenate({rotated, heads(v[0], 3, 4)}, 2, s);
      },
      {wave({2, 3, 4, 32}, 0.1f, s)}, s
  );
}

bool gates_agree(mx::StreamOrDevice s) {
  return same_with_gradients(
      [s](const Arrays& v) {
        return gated_mlp_activation(v[0], v[1], Activation::silu, s);
      },
      [s](const Arrays& v) {
        const auto p = mx::sigmoid(v[0], s);
        return mx::multiply(mx::multiply(v[0], p, s), v[1], s);
      },
      {wave({4, 32}, 0.1f, s), wave({4, 32}, 0.2f, s)}, s
  );
}

bool rows_agree(mx::StreamOrDevice s) {
  const auto table = wave({10, 16}, 0.1f, s);
  const auto ids = mx::array({9, 0, 4, 4, 2, 1, 7, 8}, mx::int32);
  return same(
      embedding(ids, table, mx::float32, nullptr, s),
      mx::take(table, ids, 0, s), s
  );
}

bool squares_agree(mx::StreamOrDevice s) {
  const Arrays all{wave({3, 37}, 0.1f, s), wave({100}, 0.2f, s)};
  auto want = mx::array(0.0f);
  for (const auto& a : all)
    want = mx::add(want, mx::sum(mx::square(a, s), s), s);
  return same(sum_squares_graph(all, s), want, s);
}

// One row over many pages, whose keys several items share, and a short one.
bool pages_agree(mx::StreamOrDevice s) {
  constexpr int kDim = 16, kPage = 16, kPages = 70, kLong = 1100, kShort = 5;
  auto pool =
      mx::contiguous(wave({kPages + 1, 2, 1, kPage, kDim}, 0.37f, s), false, s);
  pool.eval();
  const auto first = mx::arange(kPages, s);
  const auto pages = mx::astype(
      mx::stack({first, mx::full({kPages}, kPages, mx::int32, s)}, 0, s),
      mx::int32, s
  );
  const PageRows rows{pages, mx::array({kLong, kShort}, mx::int32)};
  const Arrays qkv{wave({2, 1, 4, kDim}, 0.3f, s)};
  const auto angles = wave({kLong + 1, kDim}, 0.05f, s);
  auto want = paged_attention_reference(qkv, pool, rows, angles, {}, s);
  want.eval();
  return same(paged_attention(qkv, pool, rows, angles, {}, s), want, s);
}

// A prompt in two pieces over two pages, and a copy of one of these.
bool pieces_agree(mx::StreamOrDevice s) {
  constexpr int kTokens = 7, kFirst = 5, kDim = 16, kPage = 4;
  auto pool = mx::contiguous(wave({3, 2, 2, kPage, kDim}, 0.37f, s), false, s);
  pool.eval();
  const auto pages = mx::array({2, 0}, mx::int32);
  const auto k = wave({1, kTokens, 2, kDim}, 0.1f, s);
  const auto v = wave({1, kTokens, 2, kDim}, 0.3f, s);
  const auto part = [s](const mx::array& x, int from, int to) {
    return mx::slice(x, {0, from, 0, 0}, {1, to, 2, kDim}, s);
  };
  int from = 0;
  for (const int to : {kFirst, kTokens}) {
    auto [all_k, all_v] = append_to_pages(
        part(k, from, to), part(v, from, to), pool, pages, from, s
    );
    // What comes later reads what this has written.
    mx::eval(all_k, all_v);
    if (!same(all_k, part(k, 0, to), s) || !same(all_v, part(v, 0, to), s)) {
      return false;
    }
    from = to;
  }
  copy_page(pool, 2, 1, s).eval();
  const auto page = [&](int p) {
    return mx::slice(pool, {p, 0, 0, 0, 0}, {p + 1, 2, 2, kPage, kDim}, s);
  };
  return same(page(1), page(2), s) && !same(page(1), page(0), s);
}

}  // namespace

bool gpu_kernels_agree(mx::StreamOrDevice s) {
  try {
    return norms_agree(s) && kept_norms_agree(s) && rotations_agree(s) &&
           joint_heads_agree(s) && gates_agree(s) && rows_agree(s) &&
           squares_agree(s) && pages_agree(s) && pieces_agree(s);
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace hearth::ops
