// Results that are stored past the caches have the bits of those that are not,
// for rows that are aligned and for rows that cannot be.
#include <cstring>

#include <gtest/gtest.h>

#include "hearth/base/aligned_buffer.h"
#include "hearth/base/random.h"
#include "hearth/kernels/table.h"

namespace hearth::kernels {
namespace {

constexpr long kRows = 6;

template <class T>
class Numbers {
 public:
  // Random, or 0x77 in every byte where it is a place for results.
  explicit Numbers(long count, std::uint64_t seed = 0)
      : memory_(MemoryZone::named("kernel test"), bytes(count)) {
    std::memset(memory_.data(), 0x77, memory_.size());
    if (seed == 0) return;
    RandomStream random{RandomKey(seed)};
    for (long i = 0; i < count; ++i) {
      const auto x = static_cast<float>(random.normal());
      const auto word = __builtin_bit_cast(std::uint32_t, x);
      if constexpr (sizeof(T) == 2) {
        data()[i].bits = static_cast<std::uint16_t>(word >> 16);
      } else {
        data()[i] = x;
      }
    }
  }
  T* data() const { return reinterpret_cast<T*>(memory_.data()); }
  bool operator==(const Numbers& o) const {
    return std::memcmp(memory_.data(), o.memory_.data(), memory_.size()) == 0;
  }

 private:
  mutable AlignedBuffer memory_;
  static std::size_t bytes(long count) {
    return static_cast<std::size_t>(count) * sizeof(T);
  }
};

// What run(past, results) makes of three results of `all` elements.
template <class T, class Run>
void expect_same_bits(long all, const Run& run, const Table& table, long dim) {
  const Numbers<T> plain[] = {
      Numbers<T>(all), Numbers<T>(all), Numbers<T>(all)
  };
  const Numbers<T> past[] = {Numbers<T>(all), Numbers<T>(all), Numbers<T>(all)};
  run(false, plain), run(true, past);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(plain[i] == past[i]) << table.isa << " " << dim << " " << i;
  }
}

template <class T>
void gates_agree(const Table& table, long dim) {
  const long all = kRows * dim;
  const Numbers<T> gate(all, 1), value(all, 2), dy(all, 3);
  const auto run = [&](bool past, const Numbers<T>* out) {
    const GateArgs<T> a{dim,     gate.data(),   dim, value.data(),
                        dim,     out[0].data(), dim, 1,
                        nullptr, false,         past};
    const auto& f = table.gate->of(Activation::silu, out[0].data());
    f.forward(a, 0, kRows);
    const GateGradArgs<T> g{a,   dy.data(),     dim, out[1].data(),
                            dim, out[2].data(), dim};
    f.backward(g, 0, kRows, nullptr);
  };
  expect_same_bits<T>(all, run, table, dim);
}

template <class T>
void norms_agree(const Table& table, long dim) {
  const long all = kRows * dim;
  const Numbers<T> x(all, 1), dy(all, 2);
  const auto run = [&](bool past, const Numbers<T>* out) {
    NormArgs<T, T> a{};
    a.dim = dim, a.eps = 1e-5f, a.x = x.data(), a.y = out[0].data();
    a.past_caches = past;
    const auto& f = table.norm->of<T, T>().rms;
    f.forward(a, 0, kRows);
    NormGradArgs<T, T> g{};
    g.dim = dim, g.eps = 1e-5f, g.h = x.data(), g.dy = dy.data();
    g.dx = out[1].data(), g.dr = out[2].data(), g.past_caches = past;
    f.backward(g, 0, kRows, nullptr, nullptr);
  };
  expect_same_bits<T>(all, run, table, dim);
}

template <class T>
void rotations_agree(const Table& table, long head_dim, bool interleaved) {
  constexpr long kHeads = 2;
  const long all = kRows * kHeads * head_dim;
  const Numbers<T> x(all, 1);
  const Numbers<float> cosines(kRows * head_dim, 2);
  const int positions[kRows] = {0, 1, 2, 3, 4, 5};
  const auto run = [&](bool past, const Numbers<T>& out) {
    RopeArgs<T> a{};
    a.heads = kHeads, a.head_dim = head_dim, a.half = head_dim / 2;
    a.interleaved = interleaved, a.x = x.data(), a.y = out.data();
    a.table = cosines.data(), a.table_rows = kRows, a.positions = positions;
    a.token_stride = kHeads * head_dim, a.head_stride = head_dim;
    a.past_caches = past;
    table.rope->of(out.data()).rotate(a, 0, kRows);
  };
  const Numbers<T> plain(all), past(all);
  run(false, plain), run(true, past);
  EXPECT_TRUE(plain == past) << table.isa << " " << head_dim;
}

template <class T>
void all_agree(const Table& table) {
  for (const long dim : {32L, 64L, 200L, 33L}) {
    gates_agree<T>(table, dim);
    norms_agree<T>(table, dim);
  }
  for (const long head_dim : {16L, 32L, 64L, 80L, 128L}) {
    for (const bool interleaved : {false, true}) {
      rotations_agree<T>(table, head_dim, interleaved);
    }
  }
}

TEST(PastCaches, ChangesNoBit) {
  for (const Table* table : usable_tables()) {
    all_agree<float>(*table);
    all_agree<Bf16>(*table);
  }
}

}  // namespace
}  // namespace hearth::kernels
