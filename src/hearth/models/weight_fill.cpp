#include "hearth/models/weight_fill.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/models/tensor_read.h"
#include "hearth/ops/leaf.h"

namespace hearth::models {
namespace {

using io::TensorType;
using kernels::Bf16;
using kernels::Fp16;
using kernels::GemmScalar;

GemmScalar scalar(mx::Dtype t) {
  return t == mx::bfloat16 ? GemmScalar::bf16 : GemmScalar::f32;
}

// NaN and infinity have all bits of the exponent.
template <class Word, Word kExponent>
bool all_finite(const Word* v, std::size_t n) {
  Word largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    largest = std::max(largest, static_cast<Word>(v[i] & kExponent));
  }
  return largest != kExponent;
}

bool finite_halves(const Bf16* v, std::size_t n) {
  return all_finite<std::uint16_t, 0x7f80>(
      reinterpret_cast<const std::uint16_t*>(v), n
  );
}

bool finite_floats(const float* v, std::size_t n) {
  return all_finite<std::uint32_t, 0x7f800000>(
      reinterpret_cast<const std::uint32_t*>(v), n
  );
}

std::size_t item_size(const io::TensorInfo& t) {
  switch (t.type) {
    case TensorType::f32:
      return 4;
    case TensorType::f16:
    case TensorType::bf16:
      return 2;
    default:
      refuse_tensor(
          t,
          fmt::format("must be f32, f16 or bf16, got {}", io::name_of(t.type))
      );
  }
}

}  // namespace

// Some rows of a slice and where a thread works on them.
struct WeightFill::Block {
  const ops::Execution& run;
  long begin, end;
  // Of row `begin`; of the whole matrix where it is transposed.
  const std::byte* bytes;
  std::byte* scratch;
  std::size_t count;  // of elements

  float* floats() const { return reinterpret_cast<float*>(scratch); }
};

WeightFill::WeightFill(
    nn::Weight& p,
    const io::TensorInfo& tensor,
    const WeightForms& forms
)
    : p_(p),
      tensor_(tensor),
      rows_(p.shape.at(0)),
      cols_(p.shape.size() > 1 ? p.shape[1] : 1),
      item_(item_size(tensor)),
      row_bytes_(static_cast<std::size_t>(cols_) * item_),
      transposed_(p.transposed) {
  if (forms.value) {
    value_ =
        ops::make_leaf(p.shape, *forms.value, MemoryZone::named("weights"));
  }
  if (forms.packed) {
    packed_ = std::make_shared<ops::PackedWeight>(
        rows_, cols_, scalar(*forms.packed),
        MemoryZone::named("packed weights"), forms.orders
    );
  }
  if (forms.quantized) {
    quantized_ =
        std::make_unique<ops::QuantizedFill>(*forms.quantized, rows_, cols_);
  }
  const int threads = ops::current_execution().pool.size();
  for (int i = 0; i < threads; ++i) {
    scratch_.emplace_back(MemoryZone::named("loading"), scratch_bytes());
  }
}

std::size_t WeightFill::scratch_bytes() const {
  const auto floats = static_cast<std::size_t>(kRowGrain * cols_) * 4;
  const std::size_t staging = quantized_ ? quantized_->scratch_bytes() : 0;
  return (floats + 63) / 64 * 64 + staging;
}

void WeightFill::rows(long begin, long end, const std::byte* bytes) {
  const auto run = ops::current_execution();
  const auto count = static_cast<std::size_t>(end - begin);
  constexpr auto kGrain = static_cast<std::size_t>(kRowGrain);
  // Vectors are short, and so is what they are cut into.
  const std::size_t step = cols_ == 1 ? count : kGrain;
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> finite = true;
  std::mutex adding;
  const auto work = [&](int worker) {
    FillTimes mine;
    for (std::size_t at = next.fetch_add(step); at < count;
         at = next.fetch_add(step)) {
      const std::size_t n = std::min(step, count - at);
      const auto cols = static_cast<std::size_t>(cols_);
      for (std::size_t part = 0; part < n; part += kGrain) {
        const std::size_t rows = std::min(kGrain, n - part);
        const std::size_t row = at + part;
        const Block block{
            run,
            begin + static_cast<long>(row),
            begin + static_cast<long>(row + rows),
            transposed_ ? bytes : bytes + row * row_bytes_,
            scratch_[static_cast<std::size_t>(worker)].data(),
            rows * cols
        };
        if (!fill_block(block, mine)) finite = false;
      }
    }
    const std::lock_guard lock(adding);
    times_.convert += mine.convert;
    times_.pack += mine.pack;
    times_.quantize += mine.quantize;
  };
  if (count <= step) {
    work(0);
  } else {
    run.pool.run(work);
  }
  if (!finite) {
    refuse_tensor(
        tensor_,
        "must hold finite numbers, got NaN or infinity; the file is damaged "
        "or its training diverged"
    );
  }
}

// Fills the block's floats.
void WeightFill::widen(const Block& b) const {
  const auto& math = *b.run.kernels.math;
  const auto read = [&](const std::byte* from, std::size_t n, float* to) {
    // A file may have them at any address, so they are copied first.
    constexpr std::size_t kPart = 512;
    alignas(64) std::byte raw[kPart * 2];
    if (tensor_.type == TensorType::f32) {
      std::memcpy(to, from, n * 4);
      return;
    }
    for (std::size_t i = 0; i < n; i += kPart) {
      const std::size_t m = std::min(kPart, n - i);
      std::memcpy(raw, from + i * 2, m * 2);
      if (tensor_.type == TensorType::f16) {
        math.fp16_to_float(
            static_cast<long>(m), reinterpret_cast<const Fp16*>(raw), to + i
        );
      } else {
        math.bf16_to_float(
            static_cast<long>(m), reinterpret_cast<const Bf16*>(raw), to + i
        );
      }
    }
  };
  if (!transposed_) return read(b.bytes, b.count, b.floats());
  // The file has columns of ours as its rows.
  const auto height = static_cast<std::size_t>(b.end - b.begin);
  const auto cols = static_cast<std::size_t>(cols_);
  const auto rows = static_cast<std::size_t>(rows_);
  const auto first = static_cast<std::size_t>(b.begin);
  float column[kRowGrain];
  for (std::size_t c = 0; c < cols; ++c) {
    read(b.bytes + (c * rows + first) * item_, height, column);
    for (std::size_t r = 0; r < height; ++r) {
      b.floats()[r * cols + c] = column[r];
    }
  }
}

// Whether nothing but bf16 is read and made.
bool WeightFill::stays_bf16() const {
  return tensor_.type == TensorType::bf16 && !transposed_ && !quantized_ &&
         (!value_ || value_->dtype() == mx::bfloat16) &&
         (!packed_ || packed_->family().operand == GemmScalar::bf16);
}

bool WeightFill::copy_block(const Block& b, FillTimes& times) {
  const double start = seconds_now();
  const auto* rows = reinterpret_cast<const Bf16*>(b.bytes);
  if (reinterpret_cast<std::uintptr_t>(b.bytes) % alignof(Bf16) != 0) {
    std::memcpy(b.scratch, b.bytes, b.count * sizeof(Bf16));
    rows = reinterpret_cast<const Bf16*>(b.scratch);
  }
  const bool finite = finite_halves(rows, b.count);
  if (value_) {
    std::memcpy(
        static_cast<Bf16*>(value_->data<void>()) + b.begin * cols_, rows,
        b.count * sizeof(Bf16)
    );
  }
  const double converted = seconds_now();
  if (packed_) {
    packed_->refresh_rows(rows, GemmScalar::bf16, {b.begin, b.end});
  }
  times.convert += converted - start;
  times.pack += seconds_now() - converted;
  return finite;
}

bool WeightFill::fill_block(const Block& b, FillTimes& times) {
  if (stays_bf16()) return copy_block(b, times);
  const double start = seconds_now();
  widen(b);
  const bool finite = finite_floats(b.floats(), b.count);
  const auto first = static_cast<std::size_t>(b.begin * cols_);
  const auto count = static_cast<long>(b.count);
  if (value_ && value_->dtype() == mx::float32) {
    std::memcpy(value_->data<float>() + first, b.floats(), b.count * 4);
  } else if (value_ && value_->dtype() == mx::float16) {
    b.run.kernels.math->float_to_fp16(
        count, b.floats(), static_cast<Fp16*>(value_->data<void>()) + first
    );
  } else if (value_) {
    b.run.kernels.math->float_to_bf16(
        count, b.floats(), static_cast<Bf16*>(value_->data<void>()) + first
    );
  }
  const double converted = seconds_now();
  if (packed_) {
    packed_->refresh_rows(b.floats(), GemmScalar::f32, {b.begin, b.end});
  }
  const double packed = seconds_now();
  if (quantized_) {
    const auto floats = static_cast<std::size_t>(kRowGrain * cols_) * 4;
    quantized_->round_rows(
        b.run.kernels, b.floats(), b.begin, b.end,
        b.scratch + (floats + 63) / 64 * 64
    );
  }
  times.convert += converted - start;
  times.pack += packed - converted;
  times.quantize += seconds_now() - packed;
  return finite;
}

void WeightFill::finish() {
  scratch_.clear();
  if (quantized_) {
    p_.set(quantized_->finish(), std::move(value_));
  } else if (value_) {
    p_.set(std::move(*value_), std::move(packed_));
  } else {
    p_.set(std::move(packed_));
  }
}

}  // namespace hearth::models
