// The table of op cases: what each case file offers, joined.
#include <cmath>
#include <cstring>

#include "hearth/base/random.h"
#include "hearth/ops/leaf.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {

// One function a case file offers. Keep both lists sorted.
std::vector<OpCase> activation_cases();
std::vector<OpCase> adafactor_cases();
std::vector<OpCase> arithmetic_cases();
std::vector<OpCase> attention_cases();
std::vector<OpCase> batched_linear_cases();
std::vector<OpCase> dropout_cases();
std::vector<OpCase> embedding_cases();
std::vector<OpCase> fake_quant_cases();
std::vector<OpCase> gate_cases();
std::vector<OpCase> head_loss_cases();
std::vector<OpCase> kv_cache_cases();
std::vector<OpCase> linear_cases();
std::vector<OpCase> linears_cases();
std::vector<OpCase> norm_cases();
std::vector<OpCase> optimizer_cases();
std::vector<OpCase> paged_attention_cases();
std::vector<OpCase> quantized_linear_cases();
std::vector<OpCase> rope_cases();

std::span<const OpCase> op_cases() {
  static const std::vector<OpCase> all = [] {
    std::vector<OpCase> joined;
    for (auto* cases : {
             activation_cases,
             adafactor_cases,
             arithmetic_cases,
             attention_cases,
             batched_linear_cases,
             dropout_cases,
             embedding_cases,
             fake_quant_cases,
             gate_cases,
             head_loss_cases,
             kv_cache_cases,
             linear_cases,
             linears_cases,
             norm_cases,
             optimizer_cases,
             paged_attention_cases,
             quantized_linear_cases,
             rope_cases,
         }) {
      for (auto& c : cases()) joined.push_back(std::move(c));
    }
    return joined;
  }();
  return all;
}

namespace {

template <class T, class Draw>
mx::array drawn(const mx::Shape& shape, std::uint64_t seed, Draw draw) {
  std::size_t n = 1;
  for (const auto d : shape) n *= static_cast<std::size_t>(d);
  RandomStream random{RandomKey(seed)};
  std::vector<T> values(n);
  // Large inputs repeat: drawing takes far longer than the ops do.
  constexpr std::size_t kPeriod = 1048573;
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = i < kPeriod ? draw(random) : values[i - kPeriod];
  }
  return mx::array(values.data(), shape);
}

// Values are rounded to bfloat16 whatever the dtype, so that every dtype of a
// case has the same inputs.
mx::array settled(const mx::array& a, mx::Dtype dtype) {
  auto b = mx::astype(
      mx::astype(a, mx::bfloat16, mx::Device::cpu), dtype, mx::Device::cpu
  );
  b.eval();
  return b;
}

}  // namespace

mx::array normal_input(
    const mx::Shape& shape,
    mx::Dtype dtype,
    std::uint64_t seed,
    float scale
) {
  return settled(
      drawn<float>(
          shape, seed,
          [scale](RandomStream& r) {
            return scale * static_cast<float>(r.normal());
          }
      ),
      dtype
  );
}

mx::array uniform_input(
    const mx::Shape& shape,
    mx::Dtype dtype,
    std::uint64_t seed,
    float low,
    float high
) {
  return settled(
      drawn<float>(
          shape, seed,
          [=](RandomStream& r) {
            return low + (high - low) * static_cast<float>(r.uniform());
          }
      ),
      dtype
  );
}

mx::array integer_input(const mx::Shape& shape, int below, std::uint64_t seed) {
  return drawn<std::int32_t>(shape, seed, [below](RandomStream& r) {
    return static_cast<std::int32_t>(
        r.below(static_cast<std::uint64_t>(below))
    );
  });
}

mx::array leaf_input(const mx::array& a) {
  auto source = mx::contiguous(a, false, mx::Device::cpu);
  source.eval();
  auto leaf = make_leaf(a.shape(), a.dtype(), MemoryZone::named("op cases"));
  std::memcpy(leaf.data<char>(), source.data<char>(), source.nbytes());
  return leaf;
}

mx::Dtype at_least_float32(mx::Dtype dtype) {
  return dtype == mx::float64 ? mx::float64 : mx::float32;
}

}  // namespace hearth::ops
