#include <bit>
#include <cmath>
#include <tuple>

#include "hearth/ops/attention/gpu_document_codes_impl.h"

namespace hearth::ops {
namespace {

// How much more a score of the same document is. e^-128 is nothing to float32.
constexpr float kApart = 128;

// The second-order Reed-Muller code of length 2^variables: words of +1 and -1
// for every polynomial of degree two over the bits of a place. Two of them
// differ in at least a quarter of their places, so that their product is at
// most half of a word's with itself. (Rows of a Hadamard matrix, the first
// order, would be further apart; but there are only 2^(variables + 1) of them,
// and a row may hold as many documents as it has tokens.)
std::uint32_t monomials_at(std::uint32_t place, int variables) {
  std::uint32_t out = 1;
  int next = 1;
  const auto add = [&](std::uint32_t mask) {
    if ((place & mask) == mask) out |= 1u << next;
    ++next;
  };
  for (int i = 0; i < variables; ++i) add(1u << i);
  for (int i = 0; i < variables; ++i)
    for (int j = 0; j < i; ++j) add(1u << i | 1u << j);
  return out;
}
constexpr int kShort = 4, kLong = 5;  // variables
constexpr int words_of(int variables) {
  return 1 << (1 + variables + variables * (variables - 1) / 2);
}
static_assert(words_of(kShort) == 2048 && words_of(kLong) == 65536);

// Of `words` words, `width` values each.
mx::array make_code_words(int words, int width, float size) {
  const int variables = std::countr_zero(static_cast<unsigned>(width));
  std::vector<float> out;
  for (int w = 0; w < words; ++w)
    for (int place = 0; place < width; ++place) {
      const auto terms =
          monomials_at(static_cast<std::uint32_t>(place), variables) &
          static_cast<std::uint32_t>(w);
      out.push_back(std::popcount(terms) % 2 == 0 ? size : -size);
    }
  return mx::array(out.data(), {words, width}, mx::float32);
}

// All layers of a pass ask for the same words. As one array, a compiled step
// looks each token's code up once; as many, once for each layer.
mx::array code_words(int words, int width, float size) {
  struct Last {
    std::tuple<int, int, float> asked;
    mx::array words;
  };
  thread_local std::optional<Last> last;
  const std::tuple asked{words, width, size};
  if (!last || last->asked != asked) {
    last.emplace(Last{asked, make_code_words(words, width, size)});
  }
  return last->words;
}

}  // namespace

std::optional<int> document_code_width(int tokens) {
  if (tokens < words_of(kShort)) return 1 << kShort;
  if (tokens < words_of(kLong)) return 1 << kLong;
  return {};
}

mx::array document_codes(
    const mx::array& ids,
    float scale,
    mx::Dtype dtype,
    mx::StreamOrDevice s
) {
  const int tokens = ids.shape(1);
  const int width = document_code_width(tokens).value();
  // Half of size^2 width scale is what keeps two words apart.
  const float size =
      std::sqrt(2 * kApart / (static_cast<float>(width) * scale));
  const auto words = mx::astype(code_words(tokens + 1, width, size), dtype, s);
  return mx::take(
      words, mx::clip(ids, mx::array(0), mx::array(tokens), s), 0, s
  );
}

}  // namespace hearth::ops
