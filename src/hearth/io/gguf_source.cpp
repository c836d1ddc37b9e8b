#include "hearth/io/gguf_source.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/io/file_source.h"
#include "hearth/io/gguf_config.h"
#include "hearth/io/gguf_file.h"
#include "hearth/io/gguf_names.h"
#include "hearth/io/message_impl.h"

namespace hearth::io {
namespace {

using Bytes = std::vector<std::byte>;

// Hugging Face has the first halves of a head's rotary pairs, then the second;
// a converted file has them pair by pair.
Bytes unpermuted(
    std::span<const std::byte> from,
    std::size_t rows,
    std::size_t heads
) {
  Bytes out(from.size());
  const std::size_t row = from.size() / rows, size = rows / heads;
  for (std::size_t r = 0; r < rows; ++r) {
    const std::size_t head = r / size, within = r % size;
    const std::size_t half = within / (size / 2), pair = within % (size / 2);
    const std::size_t source = head * size + 2 * pair + half;
    std::memcpy(&out[r * row], &from[source * row], row);
  }
  return out;
}

Bytes minus_one(std::span<const std::byte> from) {
  Bytes out(from.size());
  for (std::size_t at = 0; at < from.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, &from[at], sizeof value);
    value -= 1;
    std::memcpy(&out[at], &value, sizeof value);
  }
  return out;
}

// rows and columns are those of the result.
Bytes transposed(
    std::span<const std::byte> from,
    std::size_t rows,
    std::size_t columns,
    std::size_t item
) {
  Bytes out(from.size());
  constexpr std::size_t kTile = 32;
  for (std::size_t r0 = 0; r0 < rows; r0 += kTile) {
    for (std::size_t c = 0; c < columns; ++c) {
      for (std::size_t r = r0; r < std::min(rows, r0 + kTile); ++r) {
        std::memcpy(
            &out[(r * columns + c) * item], &from[(c * rows + r) * item], item
        );
      }
    }
  }
  return out;
}

class GgufSource final : public ModelSource, public FileSource {
 public:
  // Reading the file is part of `file`; `start` is when that began.
  GgufSource(GgufFile file, bool from_file, Clock::time_point start)
      : from_file_(from_file),
        file_(std::make_shared<const GgufFile>(std::move(file))),
        config_(gguf_config(*file_)),
        generation_config_(gguf_generation_config(file_->metadata())) {
    for (const GgufTensor& tensor : file_->tensors()) add(tensor);
    std::sort(entries_.begin(), entries_.end(), [](auto& a, auto& b) {
      return a.info.name < b.info.name;
    });
    for (const Entry& entry : entries_) tensors_.push_back(entry.info);
    header_time_ = Clock::now() - start;
  }

  const std::string& path() const override { return file_->name(); }
  const Json& config() const override { return config_; }
  const Json& generation_config() const override { return generation_config_; }
  std::span<const TensorInfo> tensors() const override { return tensors_; }

  TensorData data(const TensorInfo& tensor) const override {
    const Entry& entry = entry_of(tensor);
    const TensorInfo* own = &entry.info;
    const auto bytes = file_->bytes().subspan(own->offset, own->bytes);
    const auto size = [&](int i) {
      return static_cast<std::size_t>(own->shape[static_cast<std::size_t>(i)]);
    };
    switch (entry.change) {
      case GgufChange::kNone:
        return {bytes, file_};
      case GgufChange::kQueryRows:
      case GgufChange::kKeyRows:
        return owned(unpermuted(bytes, size(0), entry.heads));
      case GgufChange::kPlusOne:
        return owned(minus_one(bytes));
      case GgufChange::kTransposed:
        return owned(
            transposed(bytes, size(0), size(1), unit_of(own->type).bytes)
        );
    }
    return {};
  }
  bool plain(const TensorInfo& tensor) const override {
    return from_file_ && entry_of(tensor).change == GgufChange::kNone;
  }
  double header_seconds() const override { return header_time_.count(); }
  void release(const TensorInfo& tensor) const override {
    file_->release(tensor.offset, tensor.bytes);
  }

 private:
  struct Entry {
    TensorInfo info;
    GgufChange change = GgufChange::kNone;
    std::size_t heads = 0;
  };

  const Entry& entry_of(const TensorInfo& tensor) const {
    const TensorInfo* own = find(tensor.name);
    if (own == nullptr) {
      throw UsageError(
          fmt::format(
              "[io.data] tensor {} must be of this model",
              in_quotes(tensor.name)
          )
      );
    }
    return entries_[static_cast<std::size_t>(own - &tensors_[0])];
  }

  static TensorData owned(Bytes bytes) {
    auto owner = std::make_shared<const Bytes>(std::move(bytes));
    return {*owner, owner};
  }

  [[noreturn]] void fail(
      const GgufTensor& tensor,
      std::string_view what
  ) const {
    throw FormatError::at_offset(
        file_->name(), tensor.offset,
        fmt::format("tensor {} {}", in_quotes(tensor.name), what)
    );
  }

  void add(const GgufTensor& tensor) {
    if (tensor.name == "rope_freqs.weight") return;  // the config says it
    const std::string architecture =
        file_->metadata().text("general.architecture");
    const auto name = hugging_face_name(architecture, tensor.name);
    if (!name) {
      fail(tensor, fmt::format("is not known in a {} model", architecture));
    }
    Entry entry;
    entry.info = {name->name,   tensor.type,   tensor.shape,
                  tensor.bytes, file_->name(), tensor.offset};
    entry.change = name->change;
    check_change(tensor, entry);
    entries_.push_back(std::move(entry));
  }

  void check_change(const GgufTensor& tensor, Entry& entry) const {
    const bool quantized = is_quantized(tensor.type);
    switch (entry.change) {
      case GgufChange::kNone:
        return;
      case GgufChange::kQueryRows:
      case GgufChange::kKeyRows: {
        const bool query = entry.change == GgufChange::kQueryRows;
        entry.heads =
            config_.at(query ? "num_attention_heads" : "num_key_value_heads");
        const auto rows = static_cast<std::size_t>(tensor.shape.front());
        if (rows % (2 * entry.heads) != 0 ||
            (quantized && tensor.shape.size() < 2)) {
          fail(tensor, fmt::format("must have rows for {} heads", entry.heads));
        }
        return;
      }
      case GgufChange::kPlusOne:
        if (tensor.type != TensorType::f32) {
          fail(tensor, "must be F32, as every norm of this family is");
        }
        return;
      case GgufChange::kTransposed:
        if (tensor.shape.size() != 2) fail(tensor, "must have two dimensions");
        if (quantized) {
          entry.change = GgufChange::kNone;
          entry.info.transposed = true;
        } else {
          std::swap(entry.info.shape[0], entry.info.shape[1]);
        }
    }
  }

  bool from_file_;  // not from bytes in memory
  std::chrono::duration<double> header_time_{0};
  std::shared_ptr<const GgufFile> file_;
  Json config_, generation_config_;
  std::vector<Entry> entries_;
  std::vector<TensorInfo> tensors_;
};

}  // namespace

std::shared_ptr<const ModelSource> open_gguf(const std::string& path) {
  const auto start = Clock::now();
  return std::make_shared<const GgufSource>(GgufFile(path), true, start);
}

std::shared_ptr<const ModelSource> open_gguf(
    std::span<const std::byte> bytes,
    const std::string& name
) {
  const auto start = Clock::now();
  return std::make_shared<const GgufSource>(
      GgufFile(bytes, name), false, start
  );
}

}  // namespace hearth::io
