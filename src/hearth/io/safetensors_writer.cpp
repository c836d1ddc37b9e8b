#include "hearth/io/safetensors_writer.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/io/message_impl.h"
#include "hearth/io/safetensors.h"
#include "hearth/io/tensor_size_impl.h"

namespace hearth::io {
namespace {

constexpr std::size_t kAlignment = 64;

void put_in_order(std::vector<TensorToWrite>& tensors) {
  const auto width = [](const TensorToWrite& t) {
    return unit_of(t.type).bytes;
  };
  std::sort(tensors.begin(), tensors.end(), [&](auto& a, auto& b) {
    return width(a) != width(b) ? width(a) > width(b) : a.name < b.name;
  });
}

void refuse_names_twice(const std::vector<TensorToWrite>& tensors) {
  std::vector<std::string_view> names;
  for (const TensorToWrite& t : tensors) names.push_back(t.name);
  std::sort(names.begin(), names.end());
  const auto it = std::adjacent_find(names.begin(), names.end());
  if (it == names.end() &&
      !std::count(names.begin(), names.end(), "__metadata__")) {
    return;
  }
  throw UsageError(
      fmt::format(
          "[io.write_safetensors] a tensor's name must stand once and not be "
          "__metadata__, got {}",
          it == names.end() ? "that" : in_quotes(*it)
      )
  );
}

// Written out by hand: a JSON object of thousands of keys in a fixed order.
std::string header_of(
    const std::vector<TensorToWrite>& tensors,
    const std::map<std::string, std::string>& metadata
) {
  std::string out = "{";
  if (!metadata.empty())
    out += "\"__metadata__\":" + to_json_line(Json(metadata));
  std::uint64_t at = 0;
  for (const TensorToWrite& t : tensors) {
    const std::uint64_t size = bytes_of(t);
    if (out.size() > 1) out += ',';
    out += fmt::format(
        R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
        to_json_line(Json(t.name)), safetensors_name(t.type),
        fmt::join(t.shape, ","), at, at + size
    );
    at += size;
  }
  out += '}';
  const std::size_t whole = 8 + out.size();
  out.append((kAlignment - whole % kAlignment) % kAlignment, ' ');
  return out;
}

}  // namespace

std::uint64_t bytes_of(const TensorToWrite& tensor) {
  safetensors_name(tensor.type);
  const auto bytes = tensor_bytes(tensor.type, tensor.shape);
  if (!bytes) {
    throw UsageError(
        fmt::format(
            "[io.write_safetensors] tensor {} must have a possible shape, got "
            "[{}]",
            in_quotes(tensor.name), fmt::join(tensor.shape, ", ")
        )
    );
  }
  return *bytes;
}

TensorToWrite copy_of(const ModelSource& model, const TensorInfo& tensor) {
  return {tensor.name, tensor.type, tensor.shape, [&model, &tensor] {
            return model.data(tensor);
          }};
}

TensorToWrite tensor_of(
    std::string name,
    TensorType type,
    std::vector<std::int64_t> shape,
    std::span<const std::byte> bytes
) {
  return {std::move(name), type, std::move(shape), [bytes] {
            return TensorData{bytes, nullptr};
          }};
}

void write_safetensors(
    const std::string& path,
    std::vector<TensorToWrite> tensors,
    const std::map<std::string, std::string>& metadata
) {
  put_in_order(tensors);
  refuse_names_twice(tensors);
  const std::string header = header_of(tensors, metadata);
  AtomicFile file(path);
  const std::uint64_t length = header.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  for (const TensorToWrite& t : tensors) {
    const TensorData data = t.data();
    if (data.bytes.size() != bytes_of(t)) {
      throw UsageError(
          fmt::format(
              "[io.write_safetensors] tensor {} must have {} bytes, got {}",
              in_quotes(t.name), bytes_of(t), data.bytes.size()
          )
      );
    }
    file.write(data.bytes);
  }
  file.commit();
}

}  // namespace hearth::io
