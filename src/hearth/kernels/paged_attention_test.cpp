// Attention over pages against the definition in double precision, for every
// table, format and shape of page.
#include "hearth/kernels/paged_attention.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "hearth/base/random.h"
#include "hearth/kernels/table.h"

namespace hearth::kernels {
namespace {

std::size_t index(long i) {
  return static_cast<std::size_t>(i);
}

struct Case {
  KvFormat format;
  long dim, page_tokens, tokens, queries, group, window;
  float softcap;
};

// A sequence in pages, and as plain numbers.
class Filled {
 public:
  Filled(const Table& table, const Case& c) : case_(c) {
    RandomStream random{RandomKey(11)};
    const long pages = (c.tokens + c.page_tokens - 1) / c.page_tokens;
    constexpr std::size_t kBefore = 64;  // what others keep in the page
    const std::size_t bytes =
        kBefore + kv_part_bytes(c.format, c.dim, c.page_tokens);
    for (long p = 0; p < pages; ++p) {
      // Numbers of an earlier use lie where no token is yet.
      memory_.emplace_back(bytes / 4, 0x7f7f7f7f);
      pages_.push_back(reinterpret_cast<std::byte*>(memory_.back().data()));
    }
    kv_ = {c.format, c.dim, c.page_tokens, pages_.data(), kBefore};
    for (auto* rows : {&keys_, &values_}) {
      for (long i = 0; i < c.tokens * c.dim; ++i) {
        rows->push_back(static_cast<float>(random.normal()));
      }
    }
    for (long i = 0; i < c.queries * c.group * c.dim; ++i) {
      queries_.push_back(
          static_cast<float>(random.normal() * 2.4 / std::sqrt(double(c.dim)))
      );
    }
    for (long t = 0; t < c.tokens; ++t) {
      table.paged_attention->append(
          kv_, t, keys_.data() + t * c.dim, values_.data() + t * c.dim
      );
    }
  }

  const PagedKv& kv() const { return kv_; }
  const float* queries() const { return queries_.data(); }
  float& query_element(long i) { return queries_[index(i)]; }
  const float* keys() const { return keys_.data(); }
  const float* values() const { return values_.data(); }

  std::vector<double> expected(long query, long head) const {
    const Case& c = case_;
    const long position = c.tokens - c.queries + query;
    const float* q = queries_.data() + (query * c.group + head) * c.dim;
    std::vector<double> weights(index(c.tokens));
    double top = -INFINITY, sum = 0;
    const auto sees = [&](long t) {
      return t <= position && (c.window == 0 || t > position - c.window);
    };
    for (long t = 0; t < c.tokens; ++t) {
      double s = 0;
      for (long i = 0; i < c.dim; ++i) {
        s += double{q[i]} * double{keys_[index(t * c.dim + i)]};
      }
      if (c.softcap > 0) s = c.softcap * std::tanh(s / c.softcap);
      weights[index(t)] = sees(t) ? s : -INFINITY;
      top = std::max(top, weights[index(t)]);
    }
    for (double& w : weights) sum += w = std::exp(w - top);
    std::vector<double> out(index(c.dim));
    for (long t = 0; t < c.tokens; ++t) {
      for (long i = 0; i < c.dim; ++i) {
        out[index(i)] +=
            weights[index(t)] / sum * double{values_[index(t * c.dim + i)]};
      }
    }
    return out;
  }

 private:
  Case case_;
  std::vector<std::vector<std::uint32_t>> memory_;
  std::vector<std::byte*> pages_;
  PagedKv kv_;
  std::vector<float> keys_, values_, queries_;
};

double tolerance(KvFormat f) {
  return f == KvFormat::f32    ? 2e-5
         : f == KvFormat::f16  ? 2e-3
         : f == KvFormat::bf16 ? 1e-2
                               : 2e-2;
}

std::vector<float> attend(
    const Table& table,
    const Filled& filled,
    const Case& c,
    long first_query,
    long queries
) {
  PagedAttentionArgs a;
  a.kv = filled.kv();
  a.q = filled.queries() + first_query * c.group * c.dim;
  a.q_stride = c.group * c.dim;
  a.queries = queries, a.group = c.group;
  a.first = c.tokens - c.queries + first_query;
  a.window = c.window, a.softcap = c.softcap;
  const long stride = paged_partial_floats(queries, c.group, c.dim);
  const long end = a.first + queries;
  const long chunks = (end + kPagedChunk - 1) / kPagedChunk;
  std::vector<float> partial(index(stride * chunks), NAN);
  for (long i = 0; i < chunks; ++i) {
    table.paged_attention->attend(
        a, i * kPagedChunk, std::min((i + 1) * kPagedChunk, end),
        partial.data() + i * stride
    );
  }
  std::vector<float> out(index(queries * c.group * c.dim));
  for (long r = 0; r < queries * c.group; ++r) {
    table.paged_attention->combine(
        partial.data() + r * (c.dim + 2), chunks, stride, c.dim,
        out.data() + r * c.dim
    );
  }
  return out;
}

const Case kCases[] = {
    {KvFormat::f32, 64, 32, 70, 1, 3, 0, 0},
    {KvFormat::bf16, 64, 32, 600, 1, 3, 0, 0},
    {KvFormat::f16, 128, 16, 257, 2, 4, 0, 0},
    {KvFormat::i8, 64, 64, 300, 3, 2, 0, 0},
    {KvFormat::bf16, 80, 16, 33, 1, 7, 0, 0},
    {KvFormat::i8, 36, 32, 40, 5, 1, 0, 0},
    {KvFormat::f32, 12, 16, 17, 4, 1, 5, 0},
    {KvFormat::bf16, 256, 32, 520, 2, 2, 260, 30},
    {KvFormat::f32, 64, 16, 90, 3, 2, 0, 2},
    {KvFormat::bf16, 80, 32, 70, 1, 5, 0, 2},
    {KvFormat::f16, 256, 16, 300, 2, 2, 40, 2},
    {KvFormat::i8, 256, 32, 290, 2, 2, 260, 2},
    {KvFormat::i8, 36, 16, 40, 1, 4, 0, 2},
};

TEST(PagedAttention, AgreesWithTheDefinition) {
  for (const Table* table : usable_tables()) {
    for (const Case& c : kCases) {
      const Filled filled(*table, c);
      const auto got = attend(*table, filled, c, 0, c.queries);
      for (long q = 0; q < c.queries; ++q) {
        for (long g = 0; g < c.group; ++g) {
          const auto want = filled.expected(q, g);
          for (long i = 0; i < c.dim; ++i) {
            ASSERT_NEAR(
                got[index((q * c.group + g) * c.dim + i)], want[index(i)],
                tolerance(c.format)
            ) << table->isa
              << " dim " << c.dim << " query " << q << " head " << g;
          }
        }
      }
    }
  }
}

TEST(PagedAttention, AQueryIsTheSameAloneAndAmongOthers) {
  for (const Table* table : usable_tables()) {
    for (const Case& c : kCases) {
      const Filled filled(*table, c);
      const auto all = attend(*table, filled, c, 0, c.queries);
      for (long q = 0; q < c.queries; ++q) {
        const auto one = attend(*table, filled, c, q, 1);
        for (std::size_t i = 0; i < one.size(); ++i) {
          ASSERT_EQ(one[i], all[index(q) * one.size() + i]) << table->isa;
        }
      }
    }
  }
}

// Some tables multiply keys of bytes as bytes: what they make of a query, one
// of whose elements dwarfs the others too, must not be seen beside what the
// keys have lost.
TEST(PagedAttention, TablesAgreeOnTheSameBytes) {
  const Table& plain = *tables().front();
  for (const Table* table : usable_tables()) {
    for (const Case& c : kCases) {
      if (c.format != KvFormat::i8) continue;
      Filled filled(plain, c);
      filled.query_element(c.dim / 2) *= 20;
      const auto want = attend(plain, filled, c, 0, c.queries);
      const auto got = attend(*table, filled, c, 0, c.queries);
      for (std::size_t i = 0; i < want.size(); ++i) {
        ASSERT_NEAR(got[i], want[i], 1e-3) << table->isa << " at " << i;
      }
    }
  }
}

// Scores far above the cap, where a table that forgot it, or took it before
// the scales of bytes, is far off.
TEST(PagedAttention, CappedScoresAreTheGenericTables) {
  const Table& plain = *tables().front();
  for (const Table* table : usable_tables()) {
    for (const Case& c : kCases) {
      if (c.softcap == 0) continue;
      Filled filled(plain, c);
      for (long i = 0; i < c.queries * c.group * c.dim; ++i) {
        filled.query_element(i) *= 5;
      }
      const auto want = attend(plain, filled, c, 0, c.queries);
      const auto got = attend(*table, filled, c, 0, c.queries);
      Case uncapped = c;
      uncapped.softcap = 0;
      const auto other = attend(plain, filled, uncapped, 0, c.queries);
      double apart = 0;
      for (std::size_t i = 0; i < want.size(); ++i) {
        ASSERT_NEAR(got[i], want[i], 1e-3) << table->isa << " at " << i;
        apart = std::max(apart, std::abs(double{want[i]} - double{other[i]}));
      }
      EXPECT_GT(apart, 0.1) << "the cap has no say in this case";
    }
  }
}

TEST(PagedAttention, ChunksBeforeEveryWindowAreNotRead) {
  for (const Table* table : usable_tables()) {
    for (const Case& c : kCases) {
      const long seen = c.tokens - c.queries + 1 - c.window;
      if (c.window == 0 || seen < kPagedChunk) continue;
      const Filled filled(*table, c);
      const auto want = attend(*table, filled, c, 0, c.queries);
      const std::vector<float> odd(index(c.dim), NAN);
      for (long t = 0; t < kPagedChunk; ++t) {
        table->paged_attention->append(filled.kv(), t, odd.data(), odd.data());
      }
      EXPECT_EQ(attend(*table, filled, c, 0, c.queries), want) << table->isa;
    }
  }
}

TEST(PagedAttention, AQueryThatIsNotFiniteIsNotHidden) {
  for (const Table* table : usable_tables()) {
    for (const Case& c : kCases) {
      if (c.softcap > 0) continue;
      for (const float odd : {NAN, INFINITY}) {
        Filled filled(*table, c);
        filled.query_element(0) = odd;
        const auto got = attend(*table, filled, c, 0, c.queries);
        for (long i = 0; i < c.dim; ++i) {
          ASSERT_FALSE(std::isfinite(got[index(i)])) << table->isa;
        }
      }
    }
  }
}

TEST(PagedAttention, PagesComeBackAsRows) {
  for (const Table* table : usable_tables()) {
    for (const Case& c : kCases) {
      const Filled filled(*table, c);
      const long from = c.tokens > c.page_tokens ? c.page_tokens : 0;
      const auto count = index((c.tokens - from) * c.dim);
      std::vector<float> keys(count), values(count);
      table->paged_attention->gather(
          filled.kv(), from, c.tokens, false, keys.data(), values.data()
      );
      std::vector<Bf16> narrow_keys(count), narrow_values(count);
      table->paged_attention->gather(
          filled.kv(), from, c.tokens, true, narrow_keys.data(),
          narrow_values.data()
      );
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = index(from * c.dim) + i;
        const double t = 4 * tolerance(c.format);
        ASSERT_NEAR(keys[i], filled.keys()[at], t) << table->isa;
        ASSERT_NEAR(values[i], filled.values()[at], t) << table->isa;
        const float narrow =
            __builtin_bit_cast(float, std::uint32_t{narrow_keys[i].bits} << 16);
        ASSERT_NEAR(narrow, filled.keys()[at], t + 0.02) << table->isa;
      }
    }
  }
}

}  // namespace
}  // namespace hearth::kernels
