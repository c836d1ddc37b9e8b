// Sizes are {rows, heads, kv_heads, dim, page tokens, longest row}. Rows are
// of different lengths, the last the longest. Our kernels' column runs the
// GPU's form as well: a CPU that is no stand-in has a pass of its own
// (infer/cpu/pass.h). op_test.cpp has what a case cannot say: the pages written
// in place, and what others have left in them.
#include "hearth/ops/op_case.h"
#include "hearth/ops/paged_attention/op.h"

namespace hearth::ops {
namespace {

PageRows rows_of_case(const Arrays& v) {
  return {v[2], v[3]};
}

// qkv, pool, pages, lengths, table
Arrays paged_inputs(const Size& n, mx::Dtype t, std::uint64_t seed) {
  const int rows = n[0], heads = n[1], kv = n[2], dim = n[3], page = n[4];
  const int longest = n[5], per_row = longest / page + 1;
  std::vector<int> lengths, pages;
  for (int r = 0; r < rows; ++r) lengths.push_back(longest * (r + 1) / rows);
  // A row's pages lie apart, and backwards.
  for (int r = 0; r < rows; ++r) {
    for (int p = 0; p < per_row; ++p)
      pages.push_back((per_row - 1 - p) * rows + r);
  }
  return {
      normal_input({rows, 1, heads + 2 * kv, dim}, t, seed),
      normal_input({rows * per_row, 2, kv, page, dim}, t, seed + 1),
      mx::array(pages.data(), {rows, per_row}, mx::int32),
      mx::array(lengths.data(), {rows}, mx::int32),
      normal_input({longest + 1, dim}, at_least_float32(t), seed + 2)
  };
}

OpCase paged_case(const char* name, const AttentionOptions& options) {
  OpCase c;
  c.name = name;
  c.sizes = {
      {1, 2, 1, 8, 4, 0},
      {3, 6, 2, 64, 16, 47},
      {2, 3, 3, 24, 8, 21},
      {2, 4, 2, 16, 32, 1500}
  };
  c.inputs = paged_inputs;
  // The pages are written where they lie: a copy of the case's.
  c.run = [options](const Arrays& v) {
    return Arrays{paged_attention(
        {v[0]}, leaf_input(v[1]), rows_of_case(v), v[4], options
    )};
  };
  c.reference = [options](const Arrays& v) {
    return Arrays{
        paged_attention_reference({v[0]}, v[1], rows_of_case(v), v[4], options)
    };
  };
  c.float32 = {{1e-5, 1e-5}, {}};
  // The rotated key is rounded as the pages hold it.
  c.bfloat16 = {{2e-2, 2e-2}, {}};
  c.only_builds = false;
  // op_test.cpp: what is broken beyond a row's end must not be seen.
  c.check_special_values = false;
  c.allocates = false;
  return c;
}

}  // namespace

std::vector<OpCase> paged_attention_cases() {
  return {
      paged_case("paged_attention", {}),
      paged_case("paged_attention_window", {.window = 5}),
      paged_case("paged_attention_softcap", {.softcap = 2})
  };
}

}  // namespace hearth::ops
