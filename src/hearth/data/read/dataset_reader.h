#pragma once
// Cuts a file into records: lines of JSONL, items of a JSON array, rows of a
// table (which become lines of JSON), documents of plain text. Reading is
// sequential and cheap; what is inside a record is left to whoever gets it.
//
// Where a record ends depends on where it begins and on the file, never on
// buffer sizes, so reading can stop after any record and go on from there.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/data/parquet/rows.h"
#include "hearth/data/read/dataset.h"
#include "hearth/data/read/dataset_stream.h"

namespace hearth::data {

struct ReadPosition {
  std::uint64_t offset = 0;  // in decompressed bytes; in rows of Parquet
  std::uint64_t line = 1;    // of the byte at offset
};

struct RawRecord {
  std::uint32_t begin = 0, end = 0;  // in the chunk's bytes
  std::uint64_t line = 0;            // where it starts
  ReadPosition next;                 // where the one after it starts
  bool too_long = false;             // its bytes were dropped
  std::string problem;               // why it is none; empty: it is one

  bool readable() const { return !too_long && problem.empty(); }
};

// Some records in a row, with the bytes they lie in.
struct RawChunk {
  std::string bytes;
  std::vector<RawRecord> records;
};

class RecordReader {
 public:
  RecordReader(
      const DataFile& file,
      const ReadSettings& settings,
      ReadPosition from = {}
  );
  // The next records, at least one; false at the end of the file. Blank lines
  // and empty documents are left out. Throws FormatError for an array that is
  // not one.
  bool next(RawChunk& chunk);
  std::uint64_t stored_position() const {
    return rows_ ? rows_->stored_position() : stream_->stored_position();
  }

 private:
  struct Cut {
    std::size_t begin, end, next;
  };
  const ReadSettings& settings_;
  std::string path_;
  FileFormat format_;
  // Of JSON that is one list of records: where the list begins, and whether it
  // is a member of an object.
  std::optional<std::size_t> array_;
  bool member_ = false;
  // Of a table.
  char separator_ = ',';
  std::vector<std::string> columns_;
  std::unique_ptr<parquet::Rows> rows_;  // of Parquet, in place of a stream
  std::unique_ptr<ByteStream> stream_;
  std::string buffer_;
  std::size_t begin_ = 0;  // of what is not cut yet
  ReadPosition position_;
  bool at_end_ = false, closed_ = false;

  std::string beginning() const;
  void read_columns();
  bool next_rows(RawChunk& chunk);
  bool fill();
  bool cut(std::size_t& searched, Cut& out);
  bool cut_line(std::size_t& searched, Cut& out) const;
  bool cut_row(Cut& out) const;
  bool cut_text(std::size_t& searched, Cut& out) const;
  bool cut_item(Cut& out);
  bool close_array(std::size_t at, Cut& out);
  [[noreturn]] void broken_array(std::size_t at, const char* what) const;
  void skip_long_line(RawChunk& chunk);
  void take(const Cut& cut, RawChunk& chunk);
  void put(std::string_view text, RawRecord& record, RawChunk& chunk) const;
};

}  // namespace hearth::data
