#include "hearth/models/stored_fill.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/base/page_advice.h"
#include "hearth/io/file_source.h"
#include "hearth/io/tensor_scan.h"
#include "hearth/ops/leaf.h"

namespace hearth::models {
namespace {

using io::TensorInfo;

constexpr auto kGrain = static_cast<std::size_t>(WeightFill::kRowGrain);
static_assert(WeightFill::kRowGrain % ops::QuantizedFill::kRowGrain == 0);

const std::uint8_t* as_codes(const std::byte* bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes);
}

// Scales are numbers like any weight; codes are right whatever they are.
void check_finite(const TensorInfo& t, const std::byte* at, std::size_t bytes) {
  if (io::count_non_finite(t.type, {at, bytes}) == 0) return;
  refuse_tensor(
      t,
      "must hold finite numbers, got a scale that is NaN or infinity; the "
      "file is damaged"
  );
}

mx::Dtype dtype_of(kernels::ScaleType type) {
  return type == kernels::ScaleType::kF16    ? mx::float16
         : type == kernels::ScaleType::kBf16 ? mx::bfloat16
                                             : mx::float32;
}

mx::array leaf_of(long rows, std::size_t row_bytes, mx::Dtype dtype) {
  const auto width = static_cast<int>(row_bytes / mx::size_of(dtype));
  return ops::make_leaf(
      {static_cast<int>(rows), width}, dtype, MemoryZone::named("weights")
  );
}

}  // namespace

// Some rows of a slice and the thread that works on them.
struct StoredFill::Block {
  const ops::Execution& run;
  std::size_t worker;
  long begin, end;
  const std::byte* codes;  // of row `begin`

  std::size_t count() const { return static_cast<std::size_t>(end - begin); }
};

StoredFill::StoredFill(
    const io::ModelSource& source,
    const StoredMatrix& stored,
    const mx::Shape& shape,
    const Forms& forms
)
    : stored_(stored),
      format_(*stored.format),
      rows_(shape.at(0)),
      cols_(shape.at(1)),
      code_row_bytes_(format_.code_bytes(cols_)) {
  check_stored(stored, shape, stored.codes->transposed);
  const std::size_t want = static_cast<std::size_t>(rows_) * code_row_bytes_;
  if (stored.codes->bytes != want) {
    refuse_tensor(
        *stored.codes,
        fmt::format("must be {} bytes, got {}", want, stored.codes->bytes)
    );
  }
  const std::size_t size = kernels::size_of(format_.scale);
  scales_.row_bytes = format_.scale_count(cols_) * size;
  biases_.row_bytes = format_.bias_count(cols_) * size;
  open_array(source, stored.scales, scales_);
  open_array(source, stored.biases, biases_);
  if (forms.value) {
    // Kernels write float32 and bfloat16.
    half_ = *forms.value == mx::float16;
    value_ = ops::make_leaf(
        shape, half_ ? mx::float32 : *forms.value, MemoryZone::named("weights")
    );
  }
  staged_.resize(
      static_cast<std::size_t>(ops::current_execution().pool.size())
  );
  if (!forms.quantized) return;
  if (ops::on_cpu({})) {
    packed_ = std::make_unique<ops::QuantizedFill>(format_, rows_, cols_);
  } else {
    make_arrays();
  }
}

// GGUF's blocks have their scales among the codes.
void StoredFill::open_array(
    const io::ModelSource& source,
    const TensorInfo* t,
    Array& a
) {
  if (t == nullptr) {
    a.row_bytes = 0;
    return;
  }
  a.data = source.data(*t);
  const std::size_t want = static_cast<std::size_t>(rows_) * a.row_bytes;
  if (a.data.bytes.size() != want) {
    refuse_tensor(
        *t, fmt::format("must be {} bytes, got {}", want, a.data.bytes.size())
    );
  }
  if (!io::is_plain(source, *t)) return;
  const double start = seconds_now();
  map_pages(a.data.bytes);
  waited_ += seconds_now() - start;
}

void StoredFill::make_arrays() {
  const bool affine = stored_.scales != nullptr;
  arrays_ = ops::QuantizedArrays{
      leaf_of(rows_, code_row_bytes_, affine ? mx::uint32 : mx::uint8), {}, {}
  };
  if (!affine) return;
  const mx::Dtype type = dtype_of(format_.scale);
  const auto copied = [&](const Array& a) {
    auto leaf = leaf_of(rows_, a.row_bytes, type);
    std::memcpy(leaf.data<void>(), a.data.bytes.data(), a.data.bytes.size());
    return leaf;
  };
  arrays_->scales = copied(scales_);
  arrays_->biases = copied(biases_);
}

void StoredFill::rows(long begin, long end, const std::byte* codes) {
  const auto run = ops::current_execution();
  const auto count = static_cast<std::size_t>(end - begin);
  std::atomic<std::size_t> next = 0;
  std::mutex adding;
  run.pool.run([&](int worker) {
    FillTimes mine;
    for (std::size_t at = next.fetch_add(kGrain); at < count;
         at = next.fetch_add(kGrain)) {
      const std::size_t n = std::min(kGrain, count - at);
      fill_block(
          {run, static_cast<std::size_t>(worker), begin + static_cast<long>(at),
           begin + static_cast<long>(at + n), codes + at * code_row_bytes_},
          mine
      );
    }
    const std::lock_guard lock(adding);
    times_.convert += mine.convert;
    times_.pack += mine.pack;
  });
}

void StoredFill::fill_block(const Block& b, FillTimes& times) {
  const double start = seconds_now();
  const std::size_t bytes = b.count() * code_row_bytes_;
  const auto row = static_cast<std::size_t>(b.begin);
  if (stored_.scales == nullptr) {
    check_finite(*stored_.codes, b.codes, bytes);
  } else {
    check_finite(
        *stored_.scales, scales_.row(row), b.count() * scales_.row_bytes
    );
    check_finite(
        *stored_.biases, biases_.row(row), b.count() * biases_.row_bytes
    );
  }
  if (value_) widen(b);
  const double converted = seconds_now();
  if (packed_) {
    packed_->take_rows(
        {as_codes(b.codes), as_codes(scales_.row(row)),
         as_codes(biases_.row(row))},
        b.begin, b.end
    );
  }
  if (arrays_) {
    std::memcpy(
        static_cast<std::byte*>(arrays_->codes.data<void>()) +
            row * code_row_bytes_,
        b.codes, bytes
    );
  }
  times.convert += converted - start;
  times.pack += seconds_now() - converted;
}

// Kernels want their rows aligned, which a file need not have them.
void StoredFill::widen(const Block& b) {
  auto& room = staged_[b.worker];
  const auto row = static_cast<std::size_t>(b.begin);
  const std::pair<const std::byte*, std::size_t> parts[] = {
      {b.codes, b.count() * code_row_bytes_},
      {scales_.row(row), b.count() * scales_.row_bytes},
      {biases_.row(row), b.count() * biases_.row_bytes}
  };
  std::size_t words = 0;
  for (const auto& [from, bytes] : parts) words += (bytes + 7) / 8;
  room.resize(words);
  std::uint64_t* at = room.data();
  const std::uint8_t* staged[3];
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& [from, bytes] = parts[i];
    if (bytes > 0) std::memcpy(at, from, bytes);
    staged[i] = reinterpret_cast<const std::uint8_t*>(at);
    at += (bytes + 7) / 8;
  }
  const kernels::QuantRows in{staged[0], staged[1], staged[2]};
  const auto height = b.end - b.begin;
  const auto& kernel = *b.run.kernels.quant_rows;
  const long first = b.begin * cols_;
  if (value_->dtype() == mx::float32) {
    kernel.dequantize(
        format_, in, height, cols_, value_->data<float>() + first, cols_
    );
  } else {
    auto* out = static_cast<std::uint16_t*>(value_->data<void>()) + first;
    kernel.dequantize_bf16(format_, in, height, cols_, out, cols_);
  }
}

void StoredFill::finish(nn::Weight& p) {
  if (value_ && half_) {
    value_ = mx::astype(*value_, mx::float16);
    value_->eval();
  }
  if (packed_) {
    p.set(packed_->finish(), std::move(value_));
  } else if (arrays_) {
    p.set(
        std::make_shared<const ops::QuantizedWeight>(
            format_, static_cast<int>(cols_), *arrays_
        ),
        std::move(value_)
    );
  } else if (value_) {
    p.set(std::move(*value_));
  }
}

mx::array read_widened(
    const io::ModelSource& source,
    const StoredMatrix& m,
    const mx::Shape& shape,
    mx::Dtype dtype
) {
  StoredFill fill(source, m, shape, {.value = dtype});
  const auto codes = source.data(*m.codes);
  fill.rows(0, shape.at(0), codes.bytes.data());
  nn::Weight p({.shape = shape});
  fill.finish(p);
  return p.value();
}

}  // namespace hearth::models
