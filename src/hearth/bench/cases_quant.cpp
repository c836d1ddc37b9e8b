// Quantised products: one row of activations, where memory is the limit (so
// the weights rotate through many times the last cache), and 512 rows, where
// arithmetic is. Bytes are those of the format, scales included.
#include <algorithm>
#include <memory>

#include "hearth/base/aligned_buffer.h"
#include "hearth/base/random.h"
#include "hearth/bench/cases.h"
#include "hearth/bench/llama_peer.h"
#include "hearth/kernels/quant/product.h"

namespace hearth::bench {
namespace {

using kernels::PackedLayout;
using kernels::QuantCompute;
using kernels::QuantFormat;

constexpr long kSide = 4096, kPrefill = 512;
// Weights to rotate through where the cache's size is not known.
constexpr std::size_t kRotated = std::size_t{192} << 20;

// One random matrix, copied until it fills `bytes`, and room for a product.
struct Product {
  PackedLayout layout;
  long rows;
  QuantCompute compute;
  std::size_t copies, next = 0;
  AlignedBuffer weights, x, y, scratch;

  Product(const QuantFormat& f, long m, QuantCompute c, std::size_t bytes)
      : layout(kernels::packed_layout(f, kSide, kSide)),
        rows(m),
        compute(c),
        copies(std::max<std::size_t>(1, bytes / layout.bytes())) {
    const MemoryZone zone = MemoryZone::named("bench");
    const std::size_t floats = static_cast<std::size_t>(m * kSide) * 4;
    weights = AlignedBuffer(zone, copies * layout.bytes());
    x = AlignedBuffer(zone, floats);
    y = AlignedBuffer(zone, floats);
    scratch = AlignedBuffer(
        zone,
        std::max(
            kernels::quant_product_scratch(layout, m, c, shared_pool().size()),
            kernels::quant_gradient_scratch(layout, m, shared_pool().size())
        )
    );
    fill(f);
  }

  void fill(const QuantFormat& f) {
    RandomStream random{RandomKey(3)};
    std::vector<float> w(static_cast<std::size_t>(kSide * kSide));
    // A few rows of noise, repeated: drawing them all would take seconds.
    for (std::size_t i = 0; i < w.size(); ++i) {
      w[i] = i < 64 * kSide ? static_cast<float>(random.normal())
                            : w[i - 64 * kSide];
    }
    for (float& v : x.as<float>()) v = static_cast<float>(random.normal());
    std::vector<std::uint8_t> codes(kSide * f.code_bytes(kSide)),
        scales(kSide * f.scale_count(kSide) * size_of(f.scale)),
        biases(kSide * f.bias_count(kSide) * size_of(f.scale));
    kernels::quantize_matrix(
        kernels::best(), shared_pool(), f, w, kSide, kSide,
        {codes, scales, biases}
    );
    for (std::size_t i = 0; i < copies; ++i) {
      kernels::pack_matrix(
          shared_pool(), layout, {codes, scales, biases},
          weights.as<std::uint8_t>().subspan(i * layout.bytes(), layout.bytes())
      );
    }
  }

  const std::uint8_t* rotate() {
    next = (next + 1) % copies;
    return weights.as<std::uint8_t>().data() + next * layout.bytes();
  }
  void forward() {
    kernels::quant_product(
        kernels::best(), shared_pool(), layout, rotate(), compute,
        {x.data(), kSide, false}, rows, {y.data(), kSide, false}, scratch.data()
    );
  }
  void backward() {
    kernels::quant_gradient(
        kernels::best(), shared_pool(), layout, rotate(),
        {x.data(), kSide, false}, rows, {y.data(), kSide, false}, scratch.data()
    );
  }
};

// A format, and the type of llama.cpp's it is held against: itself, or the one
// of as many bits. Null: none.
struct Held {
  const char *format, *rival;
};

void set_rival(
    BenchCase& c,
    const CaseContext& context,
    const char* type,
    long rows,
    std::size_t copies
) {
  if (!context.with_peers || type == nullptr) return;
  c.peer_name = std::string("llama.cpp ") + type;
  c.prepare_peer = [type, rows, copies] {
    return llama_product(type, rows, copies);
  };
}

BenchCase gemv(const CaseContext& context, Held held) {
  const char* format = held.format;
  BenchCase c;
  c.name = std::string("quant: GEMV 4096x4096 ") + format;
  c.unit = "GB/s";
  const QuantFormat f = QuantFormat::parse(format);
  c.work = static_cast<double>(kSide) * static_cast<double>(f.row_bytes(kSide));
  c.peak = context.read_gb_s();
  c.isa = kernels::best().isa;
  const std::size_t bytes = std::max(kRotated, 4 * context.last_cache_bytes);
  const std::size_t matrix = static_cast<std::size_t>(c.work);
  set_rival(c, context, held.rival, 1, bytes / matrix + 1);
  c.prepare = [f, bytes]() -> Timed {
    auto p = std::make_shared<Product>(f, 1, QuantCompute::kInt8, bytes);
    const auto run = [p] { p->forward(); };
    return {run, run};  // so that the threads are awake
  };
  return c;
}

BenchCase gemm(
    const CaseContext& context,
    Held held,
    QuantCompute compute,
    bool gradient
) {
  const char* format = held.format;
  const bool int8 = compute == QuantCompute::kInt8;
  BenchCase c;
  c.name = std::string("quant: ") + (gradient ? "input gradient" : "GEMM") +
           " 512x4096x4096 " + format + (int8 ? "" : " exact");
  c.unit = int8 ? "GOP/s" : "GFLOP/s";
  c.work = 2.0 * kPrefill * kSide * kSide;
  c.isa = kernels::best().isa;
  c.peak = context.gops(int8 ? "int8" : "fp32");
  set_rival(c, context, held.rival, kPrefill, 1);
  const QuantFormat f = QuantFormat::parse(format);
  c.prepare = [f, compute, gradient]() -> std::function<void()> {
    auto p = std::make_shared<Product>(f, kPrefill, compute, 0);
    if (gradient) return [p] { p->backward(); };
    return [p] { p->forward(); };
  };
  return c;
}

}  // namespace

std::vector<BenchCase> quant_cases(const CaseContext& context) {
  std::vector<BenchCase> all;
  for (const Held h : std::initializer_list<Held>{
           {"affine4-g64-f16", "q4_0"},
           {"affine8-g64-f16", "q8_0"},
           {"affine3-g64-f16", "q3_k"},
           {"int8-channel-f32", "q8_0"},
           {"q8_0", "q8_0"},
           {"q4_0", "q4_0"},
           {"q4_1", "q4_1"},
           {"q4_k", "q4_k"},
           {"q5_k", "q5_k"},
           {"q6_k", "q6_k"}
       }) {
    all.push_back(gemv(context, h));
  }
  for (const Held h : std::initializer_list<Held>{
           {"affine8-g64-f16", "q8_0"},
           {"q8_0", "q8_0"},
           {"int8-channel-f32", "q8_0"},
           {"affine4-g64-f16", "q4_0"},
           {"q4_k", "q4_k"},
           {"q6_k", "q6_k"}
       }) {
    all.push_back(gemm(context, h, QuantCompute::kInt8, false));
  }
  const Held exact{"affine4-g64-f16", nullptr};
  all.push_back(gemm(context, exact, QuantCompute::kExact, false));
  all.push_back(gemm(context, exact, QuantCompute::kExact, true));
  return all;
}

}  // namespace hearth::bench
