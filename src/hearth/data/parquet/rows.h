#pragma once
// The rows of a Parquet file, each as one line of JSON: what a data set of the
// hub is. Groups of columns are objects, lists are lists, a map is an object.
// Read a page of each column at a time, so memory does not grow with the file.
//
// Not read: columns packed by LZ4, Brotli or LZO, delta and split encodings,
// encrypted files. Decimals, intervals and numbers of 96 bits have no form in
// JSON that is theirs and are null.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hearth/base/file_handle.h"
#include "hearth/data/parquet/column.h"
#include "hearth/data/parquet/metadata.h"

namespace hearth::data::parquet {

class Rows {
 public:
  // Begins at that row. Throws FormatError that names the file.
  explicit Rows(const std::string& path, std::uint64_t row = 0);
  // Appends the next row as JSON; false after the last.
  bool next(std::string& out);
  // How many rows were given or passed over.
  std::uint64_t row() const { return row_; }
  std::uint64_t stored_position() const;

 private:
  FileHandle file_;
  Metadata meta_;
  std::size_t group_ = 0;  // the next to open
  std::uint64_t row_ = 0, left_ = 0;
  std::vector<std::unique_ptr<ColumnReader>> columns_;

  void read_footer();
  bool next_here(std::string& out);
  bool open_group();
  void write(const Node& node, std::string& out);
  void write_some(const Node& node, std::string& out);
  void write_group(const Node& node, std::string& out);
  void write_pairs(const Node& pairs, std::string& out);
  void pass(const Node& node);
};

// A value of a leaf as JSON.
void append_value(const Node& leaf, std::string_view bytes, std::string& out);

}  // namespace hearth::data::parquet
