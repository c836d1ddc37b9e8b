#include "hearth/io/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/units.h"
#include "hearth/io/message_impl.h"
#include "hearth/io/strict_json.h"
#include "hearth/io/tensor_size_impl.h"

namespace hearth::io {
namespace {

static_assert(std::endian::native == std::endian::little);

// What the format's own library allows.
constexpr std::size_t kMostHeader = 100'000'000;

struct Row {
  TensorType type;
  std::string_view name;
};
constexpr Row kTypes[] = {
    {TensorType::f64, "F64"},      {TensorType::f32, "F32"},
    {TensorType::f16, "F16"},      {TensorType::bf16, "BF16"},
    {TensorType::i64, "I64"},      {TensorType::i32, "I32"},
    {TensorType::i16, "I16"},      {TensorType::i8, "I8"},
    {TensorType::u64, "U64"},      {TensorType::u32, "U32"},
    {TensorType::u16, "U16"},      {TensorType::u8, "U8"},
    {TensorType::boolean, "BOOL"},
};

// One tensor's entry of the header.
class Entry {
 public:
  Entry(const std::string& file, const std::string& name, const SortedJson& v)
      : file_(file), name_(name), value_(v) {}

  TensorInfo read(std::size_t data_begin, std::size_t data_size) const {
    if (!value_.is_object()) fail("must be an object");
    for (const auto& [key, unused] : value_.items()) {
      if (key != "dtype" && key != "shape" && key != "data_offsets") {
        fail(fmt::format("has an unknown field {}", in_quotes(key)));
      }
    }
    TensorInfo out;
    out.name = name_;
    out.file = file_;
    out.type = type();
    for (const SortedJson& size : list("shape"))
      out.shape.push_back(whole(size));
    const SortedJson& offsets = list("data_offsets");
    if (offsets.size() != 2) fail("data_offsets must be two numbers");
    const auto begin = static_cast<std::uint64_t>(whole(offsets[0]));
    const auto end = static_cast<std::uint64_t>(whole(offsets[1]));
    if (begin > end || end > data_size) {
      fail(
          fmt::format(
              "bytes {} to {} must lie in the {} that the file has for tensors",
              begin, end, data_size
          )
      );
    }
    const auto bytes = tensor_bytes(out.type, out.shape);
    if (!bytes || *bytes != end - begin) {
      fail(
          fmt::format(
              "{} [{}] takes {} bytes, its offsets give {}", name_of(out.type),
              fmt::join(out.shape, ", "),
              bytes ? std::to_string(*bytes) : "too many", end - begin
          )
      );
    }
    out.bytes = *bytes;
    out.offset = data_begin + begin;
    return out;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw FormatError::at_offset(
        file_, 8, fmt::format("tensor {}: {}", in_quotes(name_), what)
    );
  }
  const SortedJson& field(const char* key) const {
    const auto it = value_.find(key);
    if (it == value_.end()) fail(fmt::format("has no {}", key));
    return *it;
  }
  const SortedJson& list(const char* key) const {
    const SortedJson& value = field(key);
    if (!value.is_array()) fail(fmt::format("{} must be a list", key));
    if (value.size() > 16) fail(fmt::format("{} is too long", key));
    return value;
  }
  std::int64_t whole(const SortedJson& value) const {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > INT64_MAX) {
      fail("sizes and offsets must be whole numbers");
    }
    return value.get<std::int64_t>();
  }
  TensorType type() const {
    const SortedJson& value = field("dtype");
    if (!value.is_string()) fail("dtype must be a string");
    const auto& text = value.get_ref<const std::string&>();
    for (const Row& row : kTypes) {
      if (row.name == text) return row.type;
    }
    fail(fmt::format("type {} is not supported", in_quotes(text)));
  }

  const std::string& file_;
  const std::string& name_;
  const SortedJson& value_;
};

}  // namespace

std::string_view safetensors_name(TensorType type) {
  for (const Row& row : kTypes) {
    if (row.type == type) return row.name;
  }
  throw UsageError(
      fmt::format(
          "[io.safetensors] a safetensors file cannot hold {} tensors",
          name_of(type)
      )
  );
}

std::shared_ptr<const SafetensorsFile> SafetensorsFile::open(
    const std::string& path
) {
  return std::make_shared<const SafetensorsFile>(MappedFile(path));
}

SafetensorsFile::SafetensorsFile(MappedFile file)
    : file_(std::move(file)), name_(file_.path()), bytes_(file_.bytes()) {
  read_header();
}

SafetensorsFile::SafetensorsFile(
    std::span<const std::byte> bytes,
    std::string name
)
    : name_(std::move(name)), bytes_(bytes) {
  read_header();
}

void SafetensorsFile::read_header() {
  const auto fail = [&](std::string_view what) {
    throw FormatError::at_offset(name_, 0, what);
  };
  if (bytes_.size() < 8) {
    fail(
        fmt::format(
            "not a safetensors file: it must have at least 8 bytes, got {}",
            bytes_.size()
        )
    );
  }
  std::uint64_t length = 0;
  std::memcpy(&length, bytes_.data(), sizeof length);
  if (length > kMostHeader) {
    fail(
        fmt::format(
            "not a safetensors file: its header must be at most {}, its length "
            "says {}",
            format_bytes(kMostHeader), length
        )
    );
  }
  if (length > bytes_.size() - 8) {
    fail(
        fmt::format(
            "the file is cut short: its header has {} bytes, the file {}",
            length, bytes_.size()
        )
    );
  }
  const std::string_view text(
      reinterpret_cast<const char*>(bytes_.data()) + 8, length
  );
  const SortedJson header = parse_strict_json(text, name_, 8, {kMostHeader, 4});
  if (!header.is_object()) fail("the header must be a JSON object");
  const std::size_t begin = 8 + length;
  for (const auto& [key, value] : header.items()) {
    if (key == "__metadata__") {
      if (!value.is_object()) fail("__metadata__ must be an object");
      for (const auto& [name, item] : value.items()) {
        if (!item.is_string()) fail("__metadata__ must hold strings only");
        metadata_[name] = item.get<std::string>();
      }
    } else {
      tensors_.push_back(
          Entry(name_, key, value).read(begin, bytes_.size() - begin)
      );
    }
  }
  check_order(begin);
}

// Tensors must lie one after the other, with no byte in two of them and none
// between them, as the format's own library requires.
void SafetensorsFile::check_order(std::size_t data_begin) const {
  std::vector<const TensorInfo*> order;
  for (const TensorInfo& t : tensors_) order.push_back(&t);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->offset, a->bytes) < std::pair(b->offset, b->bytes);
  });
  std::uint64_t at = data_begin;
  for (const TensorInfo* t : order) {
    if (t->offset != at) {
      throw FormatError::at_offset(
          name_, t->offset,
          fmt::format(
              "tensor {} {} the one before it, which ends at byte {}",
              in_quotes(t->name),
              t->offset < at ? "overlaps" : "leaves a gap after", at
          )
      );
    }
    at += t->bytes;
  }
  if (at != bytes_.size()) {
    throw FormatError::at_offset(
        name_, at,
        fmt::format("the tensors end here, the file at byte {}", bytes_.size())
    );
  }
}

std::span<const std::byte> SafetensorsFile::bytes(
    const TensorInfo& tensor
) const {
  return bytes_.subspan(tensor.offset, tensor.bytes);
}

}  // namespace hearth::io
