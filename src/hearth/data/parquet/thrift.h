#pragma once
// Thrift's compact protocol, in which Parquet writes its headers, read from
// bytes that nobody vouches for: every length is checked, nesting is bounded,
// and what nobody asks for is stepped over.
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hearth::data::parquet {

class ThriftReader {
 public:
  enum Type : std::uint8_t {
    kStop = 0,
    kTrue = 1,
    kFalse = 2,
    kByte = 3,
    kI16 = 4,
    kI32 = 5,
    kI64 = 6,
    kDouble = 7,
    kBinary = 8,
    kList = 9,
    kSet = 10,
    kMap = 11,
    kStruct = 12,
  };
  struct Field {
    int id = 0;
    Type type = kStop;
    bool is(int wanted, Type as) const { return id == wanted && type == as; }
  };

  explicit ThriftReader(std::string_view bytes) : bytes_(bytes) {}

  // Field f{}; while (next_field(f)) { read the value or skip(f.type) }
  bool next_field(Field& field);
  std::int64_t integer();  // of any width but a byte's
  std::string_view binary();
  // The number of items, each of which is then read.
  std::size_t list(Type& item);
  void skip(Type type);

  std::size_t position() const { return at_; }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
  int depth_ = 0;

  std::uint8_t byte();
  std::uint64_t varint();
  void skip_bytes(std::size_t count);
  void skip_inside(Type type);
};

}  // namespace hearth::data::parquet
