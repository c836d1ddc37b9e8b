#include "hearth/io/gguf_file.h"

#include <algorithm>
#include <bit>
#include <set>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/io/gguf_reader_impl.h"
#include "hearth/io/message_impl.h"
#include "hearth/io/tensor_size_impl.h"

namespace hearth::io {
namespace {

constexpr std::uint64_t kMostTensors = 1 << 20;
constexpr std::uint32_t kMostSizes = 4;
// A name's length, the count of sizes, one size, the type, the offset.
constexpr std::uint64_t kLeastTensorBytes = 8 + 4 + 8 + 4 + 8;

struct Row {
  std::uint32_t number;
  TensorType type;
};
// Beside the blocks of kBlockFormats.
constexpr Row kTypes[] = {
    {0, TensorType::f32},
    {1, TensorType::f16},
    {30, TensorType::bf16}
};

std::string upper(std::string_view name) {
  std::string out(name);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  return out;
}

// "F32, F16, BF16, ... and Q6_K"
std::string readable_types() {
  std::vector<std::string> names;
  for (const Row& row : kTypes) names.push_back(upper(name_of(row.type)));
  for (const BlockFormat& b : kBlockFormats) names.push_back(upper(b.name));
  const std::string last = names.back();
  names.pop_back();
  return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

// Names of types that other programs write and this one does not read.
std::string_view known_name(std::uint32_t number) {
  struct Name {
    std::uint32_t number;
    std::string_view name;
  };
  constexpr Name kNames[] = {
      {6, "Q5_0"},     {7, "Q5_1"},    {9, "Q8_1"},     {10, "Q2_K"},
      {11, "Q3_K"},    {15, "Q8_K"},   {16, "IQ2_XXS"}, {17, "IQ2_XS"},
      {18, "IQ3_XXS"}, {19, "IQ1_S"},  {20, "IQ4_NL"},  {21, "IQ3_S"},
      {22, "IQ2_S"},   {23, "IQ4_XS"}, {24, "I8"},      {25, "I16"},
      {26, "I32"},     {27, "I64"},    {28, "F64"},     {29, "IQ1_M"},
      {34, "TQ1_0"},   {35, "TQ2_0"},  {39, "MXFP4"},   {40, "NVFP4"},
  };
  for (const Name& n : kNames) {
    if (n.number == number) return n.name;
  }
  return "";
}

TensorType type_of(GgufReader& reader, const std::string& name) {
  const auto number = reader.scalar<std::uint32_t>();
  for (const Row& row : kTypes) {
    if (row.number == number) return row.type;
  }
  for (const BlockFormat& b : kBlockFormats) {
    if (b.gguf == number) return block_type(b);
  }
  const std::string_view known = known_name(number);
  reader.fail(
      fmt::format(
          "tensor {}: type {} is not supported; {} are", in_quotes(name),
          known.empty() ? std::to_string(number) : known, readable_types()
      )
  );
}

GgufTensor read_tensor(GgufReader& reader) {
  GgufTensor tensor;
  tensor.name = reader.text();
  const auto sizes = reader.scalar<std::uint32_t>();
  if (sizes == 0 || sizes > kMostSizes) {
    reader.fail(
        fmt::format(
            "tensor {} must have 1 to {} dimensions, got {}",
            in_quotes(tensor.name), kMostSizes, sizes
        )
    );
  }
  for (std::uint32_t i = 0; i < sizes; ++i) {
    tensor.shape.push_back(reader.scalar<std::int64_t>());
  }
  std::reverse(tensor.shape.begin(), tensor.shape.end());
  tensor.type = type_of(reader, tensor.name);
  tensor.offset = reader.scalar<std::uint64_t>();
  const auto bytes = tensor_bytes(tensor.type, tensor.shape);
  if (!bytes || *bytes == 0) {
    reader.fail(
        fmt::format(
            "tensor {}: {} [{}] is not a possible shape",
            in_quotes(tensor.name), name_of(tensor.type),
            fmt::join(tensor.shape, ", ")
        )
    );
  }
  tensor.bytes = *bytes;
  return tensor;
}

}  // namespace

GgufFile::GgufFile(const std::string& path)
    : file_(path), bytes_(file_.bytes()), metadata_(file_.text(), path) {
  read_tensors();
}

GgufFile::GgufFile(std::span<const std::byte> bytes, const std::string& name)
    : bytes_(bytes),
      metadata_(
          {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
          name
      ) {
  read_tensors();
}

void GgufFile::read_tensors() {
  const std::string_view text(
      reinterpret_cast<const char*>(bytes_.data()), bytes_.size()
  );
  GgufReader reader(text, name(), metadata_.end());
  const std::uint64_t count = metadata_.tensor_count();
  const std::uint64_t room = (bytes_.size() - reader.at()) / kLeastTensorBytes;
  if (count > std::min(kMostTensors, room)) {
    reader.fail(
        fmt::format(
            "the header counts {} tensors, more than the file can hold", count
        )
    );
  }
  const std::int64_t alignment = metadata_.integer("general.alignment", 32);
  if (alignment <= 0 || alignment > 1 << 20 ||
      !std::has_single_bit(static_cast<std::uint64_t>(alignment))) {
    reader.fail(
        fmt::format(
            "general.alignment must be a power of two, got {}", alignment
        )
    );
  }
  std::set<std::string_view> names;
  tensors_.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    tensors_.push_back(read_tensor(reader));
    if (!names.insert(tensors_.back().name).second) {
      reader.fail(
          fmt::format(
              "tensor {} is given twice", in_quotes(tensors_.back().name)
          )
      );
    }
  }
  const auto unit = static_cast<std::uint64_t>(alignment);
  check_places((reader.at() + unit - 1) / unit * unit, unit);
}

// Offsets of the file count from the data's begin; here they become absolute.
void GgufFile::check_places(std::uint64_t data_begin, std::uint64_t alignment) {
  const std::uint64_t size =
      bytes_.size() > data_begin ? bytes_.size() - data_begin : 0;
  std::vector<const GgufTensor*> order;
  for (GgufTensor& tensor : tensors_) {
    const auto fail = [&](std::string_view what) {
      throw FormatError::at_offset(
          name(), data_begin,
          fmt::format(
              "tensor {} at {} of the data {}", in_quotes(tensor.name),
              tensor.offset, what
          )
      );
    };
    if (tensor.offset % alignment != 0) {
      fail(fmt::format("must be aligned to {} bytes", alignment));
    }
    if (tensor.offset > size || tensor.bytes > size - tensor.offset) {
      fail(
          fmt::format(
              "takes {} bytes, the file has only {}: it is cut short",
              tensor.bytes, size > tensor.offset ? size - tensor.offset : 0
          )
      );
    }
    tensor.offset += data_begin;
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return a->offset < b->offset;
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order[i - 1]->offset + order[i - 1]->bytes > order[i]->offset) {
      throw FormatError::at_offset(
          name(), order[i]->offset,
          fmt::format(
              "tensor {} overlaps {}", in_quotes(order[i]->name),
              in_quotes(order[i - 1]->name)
          )
      );
    }
  }
}

}  // namespace hearth::io
