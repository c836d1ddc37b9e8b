// A decoding step's kernel as a CPU runs it, against the definition: rows of
// other lengths side by side, over the borders of pages, over parts of long
// texts, with everything that a family may ask of attention.
#include "hearth/ops/paged_attention/op.h"

#include <gtest/gtest.h>

#include "hearth/ops/op_case.h"
#include "hearth/ops/op_case_check_impl.h"
#include "hearth/ops/rope/op.h"

namespace hearth::ops {
namespace {

struct Asked {
  int heads, kv_heads, dim, page;
  std::vector<int> lengths;
  int table = 0;  // its width; 0: none
  AttentionOptions options = {};
};

class PagedRows : public testing::TestWithParam<mx::Dtype> {
 protected:
  void SetUp() override { mx::set_default_device(mx::Device::cpu); }
  const ScopedFace face{Face::gpu};

  mx::array random(const mx::Shape& shape, std::uint64_t seed) const {
    return normal_input(shape, GetParam(), seed);
  }
  static mx::array whole(const mx::array& x) {
    auto y = mx::contiguous(x);
    y.eval();
    return y;
  }
  Tolerance tolerance() const {
    return GetParam() == mx::float32 ? Tolerance{1e-5, 1e-5}
                                     : Tolerance{2e-2, 2e-2};
  }

  void check(const Asked& a) const {
    const int rows = static_cast<int>(a.lengths.size());
    const int longest = *std::ranges::max_element(a.lengths);
    const int most = longest / a.page + 1;
    // The pages of a row lie apart and out of order.
    const int count = rows * most;
    std::vector<int> pages;
    for (int i = 0; i < count; ++i) pages.push_back(count - 1 - i * 7 % count);
    if (count % 7 == 0) {
      for (int i = 0; i < count; ++i) pages[std::size_t(i)] = count - 1 - i;
    }
    const PageRows at{
        mx::array(pages.data(), {rows, most}, mx::int32),
        mx::array(a.lengths.data(), {rows}, mx::int32)
    };
    const mx::Shape shape{count, 2, a.kv_heads, a.page, a.dim};
    const auto pool = whole(random(shape, 5));
    const auto before = whole(mx::add(pool, mx::array(0.0f, pool.dtype())));
    std::optional<mx::array> angles;
    if (a.table > 0) {
      angles = normal_input({longest + 3, a.table}, mx::float32, 6);
      angles->eval();
    }
    const auto qkv =
        whole(random({rows, 1, a.heads + 2 * a.kv_heads, a.dim}, 7));
    const auto part = [&](int from, int to) {
      return mx::slice(qkv, {0, 0, from, 0}, {rows, 1, to, a.dim});
    };
    const auto k = part(a.heads, a.heads + a.kv_heads);
    const auto v = part(a.heads + a.kv_heads, a.heads + 2 * a.kv_heads);
    const auto want =
        paged_attention_reference({qkv}, pool, at, angles, a.options);
    auto got = paged_attention({qkv}, pool, at, angles, a.options);
    EXPECT_EQ(first_difference(got, want, tolerance()), "");
    expect_written(a, before, pool, at, angles, k, v);
    // Once more, apart: it writes what is there already.
    got =
        paged_attention({part(0, a.heads), k, v}, pool, at, angles, a.options);
    EXPECT_EQ(first_difference(got, want, tolerance()), "");
  }

  // The new keys and values are in their places, and all else as it was.
  void expect_written(
      const Asked& a,
      const mx::array& before,
      const mx::array& after,
      const PageRows& at,
      const std::optional<mx::array>& angles,
      const mx::array& k,
      const mx::array& v
  ) const {
    auto keys = k;
    if (angles) {
      const auto place = mx::reshape(at.lengths, {at.lengths.shape(0), 1});
      keys = rope_reference(k, place, *angles, RopePairs::halves);
    }
    auto want = before;
    const int most = at.pages.shape(1);
    for (int r = 0; r < at.lengths.shape(0); ++r) {
      const int n = a.lengths[std::size_t(r)];
      const int page = at.pages.data<int>()[r * most + n / a.page];
      for (const int which : {0, 1}) {
        const auto& x = which == 0 ? keys : v;
        const auto row = mx::reshape(
            mx::slice(x, {r, 0, 0, 0}, {r + 1, 1, a.kv_heads, a.dim}),
            {1, 1, a.kv_heads, 1, a.dim}
        );
        want = mx::slice_update(
            want, row, mx::Shape{page, which, 0, n % a.page, 0},
            mx::Shape{page + 1, which + 1, a.kv_heads, n % a.page + 1, a.dim}
        );
      }
    }
    EXPECT_EQ(first_difference(after, want, tolerance()), "") << "pages";
  }
};

TEST_P(PagedRows, OfOtherLengthsSideBySide) {
  check({.heads = 4, .kv_heads = 2, .dim = 16, .page = 4, .lengths = {0}});
  check(
      {.heads = 6,
       .kv_heads = 2,
       .dim = 64,
       .page = 16,
       .lengths = {0, 3, 15, 16, 17, 64, 33}}
  );
  // A head for each key head, and more heads than a thread holds.
  check({.heads = 3, .kv_heads = 3, .dim = 8, .page = 8, .lengths = {9, 21}});
  check({.heads = 22, .kv_heads = 2, .dim = 32, .page = 4, .lengths = {13, 2}});
  // Heads of three eights a thread.
  check({.heads = 4, .kv_heads = 2, .dim = 96, .page = 4, .lengths = {13, 2}});
  check({.heads = 4, .kv_heads = 1, .dim = 256, .page = 4, .lengths = {13, 2}});
}

TEST_P(PagedRows, AreRotatedByTheirPlace) {
  for (const int table : {64, 32, 24, 8}) {
    check(
        {.heads = 4,
         .kv_heads = 2,
         .dim = 64,
         .page = 16,
         .lengths = {0, 40, 16},
         .table = table}
    );
  }
  check(
      {.heads = 4,
       .kv_heads = 2,
       .dim = 8,
       .page = 16,
       .lengths = {5, 40},
       .table = 8}
  );
}

TEST_P(PagedRows, WithWindowsCapsAndScales) {
  for (const int window : {1, 3, 8, 17, 500}) {
    check(
        {.heads = 4,
         .kv_heads = 2,
         .dim = 16,
         .page = 4,
         .lengths = {0, 3, 17, 39, 8},
         .table = 16,
         .options = {.window = window}}
    );
  }
  check(
      {.heads = 4,
       .kv_heads = 2,
       .dim = 16,
       .page = 4,
       .lengths = {11, 39},
       .options = {.scale = 0.7f, .softcap = 2}}
  );
}

TEST_P(PagedRows, LongTextsInParts) {
  for (const int window : {0, 700}) {
    check(
        {.heads = 4,
         .kv_heads = 2,
         .dim = 16,
         .page = 32,
         .lengths = {2500, 0, 1, 513, 2047},
         .table = 16,
         .options = {.window = window}}
    );
  }
}

TEST_P(PagedRows, WhatOthersLeftInAPageIsNotSeen) {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  auto pool = mx::full({3, 2, 1, 4, 8}, mx::array(nan, GetParam()));
  const auto ones = mx::ones({1, 2, 1, 2, 8}, GetParam());
  pool = whole(
      mx::slice_update(
          pool, ones, mx::Shape{1, 0, 0, 0, 0}, mx::Shape{2, 2, 1, 2, 8}
      )
  );
  const PageRows at{
      mx::array({1, 0}, {1, 2}, mx::int32), mx::array({2}, mx::int32)
  };
  auto got = paged_attention(
      {mx::ones({1, 1, 3, 8}, GetParam())}, pool, at, std::nullopt
  );
  EXPECT_TRUE(mx::all(mx::equal(got, mx::array(1.0f))).item<bool>());
}

TEST_P(PagedRows, PiecesOfAPromptComeBackWhole) {
  const auto pool = make_pages(4, 2, 4, 8, GetParam());
  const auto pages = mx::array({2, 0, 3}, mx::int32);
  const auto k = whole(random({1, 11, 2, 8}, 3));
  const auto v = whole(random({1, 11, 2, 8}, 4));
  const auto part = [](const mx::array& x, int from, int to) {
    return mx::slice(x, {0, from, 0, 0}, {1, to, 2, 8});
  };
  int from = 0;
  for (const int to : {3, 4, 9, 11}) {
    auto [all_k, all_v] = append_to_pages(
        part(k, from, to), part(v, from, to), pool, pages, from
    );
    mx::eval(all_k, all_v);
    EXPECT_TRUE(mx::array_equal(all_k, part(k, 0, to)).item<bool>()) << to;
    EXPECT_TRUE(mx::array_equal(all_v, part(v, 0, to)).item<bool>()) << to;
    from = to;
  }
  copy_page(pool, 2, 1).eval();
  const auto page = [&](int p) {
    return mx::slice(pool, {p, 0, 0, 0, 0}, {p + 1, 2, 2, 4, 8});
  };
  EXPECT_TRUE(mx::array_equal(page(1), page(2)).item<bool>());
  EXPECT_FALSE(mx::array_equal(page(1), page(0)).item<bool>());
}

INSTANTIATE_TEST_SUITE_P(
    Types,
    PagedRows,
    testing::Values(mx::float32, mx::bfloat16),
    [](const auto& item) {
      return item.param == mx::float32 ? "float32" : "bfloat16";
    }
);

}  // namespace
}  // namespace hearth::ops
