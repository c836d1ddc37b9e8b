// Products that are summed in one: against sums in double precision, whatever
// the split, and stored past the caches.
#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "hearth/base/aligned_buffer.h"
#include "hearth/base/random.h"
#include "hearth/kernels/table.h"

namespace hearth::kernels {
namespace {

AlignedBuffer room(std::size_t bytes) {
  return {MemoryZone::named("gemm terms test"), bytes + 64};
}

// Values a bf16 holds exactly, in either type.
struct Values {
  long rows, columns;
  std::vector<float> wide;
  AlignedBuffer data;

  Values(long r, long c, GemmScalar type, std::uint64_t seed)
      : rows(r),
        columns(c),
        wide(std::size_t(r * c)),
        data(room(wide.size() * 4)) {
    RandomStream random{RandomKey(seed)};
    for (std::size_t i = 0; i < wide.size(); ++i) {
      const auto x = static_cast<float>(random.normal());
      const auto bits = __builtin_bit_cast(std::uint32_t, x) & 0xffff0000u;
      wide[i] = __builtin_bit_cast(float, bits);
      if (type == GemmScalar::f32) {
        std::memcpy(data.data() + 4 * i, &wide[i], 4);
      } else {
        const auto half = static_cast<std::uint16_t>(bits >> 16);
        std::memcpy(data.data() + 2 * i, &half, 2);
      }
    }
  }
  double at(long r, long c) const { return wide[std::size_t(r * columns + c)]; }
};

struct Term {
  Values a, w;
  AlignedBuffer packed;
  Term(const GemmFamily& f, long m, long n, long k, std::uint64_t seed)
      : a(m, k, f.operand, seed),
        w(n, k, f.operand, seed + 1),
        packed(room(f.packed_bytes(n, k))) {
    f.pack(
        {.source = w.data.data(),
         .type = f.operand,
         .stride = k,
         .by_column = true,
         .n = n,
         .k = k,
         .packed = packed.data()},
        {0, n}, {0, k}
    );
  }
  GemmTerm args() const {
    return {a.data.data(), a.columns, a.columns, packed.data()};
  }
};

class Product {
 public:
  Product(const GemmFamily& f, long m, long n, const std::vector<long>& depths)
      : family_(f), m_(m), n_(n), scratch_(room(f.scratch_bytes)) {
    for (const long k : depths) {
      terms_.emplace_back(f, m, n, k, 7 * terms_.size() + 1);
    }
    for (std::size_t t = 1; t < terms_.size(); ++t) {
      more_.push_back(terms_[t].args());
    }
  }

  // C, computed in parts that begin at the given rows and columns.
  std::vector<float> run(
      const std::vector<GemmRange>& rows,
      const std::vector<GemmRange>& columns
  ) {
    std::vector<float> c(std::size_t(m_ * n_), -1);
    const GemmArgs g = args(c.data(), GemmScalar::f32);
    for (const GemmRange& r : rows) {
      for (const GemmRange& j : columns) {
        family_.run(g, r, j, scratch_.data());
      }
    }
    return c;
  }

  AlignedBuffer halves(bool past) {
    AlignedBuffer c = room(std::size_t(m_ * n_) * 2);
    std::memset(c.data(), 0x55, c.size());
    GemmArgs g = args(c.data(), GemmScalar::bf16);
    g.past_caches = past;
    family_.run(g, {0, m_}, {0, n_}, scratch_.data());
    return c;
  }

  void expect_near(const std::vector<float>& c, const char* isa) const {
    for (long i = 0; i < m_; i += i < 3 ? 1 : 37) {
      for (long j = 0; j < n_; ++j) {
        double exact = 0, size = 0;
        long depth = 0;
        for (const Term& t : terms_) {
          depth += t.a.columns;
          for (long k = 0; k < t.a.columns; ++k) {
            const double x = t.a.at(i, k) * t.w.at(j, k);
            exact += x, size += std::abs(x);
          }
        }
        const double limit = size * double(depth + 4) * 0x1p-23;
        ASSERT_NEAR(c[std::size_t(i * n_ + j)], exact, limit)
            << isa << " " << i << ", " << j;
      }
    }
  }

 private:
  const GemmFamily& family_;
  long m_, n_;
  AlignedBuffer scratch_;
  std::vector<Term> terms_;
  std::vector<GemmTerm> more_;

  GemmArgs args(void* c, GemmScalar type) const {
    const GemmTerm first = terms_[0].args();
    return {
        .m = m_,
        .n = n_,
        .k = first.k,
        .a = first.a,
        .a_stride = first.a_stride,
        .packed = first.packed,
        .c = c,
        .c_stride = n_,
        .c_type = type,
        .more = more_
    };
  }
};

template <class Body>
void each_family(const Body& body) {
  for (const Table* t : usable_tables()) {
    for (const auto* f :
         {&t->gemm->bf16, &t->gemm->bf16_widened, &t->gemm->f32})
      body(*f, t->isa);
  }
}

// One block of depth; depth that ends within a tile; blocks of several; more
// rows than a tall block has.
const std::vector<std::vector<long>> kDepths = {
    {40}, {64, 16}, {33, 7, 96}, {600, 600, 3}, {2048, 600}, {3000, 40, 1500}
};

TEST(GemmTerms, AreTheirSum) {
  each_family([](const GemmFamily& f, const char* isa) {
    for (const auto& depths : kDepths) {
      const long rows = depths.size() == 1 ? 1100 : 150;
      Product p(f, rows, 70, depths);
      p.expect_near(p.run({{0, rows}}, {{0, 70}}), isa);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST(GemmTerms, SplitDoesNotChangeThem) {
  each_family([](const GemmFamily& f, const char* isa) {
    for (const auto& depths : kDepths) {
      const long rows = 150, cut = 96;
      Product p(f, rows, 70, depths);
      const auto whole = p.run({{0, rows}}, {{0, 70}});
      const auto parts = p.run({{0, cut}, {cut, rows}}, {{0, 32}, {32, 70}});
      EXPECT_EQ(whole, parts) << isa;
    }
  });
}

TEST(GemmTerms, PastTheCachesNoBitChanges) {
  for (const Table* t : usable_tables()) {
    for (const long n : {96L, 70L}) {
      Product p(t->gemm->bf16, 77, n, {64, 16});
      const AlignedBuffer plain = p.halves(false), past = p.halves(true);
      EXPECT_EQ(std::memcmp(plain.data(), past.data(), plain.size()), 0)
          << t->isa << " " << n;
    }
  }
}

}  // namespace
}  // namespace hearth::kernels
