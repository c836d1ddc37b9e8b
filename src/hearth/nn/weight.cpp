#include "hearth/nn/weight.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::nn {
namespace {

kernels::GemmScalar scalar(mx::Dtype t) {
  return t == mx::bfloat16 ? kernels::GemmScalar::bf16
                           : kernels::GemmScalar::f32;
}

mx::array no_rows() {
  return mx::array({}, mx::float32);
}

// Room of one thread to round some rows in. It stays with the thread, since
// every optimiser step rounds every matrix again.
struct RoundingRoom {
  std::vector<float> floats;
  std::vector<std::uint64_t> codes, scales, biases;

  static std::uint8_t* grown(std::vector<std::uint64_t>& v, std::size_t bytes) {
    v.resize(std::max(v.size(), (bytes + 7) / 8));
    return reinterpret_cast<std::uint8_t*>(v.data());
  }
};

// What the format makes of some rows of k floats.
const float* rounded_rows(
    const kernels::QuantFormat& format,
    const kernels::QuantRowKernels& kernel,
    const float* from,
    long rows,
    long k
) {
  thread_local RoundingRoom room;
  const auto n = static_cast<std::size_t>(rows);
  const std::size_t scale = kernels::size_of(format.scale);
  room.floats.resize(
      std::max(room.floats.size(), n * static_cast<std::size_t>(k))
  );
  const kernels::QuantRowsOut out{
      RoundingRoom::grown(room.codes, n * format.code_bytes(k)),
      RoundingRoom::grown(room.scales, n * format.scale_count(k) * scale),
      RoundingRoom::grown(room.biases, n * format.bias_count(k) * scale)
  };
  kernel.quantize(format, from, k, rows, k, out);
  kernel.dequantize(
      format, {out.codes, out.scales, out.biases}, rows, k, room.floats.data(),
      k
  );
  return room.floats.data();
}

}  // namespace

std::size_t WeightSpec::elements() const {
  std::size_t n = 1;
  for (const auto d : shape) n *= static_cast<std::size_t>(d);
  return n;
}

std::string WeightSpec::module() const {
  for (const std::string_view end : {".weight", ".bias"}) {
    if (name.ends_with(end)) return name.substr(0, name.size() - end.size());
  }
  return name;
}

Weight::Weight() : value_(no_rows()) {}
Weight::Weight(WeightSpec spec)
    : WeightSpec(std::move(spec)), value_(no_rows()) {}

WeightForm Weight::form() const {
  if (quantized_) return WeightForm::quantized;
  if (value_.size() > 0) {
    return rounding_ ? WeightForm::rounded : WeightForm::master;
  }
  return packed_ ? WeightForm::packed : WeightForm::empty;
}

std::optional<kernels::QuantFormat> Weight::format() const {
  if (quantized_) return quantized_->format();
  return rounding_;
}

std::size_t Weight::bytes() const {
  std::size_t n = value_.nbytes();
  if (packed_) n += packed_->bytes();
  if (quantized_) n += quantized_->nbytes();
  return n;
}

void Weight::clear() {
  value_ = no_rows();
  packed_.reset();
  quantized_.reset();
  rounding_.reset();
}

void Weight::set(mx::array rows) {
  clear();
  value_ = std::move(rows);
}

void Weight::set(
    std::shared_ptr<const ops::QuantizedWeight> codes,
    std::optional<mx::array> rows
) {
  clear();
  quantized_ = std::move(codes);
  if (rows) value_ = std::move(*rows);
}

void Weight::set(std::shared_ptr<ops::PackedWeight> packed) {
  clear();
  packed_ = std::move(packed);
}

void Weight::set(mx::array rows, std::shared_ptr<ops::PackedWeight> packed) {
  set(std::move(packed));
  value_ = std::move(rows);
}

void Weight::keep_packed_alone() {
  if (packed_) value_ = no_rows();
}

void Weight::round_to(const kernels::QuantFormat& format) {
  if (form() != WeightForm::master || value_.dtype() != mx::float32) {
    throw UsageError(
        fmt::format("[nn.Weight] {} must be a float32 master", name)
    );
  }
  format.check("nn.Weight", shape.at(1));
  rounding_ = format;
}

void Weight::refresh(long begin, long end, const ops::Execution& run) const {
  if (!rounding_) {
    packed_->refresh(value_.data<void>(), scalar(value_.dtype()), {begin, end});
    return;
  }
  const long k = packed_->k();
  constexpr long kRows = ops::PackedWeight::kRowGrain;
  for (long at = begin; at < end; at += kRows) {
    const long to = std::min(end, at + kRows);
    const float* rows = rounded_rows(
        *rounding_, *run.kernels.quant_rows, value_.data<float>() + at * k,
        to - at, k
    );
    packed_->refresh_rows(rows, kernels::GemmScalar::f32, {at, to});
  }
}

void pack(Weight& w, mx::Dtype compute, ops::PackedOrders orders) {
  const long n = w.shape.at(0), k = w.shape.at(1);
  if (!w.packed_) {
    w.packed_ = std::make_shared<ops::PackedWeight>(
        n, k, scalar(compute), MemoryZone::named("packed weights"), orders
    );
  }
  constexpr auto kGrain = std::size_t{ops::PackedWeight::kRowGrain};
  const auto rows = static_cast<std::size_t>(n);
  const auto run = ops::current_execution();
  run.pool.parallel_for(
      (rows + kGrain - 1) / kGrain, 1, [&](std::size_t begin, std::size_t end) {
        w.refresh(
            static_cast<long>(begin * kGrain),
            static_cast<long>(std::min(end * kGrain, rows)), run
        );
      }
  );
}

}  // namespace hearth::nn
