#pragma once
// The values of one column chunk, one after another, a page in memory at a
// time.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/file_handle.h"
#include "hearth/data/parquet/metadata.h"
#include "hearth/data/parquet/runs.h"

namespace hearth::data::parquet {

class ColumnReader {
 public:
  // The file must outlive it.
  ColumnReader(const FileHandle& file, const Node& leaf, ColumnChunk chunk);

  // The entry that is reached: a value or the lack of one, and its levels. A
  // row begins where nothing repeats.
  bool at_end() const { return at_end_; }
  std::uint32_t definition() const { return definition_; }
  std::uint32_t repeated() const { return repeated_; }
  bool has_value() const { return definition_ == leaf_.definition; }
  // Its bytes as they are stored, until advance(); a truth is one byte.
  std::string_view value() const { return value_; }
  void advance();

 private:
  struct PageHead {
    std::int64_t type = -1, unpacked = -1, packed = -1;
    std::int64_t values = 0, encoding = 0;
    std::int64_t definition_bytes = -1, repeated_bytes = -1;  // second version
    std::int64_t definition_encoding = 3, repeated_encoding = 3;
    bool is_packed = true;
  };

  const FileHandle& file_;
  Node leaf_;
  ColumnChunk chunk_;
  std::uint64_t at_ = 0;        // in the chunk
  std::int64_t seen_ = 0;       // values of the pages before
  std::int64_t page_left_ = 0;  // entries of this page
  bool at_end_ = false;
  std::uint32_t definition_ = 0, repeated_ = 0;
  std::string_view value_;

  std::string raw_, page_, dictionary_bytes_;
  std::vector<std::string_view> dictionary_;
  bool has_dictionary_ = false;
  RunReader definitions_, repeats_, indices_;
  bool by_index_ = false, by_run_ = false;
  std::string_view plain_;  // what is left of plain values
  unsigned bit_ = 0;        // of a plain truth
  std::uint8_t truth_ = 0;

  void load_page();
  PageHead read_head();
  static void read_data_head(
      class ThriftReader& in,
      PageHead& head,
      bool second
  );
  void read_raw(const PageHead& head);
  void read_dictionary(const PageHead& head);
  void begin_first(const PageHead& head);
  void begin_second(const PageHead& head);
  void begin_values(const PageHead& head, std::string_view values);
  std::string_view plain_value(std::string_view& from) const;
  void read_value();
};

}  // namespace hearth::data::parquet
