#include "hearth/data/parquet/thrift.h"

#include "hearth/base/error.h"

namespace hearth::data::parquet {
namespace {

constexpr int kMaxDepth = 32;

}  // namespace

std::uint8_t ThriftReader::byte() {
  if (at_ == bytes_.size()) throw FormatError("a header is cut short");
  return static_cast<std::uint8_t>(bytes_[at_++]);
}

std::uint64_t ThriftReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const std::uint8_t part = byte();
    value |= static_cast<std::uint64_t>(part & 0x7F) << shift;
    if (part < 0x80) return value;
  }
  throw FormatError("a number of a header is too long");
}

bool ThriftReader::next_field(Field& field) {
  const std::uint8_t head = byte();
  field.type = static_cast<Type>(head & 0x0F);
  if (field.type == kStop) return false;
  const int step = head >> 4;
  field.id = step != 0 ? field.id + step : static_cast<int>(integer() & 0x7FFF);
  return true;
}

std::int64_t ThriftReader::integer() {
  const std::uint64_t value = varint();
  return static_cast<std::int64_t>(value >> 1) ^
         -static_cast<std::int64_t>(value & 1);
}

std::string_view ThriftReader::binary() {
  const std::uint64_t size = varint();
  if (size > bytes_.size() - at_) throw FormatError("a header is cut short");
  const auto text = bytes_.substr(at_, size);
  at_ += size;
  return text;
}

std::size_t ThriftReader::list(Type& item) {
  const std::uint8_t head = byte();
  item = static_cast<Type>(head & 0x0F);
  const std::uint64_t size = head >> 4 == 15 ? varint() : head >> 4;
  // An item takes a byte at least.
  if (size > bytes_.size() - at_) throw FormatError("a header is cut short");
  return size;
}

void ThriftReader::skip_bytes(std::size_t count) {
  if (count > bytes_.size() - at_) throw FormatError("a header is cut short");
  at_ += count;
}

void ThriftReader::skip(Type type) {
  if (++depth_ > kMaxDepth) throw FormatError("a header nests too deep");
  skip_inside(type);
  --depth_;
}

void ThriftReader::skip_inside(Type type) {
  switch (type) {
    case kTrue:
    case kFalse:
      return;
    case kByte:
      return skip_bytes(1);
    case kI16:
    case kI32:
    case kI64:
      integer();
      return;
    case kDouble:
      return skip_bytes(8);
    case kBinary:
      binary();
      return;
    case kList:
    case kSet: {
      Type item = kStop;
      const std::size_t count = list(item);
      for (std::size_t i = 0; i < count; ++i) {
        if (item == kTrue || item == kFalse) {
          skip_bytes(1);
        } else {
          skip(item);
        }
      }
      return;
    }
    case kStruct: {
      Field field;
      while (next_field(field)) skip(field.type);
      return;
    }
    default:
      throw FormatError("a header has a field of an unknown type");
  }
}

}  // namespace hearth::data::parquet
