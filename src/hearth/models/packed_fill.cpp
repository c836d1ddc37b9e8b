// Parameters to and from a file of packed weights.
#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/models/packed_cache.h"
#include "hearth/ops/execution.h"
#include "hearth/ops/leaf.h"

namespace hearth::models {
namespace {

using io::PackedEntry;
using io::PackedFile;

class Filling {
 public:
  explicit Filling(std::shared_ptr<const PackedFile> file)
      : file_(std::move(file)) {
    for (const PackedEntry& e : file_->entries()) {
      entries_[e.name].push_back(&e);
    }
  }

  void fill(nn::Weight& p) {
    const auto at = entries_.find(p.name);
    if (at == entries_.end()) {
      throw FormatError::at(
          file_->name(), 0, fmt::format("parameter {} is missing", p.name)
      );
    }
    const std::vector<std::int64_t> shape(p.shape.begin(), p.shape.end());
    std::optional<mx::array> value;
    std::shared_ptr<ops::PackedWeight> panels;
    std::shared_ptr<const ops::QuantizedWeight> codes;
    for (const PackedEntry* e : at->second) {
      if (e->shape != shape) refuse(*e, "is not of the model's shape");
      if (e->form == "value") {
        value = plain(*e, p.shape);
      } else if (e->form == "packed") {
        panels = packed(*e);
      } else if (e->form == "quantized") {
        codes = quantized(*e);
      } else {
        refuse(*e, "has an unknown form");
      }
    }
    if (codes) {
      p.set(std::move(codes), std::move(value));
    } else if (value) {
      p.set(std::move(*value), std::move(panels));
    } else {
      p.set(std::move(panels));
    }
  }

 private:
  std::shared_ptr<const PackedFile> file_;
  std::map<std::string, std::vector<const PackedEntry*>, std::less<>> entries_;

  [[noreturn]] void refuse(const PackedEntry& e, const char* what) const {
    throw FormatError::at_offset(
        file_->name(), e.offset, fmt::format("parameter {} {}", e.name, what)
    );
  }

  mx::array plain(const PackedEntry& e, const mx::Shape& shape) const {
    const mx::Dtype type = e.type == "f32" ? mx::float32 : mx::bfloat16;
    if (e.type != "f32" && e.type != "bf16") refuse(e, "has an unknown type");
    std::size_t bytes = mx::size_of(type);
    for (const auto n : shape) bytes *= static_cast<std::size_t>(n);
    if (bytes != e.bytes) refuse(e, "is not as long as its shape says");
    return ops::leaf_over(file_->bytes(e).data(), shape, type, file_);
  }

  std::shared_ptr<ops::PackedWeight> packed(const PackedEntry& e) const {
    using kernels::GemmScalar;
    if (e.shape.size() != 2) refuse(e, "must be a matrix");
    return std::make_shared<ops::PackedWeight>(
        e.shape[0], e.shape[1],
        e.type == "bf16" ? GemmScalar::bf16 : GemmScalar::f32, file_->bytes(e),
        file_
    );
  }

  std::shared_ptr<const ops::QuantizedWeight> quantized(
      const PackedEntry& e
  ) const {
    if (e.shape.size() != 2) refuse(e, "must be a matrix");
    const auto layout = kernels::packed_layout(
        kernels::QuantFormat::parse(e.type), e.shape[0], e.shape[1]
    );
    if (layout.bytes() != e.bytes) refuse(e, "is not as long as it must be");
    return std::make_shared<const ops::QuantizedWeight>(
        ops::QuantizedWeight::of_packed(
            layout, ops::leaf_over(
                        file_->bytes(e).data(),
                        {static_cast<int>(layout.panels),
                         static_cast<int>(layout.panel_bytes)},
                        mx::uint8, file_
                    )
        )
    );
  }
};

}  // namespace

void verify_packed(const PackedFile& file, LoadReport& report) {
  const double start = seconds_now();
  const std::vector<double> blocks = file.verify(ops::current_execution().pool);
  const double took = seconds_now() - start;
  // The threads' times, as shares of the wall's.
  const double sum = std::accumulate(blocks.begin(), blocks.end(), 0.0);
  const double share = sum > 0 ? took / sum : 0;
  constexpr std::size_t kBlock = PackedFile::kBlock;
  const auto seconds_of = [&](const PackedEntry& e) {
    double seconds = 0;
    for (std::size_t at = e.offset; at < e.offset + e.bytes;) {
      const auto end =
          std::min<std::size_t>((at / kBlock + 1) * kBlock, e.offset + e.bytes);
      const std::size_t block =
          std::min(kBlock, file.size() - at / kBlock * kBlock);
      seconds += blocks[at / kBlock] * static_cast<double>(end - at) /
                 static_cast<double>(block);
      at = end;
    }
    return seconds * share;
  };
  std::string before;
  for (const PackedEntry& e : file.entries()) {
    LoadPart& part = part_named(report.classes, tensor_class(e.name));
    // Forms of one parameter follow each other.
    if (e.name != before) ++part.tensors;
    before = e.name;
    part.bytes += e.bytes;
    const double seconds = seconds_of(e);
    part.seconds += seconds;
    part.times.read += seconds;
  }
  std::ranges::sort(report.classes, std::ranges::greater{}, &LoadPart::bytes);
  report.times.read += took;
}

void fill_from_packed(
    const std::shared_ptr<const PackedFile>& file,
    Decoder& decoder
) {
  Filling filling(file);
  for (nn::Weight* p : decoder.parameters().all()) filling.fill(*p);
}

}  // namespace hearth::models
