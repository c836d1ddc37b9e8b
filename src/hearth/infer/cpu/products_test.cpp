#include "hearth/infer/cpu/products.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace hearth::infer {
namespace {

using kernels::PackedLayout;
using kernels::QuantFormat;

// Matrices of 96 columns in 8 bits, over memory that nothing reads.
struct Fixture {
  std::vector<PackedLayout> layouts;
  std::vector<std::uint8_t> codes;
  std::vector<CpuMatrix> matrices;
  CpuModel model;
  ops::Execution run = ops::current_execution();

  explicit Fixture(std::initializer_list<long> heights) {
    for (const long n : heights) {
      layouts.push_back(
          kernels::packed_layout(QuantFormat::parse("q8_0"), n, 96)
      );
    }
    std::size_t most = 0;
    for (const auto& l : layouts) most = std::max(most, l.bytes());
    codes.resize(most);
    for (const auto& l : layouts) {
      CpuMatrix m;
      m.n = l.rows, m.k = l.cols, m.layout = &l, m.codes = codes.data();
      matrices.push_back(m);
    }
    model.head = matrices.front();
  }
  std::vector<const CpuMatrix*> all() const {
    std::vector<const CpuMatrix*> out;
    for (const CpuMatrix& m : matrices) out.push_back(&m);
    return out;
  }
};

// What all the workers ask for together.
std::size_t asked(const Fixture& f, long rows, bool alike) {
  const CpuProducts products(f.model, f.run, 16, false);
  std::size_t bytes = 0;
  for (int w = 0; w < f.run.pool.size(); ++w) {
    ReadAhead ahead;
    products.note_next(w, rows, f.all(), alike, ahead);
    bytes += ahead.left();
  }
  return bytes;
}

TEST(CpuProducts, TheThreadsAskForEveryByteOnce) {
  const Fixture three({128, 48, 16}), two({80, 80});
  EXPECT_EQ(
      asked(three, 1, false), three.layouts[0].bytes() +
                                  three.layouts[1].bytes() +
                                  three.layouts[2].bytes()
  );
  EXPECT_EQ(asked(two, 1, true), 2 * two.layouts[0].bytes());
}

TEST(CpuProducts, APromptAsksForNothing) {
  const Fixture f({128});
  EXPECT_EQ(asked(f, 512, false), 0u);
}

TEST(CpuProducts, ADenseMatrixIsAskedForToo) {
  Fixture f({64});
  const ops::PackedWeight packed(
      96, 64, kernels::GemmScalar::bf16, MemoryZone::named("test"),
      ops::PackedOrders::forward
  );
  f.matrices[0] = CpuMatrix{.n = 96, .k = 64, .packed = &packed};
  EXPECT_EQ(asked(f, 1, false), packed.forward_bytes());
}

}  // namespace
}  // namespace hearth::infer
