#include "hearth/kernels/quant/product.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/kernels/quant/half_impl.h"
#include "hearth/kernels/quant/test_matrix_impl.h"

namespace hearth::kernels {
namespace {

using Matrix = std::vector<float>;

struct Packed {
  PackedLayout layout;
  std::vector<std::uint8_t> bytes;
  Matrix weights;  // as the file's layout reads back, rows x cols
};

struct Scratch {
  std::vector<std::uint8_t> raw;
  explicit Scratch(std::size_t bytes) : raw(bytes + 64) {}
  void* aligned() {
    const auto at = reinterpret_cast<std::uintptr_t>(raw.data());
    return raw.data() + (64 - at % 64) % 64;
  }
};

Packed packed_random(const QuantFormat& f, long rows, long cols) {
  const Table& plain = *usable_tables().front();
  const auto n = static_cast<std::size_t>(rows * cols);
  const Quantized q = quantized(plain, f, random_floats(n, "w"), rows, cols);
  Packed p{packed_layout(f, rows, cols), {}, dequantized(plain, q)};
  p.bytes.resize(p.layout.bytes());
  pack_matrix(shared_pool(), p.layout, q.view(), p.bytes);
  return p;
}

Matrix product(
    const Table& t,
    ThreadPool& pool,
    const Packed& w,
    QuantCompute compute,
    Matrix x,
    long rows
) {
  Matrix y(static_cast<std::size_t>(rows * w.layout.rows), -1.0f);
  Scratch scratch(quant_product_scratch(w.layout, rows, compute, pool.size()));
  quant_product(
      t, pool, w.layout, w.bytes.data(), compute,
      {x.data(), w.layout.cols, false}, rows, {y.data(), w.layout.rows, false},
      scratch.aligned()
  );
  return y;
}

Matrix gradient(
    const Table& t,
    ThreadPool& pool,
    const Packed& w,
    Matrix dy,
    long rows
) {
  Matrix dx(static_cast<std::size_t>(rows * w.layout.cols), -1.0f);
  Scratch scratch(quant_gradient_scratch(w.layout, rows, pool.size()));
  quant_gradient(
      t, pool, w.layout, w.bytes.data(), {dy.data(), w.layout.rows, false},
      rows, {dx.data(), w.layout.cols, false}, scratch.aligned()
  );
  return dx;
}

// y = x * w^T in double, and the sum of magnitudes that errors scale with.
struct Reference {
  std::vector<double> y, size;
};
Reference reference(const Matrix& x, const Matrix& w, long m, long n, long k) {
  Reference r;
  for (long i = 0; i < m; ++i) {
    for (long j = 0; j < n; ++j) {
      double sum = 0, size = 0;
      for (long c = 0; c < k; ++c) {
        const double term = double{x[static_cast<std::size_t>(i * k + c)]} *
                            double{w[static_cast<std::size_t>(j * k + c)]};
        sum += term, size += std::abs(term);
      }
      r.y.push_back(sum), r.size.push_back(size);
    }
  }
  return r;
}

// x rounded as kInt8's contract says, in double.
Matrix rounded(const Matrix& x, const PackedLayout& l) {
  Matrix out = x;
  const auto cols = static_cast<std::size_t>(l.cols);
  for (std::size_t row = 0; row < x.size(); row += cols) {
    for (std::size_t u = 0; u < cols; u += static_cast<std::size_t>(l.unit)) {
      const std::size_t end =
          std::min(cols, u + static_cast<std::size_t>(l.unit));
      double most = 0;
      for (std::size_t c = u; c < end; ++c) {
        most = std::max(most, std::abs(double{x[row + c]}));
      }
      for (std::size_t c = u; c < end; ++c) {
        const double q = std::rint(x[row + c] * 127 / most);
        out[row + c] = static_cast<float>(q * most / 127);
      }
    }
  }
  return out;
}

TEST(PackedQuant, PackingLosesNothing) {
  const Table& plain = *usable_tables().front();
  for (const QuantFormat& f : every_format()) {
    const long cols = some_columns(f);
    for (const long rows : {1L, 16L, 37L}) {
      const auto n = static_cast<std::size_t>(rows * cols);
      const Quantized q =
          quantized(plain, f, random_floats(n, "w"), rows, cols);
      const PackedLayout l = packed_layout(f, rows, cols);
      std::vector<std::uint8_t> bytes(l.bytes());
      pack_matrix(shared_pool(), l, q.view(), bytes);
      Quantized back(f, rows, cols);
      unpack_matrix(shared_pool(), l, bytes, back.spans());
      EXPECT_EQ(back, q) << f.name() << " rows " << rows;
    }
  }
}

TEST(PackedQuant, IsAsSmallAsTheFile) {
  for (const char* name :
       {"affine4-g64-f16", "affine8-g64-bf16", "q8_0", "affine3-g64-f16",
        "q6_k", "int4-g32-f16"}) {
    const QuantFormat f = QuantFormat::parse(name);
    EXPECT_EQ(packed_layout(f, 64, 1024).bytes(), 64 * f.row_bytes(1024))
        << name;
  }
}

TEST(PackedQuant, RefusesWrongSizes) {
  const QuantFormat f = QuantFormat::parse("q4_0");
  EXPECT_THROW(packed_layout(f, 0, 32), UsageError);
  EXPECT_THROW(packed_layout(f, 4, 33), UsageError);
  EXPECT_THROW(packed_layout(f, 1L << 40, 32), UsageError);
  const PackedLayout l = packed_layout(f, 4, 32);
  std::vector<std::uint8_t> bytes(l.bytes() - 1), codes(4 * 18);
  EXPECT_THROW(
      pack_matrix(shared_pool(), l, {codes, {}, {}}, bytes), UsageError
  );
}

class QuantProduct : public testing::TestWithParam<QuantCompute> {};

TEST_P(QuantProduct, AgreesWithDoublesOnEveryTableAndFormat) {
  for (const QuantFormat& f : every_format()) {
    const long k = some_columns(f), n = 53;
    const Packed w = packed_random(f, n, k);
    for (const long m : {1L, 2L, 7L, 19L}) {
      const Matrix x = random_floats(static_cast<std::size_t>(m * k), "x");
      const bool exact = GetParam() == QuantCompute::kExact;
      const Reference r =
          reference(exact ? x : rounded(x, w.layout), w.weights, m, n, k);
      // bf16 and fp16 affine weights read back rounded to that type once more
      // than the products see them.
      const bool affine = f.kind == QuantKind::kAffine;
      const double eps = affine && f.scale == ScaleType::kBf16  ? 0x1p-7
                         : affine && f.scale == ScaleType::kF16 ? 0x1p-10
                                                                : 2e-6;
      for (const Table* t : usable_tables()) {
        const Matrix y = product(*t, shared_pool(), w, GetParam(), x, m);
        for (std::size_t i = 0; i < y.size(); ++i) {
          ASSERT_NEAR(y[i], r.y[i], eps * r.size[i])
              << f.name() << " " << t->isa << " rows " << m << " at " << i;
        }
      }
    }
  }
}

// 53 outputs: three panels of sixteen and a part of one.
TEST_P(QuantProduct, AddsABiasAndWhatIsThere) {
  const long n = 53;
  for (const char* name : {"q4_0", "affine8-g64-f16"}) {
    const QuantFormat f = QuantFormat::parse(name);
    const long k = some_columns(f);
    const Packed w = packed_random(f, n, k);
    const Matrix bias = random_floats(static_cast<std::size_t>(n), "bias");
    for (const long m : {1L, 7L, 19L}) {
      Matrix x = random_floats(static_cast<std::size_t>(m * k), "x");
      const Matrix old = random_floats(static_cast<std::size_t>(m * n), "y");
      for (const Table* t : usable_tables()) {
        const Matrix alone = product(*t, shared_pool(), w, GetParam(), x, m);
        Matrix y = old;
        Scratch scratch(
            quant_product_scratch(w.layout, m, GetParam(), shared_pool().size())
        );
        quant_product(
            *t, shared_pool(), w.layout, w.bytes.data(), GetParam(),
            {x.data(), k, false}, m, {y.data(), n, false, true, bias.data()},
            scratch.aligned()
        );
        for (std::size_t i = 0; i < y.size(); ++i) {
          const auto column = i % static_cast<std::size_t>(n);
          ASSERT_EQ(y[i], old[i] + (alone[i] + bias[column]))
              << name << ' ' << t->isa << " rows " << m << " at " << i;
        }
      }
    }
  }
}

TEST_P(QuantProduct, ARowDependsOnNeitherTheBatchNorTheThreads) {
  ThreadPool one(1), three(3);
  for (const QuantFormat& f : every_format()) {
    const long k = some_columns(f), n = 70, m = 11;
    const Packed w = packed_random(f, n, k);
    const Matrix x = random_floats(static_cast<std::size_t>(m * k), "x");
    for (const Table* t : usable_tables()) {
      const Matrix all = product(*t, one, w, GetParam(), x, m);
      EXPECT_TRUE(same_bits(product(*t, three, w, GetParam(), x, m), all))
          << f.name() << t->isa;
      for (long row = 0; row < m; ++row) {
        const Matrix alone = product(
            *t, three, w, GetParam(),
            Matrix(x.begin() + row * k, x.begin() + (row + 1) * k), 1
        );
        EXPECT_TRUE(same_bits(
            alone, Matrix(all.begin() + row * n, all.begin() + (row + 1) * n)
        )) << f.name()
           << t->isa << " row " << row;
      }
    }
  }
}

TEST_P(QuantProduct, NotFiniteActivationsShowInTheirRowAlone) {
  const QuantFormat f = QuantFormat::parse("affine4-g64-f16");
  const Packed w = packed_random(f, 20, 128);
  for (const float bad :
       {std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    Matrix x = random_floats(3 * 128, "x");
    x[128 + 70] = bad;
    for (const Table* t : usable_tables()) {
      const Matrix y = product(*t, shared_pool(), w, GetParam(), x, 3);
      for (std::size_t i = 0; i < y.size(); ++i) {
        EXPECT_EQ(std::isfinite(y[i]), i / 20 != 1) << t->isa << " " << i;
        if (i / 20 == 1 && GetParam() == QuantCompute::kInt8) {
          EXPECT_TRUE(std::isnan(y[i]));
        }
      }
    }
  }
}

TEST_P(QuantProduct, NanWeightsShow) {
  const Table& plain = *usable_tables().front();
  for (const QuantFormat& f : every_format()) {
    const long k = some_columns(f);
    Matrix weights = random_floats(static_cast<std::size_t>(2 * k), "w");
    weights[3] = std::numeric_limits<float>::quiet_NaN();
    const Quantized q = quantized(plain, f, weights, 2, k);
    Packed w{packed_layout(f, 2, k), {}, {}};
    w.bytes.resize(w.layout.bytes());
    pack_matrix(shared_pool(), w.layout, q.view(), w.bytes);
    for (const Table* t : usable_tables()) {
      const Matrix y = product(
          *t, shared_pool(), w, GetParam(),
          random_floats(static_cast<std::size_t>(2 * k), "x"), 2
      );
      EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[2])) << f.name() << t->isa;
      EXPECT_TRUE(std::isfinite(y[1]) && std::isfinite(y[3])) << f.name();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Compute,
    QuantProduct,
    testing::Values(QuantCompute::kInt8, QuantCompute::kExact),
    [](const auto& made) {
      return made.param == QuantCompute::kInt8 ? "Int8" : "Exact";
    }
);

TEST(QuantGradient, AgreesWithDoubles) {
  ThreadPool one(1), three(3);
  for (const QuantFormat& f : every_format()) {
    const long k = some_columns(f), n = 53, m = 7;
    const Packed w = packed_random(f, n, k);
    const Matrix dy = random_floats(static_cast<std::size_t>(m * n), "dy");
    Matrix transposed(w.weights.size());
    for (long j = 0; j < n; ++j) {
      for (long c = 0; c < k; ++c) {
        transposed[static_cast<std::size_t>(c * n + j)] =
            w.weights[static_cast<std::size_t>(j * k + c)];
      }
    }
    const Reference r = reference(dy, transposed, m, k, n);
    const bool affine = f.kind == QuantKind::kAffine;
    const double eps = affine && f.scale != ScaleType::kF32 ? 0x1p-7 : 2e-6;
    for (const Table* t : usable_tables()) {
      const Matrix dx = gradient(*t, three, w, dy, m);
      for (std::size_t i = 0; i < dx.size(); ++i) {
        ASSERT_NEAR(dx[i], r.y[i], eps * r.size[i]) << f.name() << t->isa;
      }
      EXPECT_TRUE(same_bits(gradient(*t, one, w, dy, m), dx));
    }
  }
}

TEST(QuantBf16, ReadAndWritten) {
  const QuantFormat f = QuantFormat::parse("q4_1");
  const long n = 37, k = 96, m = 5;
  const Packed w = packed_random(f, n, k);
  Matrix x = random_floats(static_cast<std::size_t>(m * k), "x");
  std::vector<std::uint16_t> xh(x.size()), yh(static_cast<std::size_t>(m * n));
  for (std::size_t i = 0; i < x.size(); ++i) {
    xh[i] = float_to_bf16(x[i]);
    x[i] = bf16_to_float(xh[i]);
  }
  for (const QuantCompute compute :
       {QuantCompute::kInt8, QuantCompute::kExact}) {
    for (const Table* t : usable_tables()) {
      const Matrix want = product(*t, shared_pool(), w, compute, x, m);
      Scratch scratch(
          quant_product_scratch(w.layout, m, compute, shared_pool().size())
      );
      quant_product(
          *t, shared_pool(), w.layout, w.bytes.data(), compute,
          {xh.data(), k, true}, m, {yh.data(), n, true}, scratch.aligned()
      );
      for (std::size_t i = 0; i < yh.size(); ++i) {
        ASSERT_EQ(yh[i], float_to_bf16(want[i])) << t->isa;
      }
    }
  }
}

}  // namespace
}  // namespace hearth::kernels
