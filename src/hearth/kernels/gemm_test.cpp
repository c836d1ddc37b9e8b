// Every product family of every usable table against sums in double precision.
#include "hearth/kernels/gemm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hearth/base/aligned_buffer.h"
#include "hearth/kernels/table.h"

namespace hearth::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

float wide(Bf16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}
Bf16 narrow(float x) {
  const auto u = std::bit_cast<std::uint32_t>(x);
  if (std::isnan(x)) return {0x7fc0};
  return {static_cast<std::uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16)};
}

AlignedBuffer bytes(std::size_t n) {
  return {MemoryZone::named("gemm test"), std::max<std::size_t>(n, 64)};
}

struct Case {
  GemmScalar operand;
  long m, n, k;
  bool by_column, a_transposed;
  GemmScalar c_type = GemmScalar::f32;
};

// A matrix as values, and as the bytes of a type with a row stride.
struct Matrix {
  long rows, columns, stride;
  std::vector<float> values;
  std::vector<std::byte> data;

  Matrix(long r, long c, long spare)
      : rows(r), columns(c), stride(c + spare), values(std::size_t(r * c)) {}
  float& at(long r, long c) { return values[std::size_t(r * columns + c)]; }
  float at(long r, long c) const {
    return values[std::size_t(r * columns + c)];
  }
  // Stride gaps hold NaN, which must never reach a result. Nothing lies beyond
  // the last row's last element.
  void encode(GemmScalar type) {
    const std::size_t size = type == GemmScalar::f32    ? 4
                             : type == GemmScalar::bf16 ? 2
                                                        : 1;
    const long count = rows ? (rows - 1) * stride + columns : 0;
    data.assign(std::size_t(count) * size, std::byte{0x7f});
    if (type == GemmScalar::f32) fill(kNan);
    for (long r = 0; r < rows; ++r) {
      for (long c = 0; c < columns; ++c) put(type, r * stride + c, at(r, c));
    }
  }

 private:
  void fill(float x) {
    for (std::size_t i = 0; i + 4 <= data.size(); i += 4) {
      std::memcpy(&data[i], &x, 4);
    }
  }
  void put(GemmScalar type, long i, float x) {
    const auto index = std::size_t(i);
    if (type == GemmScalar::f32) {
      std::memcpy(&data[4 * index], &x, 4);
    } else if (type == GemmScalar::bf16) {
      const Bf16 h = narrow(x);
      std::memcpy(&data[2 * index], &h, 2);
    } else {
      data[index] = static_cast<std::byte>(static_cast<signed char>(x));
    }
  }
};

struct Problem {
  Case c;
  Matrix a, b;  // as stored
  explicit Problem(const Case& which, unsigned seed = 1)
      : c(which),
        a(c.a_transposed ? c.k : c.m, c.a_transposed ? c.m : c.k, 3),
        b(c.by_column ? c.n : c.k, c.by_column ? c.k : c.n, 5) {
    std::mt19937 random(seed);
    const bool whole = c.operand == GemmScalar::i8;
    std::uniform_real_distribution<float> real(-1, 1);
    std::uniform_int_distribution<int> integer(-128, 127);
    for (Matrix* m : {&a, &b}) {
      for (float& x : m->values) {
        x = whole ? float(integer(random)) : real(random);
        if (c.operand == GemmScalar::bf16) x = wide(narrow(x));
      }
    }
    encode();
  }
  void encode() {
    a.encode(c.operand);
    b.encode(c.operand);
  }
  double a_at(long i, long k) const {
    return c.a_transposed ? a.at(k, i) : a.at(i, k);
  }
  double b_at(long k, long j) const {
    return c.by_column ? b.at(j, k) : b.at(k, j);
  }
  // Sum and sum of magnitudes of every element.
  void sums(std::vector<double>& exact, std::vector<double>& size) const {
    exact.assign(std::size_t(c.m * c.n), 0);
    size = exact;
    std::vector<double> row(std::size_t(c.n));
    for (long k = 0; k < c.k; ++k) {
      for (long j = 0; j < c.n; ++j) row[std::size_t(j)] = b_at(k, j);
      for (long i = 0; i < c.m; ++i) {
        const double x = a_at(i, k);
        for (long j = 0; j < c.n; ++j) {
          const double y = x * row[std::size_t(j)];
          exact[std::size_t(i * c.n + j)] += y;
          size[std::size_t(i * c.n + j)] += std::abs(y);
        }
      }
    }
  }
};

struct Packed {
  AlignedBuffer data;
  Packed(const GemmFamily& f, const Problem& p)
      : data(bytes(f.packed_bytes(p.c.n, p.c.k))) {
    std::memset(data.data(), 0x7f, data.size());
    f.pack(args(p, data.data()), {0, p.c.n}, {0, p.c.k});
  }
  static GemmPack args(const Problem& p, void* to) {
    return {
        .source = p.b.data.data(),
        .type = p.c.operand,
        .stride = p.b.stride,
        .by_column = p.c.by_column,
        .n = p.c.n,
        .k = p.c.k,
        .packed = to
    };
  }
};

GemmArgs args_of(const Problem& p, const Packed& b, void* c, long stride) {
  return {
      .m = p.c.m,
      .n = p.c.n,
      .k = p.c.k,
      .a = p.a.data.data(),
      .a_stride = p.a.stride,
      .a_transposed = p.c.a_transposed,
      .packed = b.data.data(),
      .c = c,
      .c_stride = stride,
      .c_type = p.c.c_type
  };
}

std::string text(const Table& t, const Case& c, const char* family) {
  return std::string(t.isa) + " " + family + " " + std::to_string(c.m) + "x" +
         std::to_string(c.n) + "x" + std::to_string(c.k) +
         (c.by_column ? " by column" : "") +
         (c.a_transposed ? " A transposed" : "") +
         (c.c_type == GemmScalar::bf16 ? " to bf16" : "");
}

struct Named {
  const char* name;
  const GemmFamily* family;
};
std::vector<Named> families(const Table& t, GemmScalar operand) {
  if (operand == GemmScalar::f32) return {{"f32", &t.gemm->f32}};
  if (operand == GemmScalar::i8) return {{"i8", &t.gemm->i8}};
  return {{"bf16", &t.gemm->bf16}, {"bf16 widened", &t.gemm->bf16_widened}};
}

// C with a border that must not change.
struct Output {
  long m, n, stride;
  GemmScalar type;
  std::vector<std::uint32_t> words;
  std::vector<std::uint16_t> halves;
  Output(const Case& c, std::uint16_t initial = 0x4141)
      : m(c.m), n(c.n), stride(c.n + 2), type(c.c_type) {
    const auto count = std::size_t((m + 1) * stride);
    if (type == GemmScalar::bf16)
      halves.assign(count, initial);
    else
      words.assign(count, std::uint32_t(initial) << 16 | initial);
  }
  void* data() {
    return type == GemmScalar::bf16 ? static_cast<void*>(halves.data())
                                    : words.data();
  }
  double at(long i, long j) const {
    const auto index = std::size_t(i * stride + j);
    if (type == GemmScalar::bf16) return wide({halves[index]});
    if (type == GemmScalar::i32) return std::bit_cast<int>(words[index]);
    return std::bit_cast<float>(words[index]);
  }
  bool border_is(std::uint16_t initial) const {
    for (long i = 0; i <= m; ++i) {
      for (long j = i < m ? n : 0; j < stride; ++j) {
        const auto index = std::size_t(i * stride + j);
        if (type == GemmScalar::bf16 && halves[index] != initial) return false;
        if (type != GemmScalar::bf16 && (words[index] & 0xffff) != initial) {
          return false;
        }
      }
    }
    return true;
  }
  bool operator==(const Output&) const = default;
};

// A sum of k products, each rounded once or twice, and for bf16 the last
// rounding of the result (flushed to zero when subnormal).
double tolerance(const Case& c, double exact, double size) {
  if (c.operand == GemmScalar::i8) return 0;
  const double sum = size * double(c.k + 4) * 0x1p-23 + 1e-37;
  return c.c_type == GemmScalar::bf16 ? sum + std::abs(exact) * 0x1p-8 : sum;
}

void expect_near(
    const Output& got,
    const Case& c,
    const std::vector<double>& exact,
    const std::vector<double>& size,
    const std::string& what
) {
  for (long i = 0; i < c.m; ++i) {
    for (long j = 0; j < c.n; ++j) {
      const auto index = std::size_t(i * c.n + j);
      const double limit = tolerance(c, exact[index], size[index]);
      ASSERT_LE(std::abs(got.at(i, j) - exact[index]), limit)
          << what << " at " << i << ", " << j << ": " << got.at(i, j) << " for "
          << exact[index];
    }
  }
  ASSERT_TRUE(got.border_is(0x4141)) << what << " wrote beyond C";
}

void check(const Case& c) {
  const Problem p(c);
  std::vector<double> exact, size;
  p.sums(exact, size);
  for (const Table* t : usable_tables()) {
    for (const auto& [name, family] : families(*t, c.operand)) {
      const Packed b(*family, p);
      AlignedBuffer scratch = bytes(family->scratch_bytes);
      Output out(c);
      family->run(
          args_of(p, b, out.data(), out.stride), {0, c.m}, {0, c.n},
          scratch.data()
      );
      expect_near(out, c, exact, size, text(*t, c, name));
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

constexpr long kRows[] = {1, 2, 3, 5, 7, 11, 12, 13, 16, 17, 32, 33, 97, 130};
constexpr long kColumns[] = {1, 7, 15, 16, 17, 31, 32, 33, 64, 100};
constexpr long kDepths[] = {1, 2, 3, 4, 5, 31, 32, 33, 63, 64, 65, 130};

void check_small(GemmScalar operand, GemmScalar c_type) {
  for (const long m : kRows) {
    for (const long n : kColumns) {
      for (const long k : kDepths) {
        const bool by_column = (m + n + k) % 2 == 0;
        const bool transposed = operand != GemmScalar::i8 && (n + k) % 3 == 0;
        check({operand, m, n, k, by_column, transposed, c_type});
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(Gemm, SmallBf16) {
  check_small(GemmScalar::bf16, GemmScalar::f32);
}
TEST(Gemm, SmallBf16ToBf16) {
  check_small(GemmScalar::bf16, GemmScalar::bf16);
}
TEST(Gemm, SmallF32) {
  check_small(GemmScalar::f32, GemmScalar::f32);
}
TEST(Gemm, SmallI8) {
  check_small(GemmScalar::i8, GemmScalar::i32);
}

// Depths of several blocks, more than a group of columns, strides of 4 KiB.
TEST(Gemm, Large) {
  for (const auto operand : {GemmScalar::bf16, GemmScalar::f32}) {
    for (const auto to : {GemmScalar::bf16, GemmScalar::f32}) {
      for (const bool transposed : {false, true}) {
        check({operand, 257, 70, 1031, true, transposed, to});
        check({operand, 40, 560, 2100, false, transposed, to});
        check({operand, 5, 40, 4500, true, transposed, to});
        check({operand, 64, 33, 2048 - 3, true, transposed, to});
      }
    }
  }
  check({GemmScalar::i8, 101, 70, 5000, true, false, GemmScalar::i32});
  check({GemmScalar::i8, 257, 530, 1100, false, false, GemmScalar::i32});
}

TEST(Gemm, NoDepthGivesTheEpilogueAlone) {
  for (const auto operand : {GemmScalar::bf16, GemmScalar::f32}) {
    check({operand, 14, 35, 0, true, false});
  }
  check({GemmScalar::i8, 14, 35, 0, true, false, GemmScalar::i32});
}

// However rows and columns are shared out, the bits are the same.
TEST(Gemm, SplitDoesNotChangeResults) {
  for (const auto operand :
       {GemmScalar::bf16, GemmScalar::f32, GemmScalar::i8}) {
    const bool i8 = operand == GemmScalar::i8;
    for (const bool transposed : {false, true}) {
      if (i8 && transposed) continue;
      const Case c{
          operand,
          119,
          150,
          2300,
          true,
          transposed,
          i8 ? GemmScalar::i32 : GemmScalar::f32
      };
      const Problem p(c);
      for (const Table* t : usable_tables()) {
        for (const auto& [name, family] : families(*t, operand)) {
          const Packed b(*family, p);
          AlignedBuffer scratch = bytes(family->scratch_bytes);
          Output whole(c), split(c);
          family->run(
              args_of(p, b, whole.data(), whole.stride), {0, c.m}, {0, c.n},
              scratch.data()
          );
          const long middle = family->columns * 2;
          for (const GemmRange rows :
               {GemmRange{0, 1}, {1, 30}, {30, 37}, {37, c.m}}) {
            const auto args = args_of(p, b, split.data(), split.stride);
            family->run(args, rows, {0, middle}, scratch.data());
            family->run(args, rows, {middle, c.n}, scratch.data());
          }
          EXPECT_TRUE(whole == split) << text(*t, c, name);
        }
      }
    }
  }
}

TEST(Gemm, Epilogue) {
  for (const auto to : {GemmScalar::f32, GemmScalar::bf16}) {
    for (const long k : {40L, 2300L}) {
      for (const auto operand : {GemmScalar::bf16, GemmScalar::f32}) {
        const Case c{operand, 27, 45, k, true, false, to};
        const Problem p(c);
        std::vector<double> exact, size;
        p.sums(exact, size);
        std::vector<float> bias(std::size_t(c.n));
        for (std::size_t j = 0; j < bias.size(); ++j) bias[j] = float(j) - 7;
        for (auto& x : exact) x *= 0.25;
        for (std::size_t i = 0; i < exact.size(); ++i) {
          exact[i] += bias[i % bias.size()] + 2 * 12.0;
          size[i] += std::abs(exact[i]) + 40;
        }
        for (const Table* t : usable_tables()) {
          for (const auto& [name, family] : families(*t, operand)) {
            const Packed b(*family, p);
            AlignedBuffer scratch = bytes(family->scratch_bytes);
            Output out(c);
            // C and the residual hold 12 = 0x4140, as bf16 and (but for the
            // low half) as fp32.
            Output twelve(c, 0x4140);
            for (auto& w : twelve.words) w &= 0xffff0000u;
            auto args = args_of(p, b, out.data(), out.stride);
            args.scale = 0.25f;
            args.bias = bias.data();
            args.residual = twelve.data();
            args.residual_stride = twelve.stride;
            args.accumulate = true;
            for (long i = 0; i < c.m; ++i) {
              for (long j = 0; j < c.n; ++j) {
                const auto index = std::size_t(i * out.stride + j);
                if (to == GemmScalar::bf16)
                  out.halves[index] = 0x4140;
                else
                  out.words[index] = 0x41400000u;
              }
            }
            family->run(args, {0, c.m}, {0, c.n}, scratch.data());
            expect_near(out, c, exact, size, text(*t, c, name));
          }
        }
      }
    }
  }
}

// Packed in pieces, as an optimiser does, from fp32 or from bf16: the same.
TEST(Gemm, PackingInParts) {
  for (const bool by_column : {false, true}) {
    const Case c{GemmScalar::bf16, 1, 107, 203, by_column, false};
    const Problem p(c);
    Problem f32 = p;
    f32.b.encode(GemmScalar::f32);
    for (const Table* t : usable_tables()) {
      for (const auto& [name, family] : families(*t, c.operand)) {
        const Packed whole(*family, p);
        AlignedBuffer parts = bytes(whole.data.size());
        std::memset(parts.data(), 0x7f, parts.size());
        GemmPack args = Packed::args(f32, parts.data());
        args.type = GemmScalar::f32;
        const long j = family->columns * 3, k = family->depth * 2;
        family->pack(args, {j, c.n}, {k, c.k});
        family->pack(args, {0, j}, {0, k});
        family->pack(args, {j, c.n}, {0, k});
        family->pack(args, {0, j}, {k, c.k});
        EXPECT_EQ(std::memcmp(parts.data(), whole.data.data(), parts.size()), 0)
            << text(*t, c, name);
      }
    }
  }
}

TEST(Gemm, NanAndInfinityStayInTheirRowAndColumn) {
  for (const auto operand : {GemmScalar::bf16, GemmScalar::f32}) {
    for (const bool transposed : {false, true}) {
      const Case c{operand, 29, 45, 67, true, transposed};
      Problem p(c);
      (transposed ? p.a.at(66, 13) : p.a.at(13, 66)) = kNan;
      (transposed ? p.a.at(0, 4) : p.a.at(4, 0)) = kInf;
      p.b.at(44, 5) = kNan;
      p.encode();
      for (const Table* t : usable_tables()) {
        for (const auto& [name, family] : families(*t, operand)) {
          const Packed b(*family, p);
          AlignedBuffer scratch = bytes(family->scratch_bytes);
          Output out(c);
          family->run(
              args_of(p, b, out.data(), out.stride), {0, c.m}, {0, c.n},
              scratch.data()
          );
          for (long i = 0; i < c.m; ++i) {
            for (long j = 0; j < c.n; ++j) {
              const double x = out.at(i, j);
              const bool as_expected = i == 13 || j == 44 ? std::isnan(x)
                                       : i == 4           ? std::isinf(x)
                                                          : std::isfinite(x);
              EXPECT_TRUE(as_expected)
                  << text(*t, c, name) << ": " << x << " at " << i << ", " << j;
            }
          }
        }
      }
    }
  }
}

TEST(Gemm, TheChosenBf16FamilyIsOneOfTheTables) {
  for (const Table* t : usable_tables()) {
    const GemmFamily* chosen = &bf16_gemm(*t);
    EXPECT_TRUE(chosen == &t->gemm->bf16 || chosen == &t->gemm->bf16_widened);
    EXPECT_EQ(chosen, &bf16_gemm(*t));
    if (!t->peak->bf16) {
      EXPECT_EQ(chosen, &t->gemm->bf16_widened);
    }
  }
}

}  // namespace
}  // namespace hearth::kernels
