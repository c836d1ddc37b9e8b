// Any bytes: as a Parquet file, whose rows are JSON or an error; as a footer;
// as Snappy's.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "hearth/base/error.h"
#include "hearth/data/parquet/rows.h"
#include "hearth/data/parquet/unpack.h"
#include "hearth/text/json_cursor.h"
#include "hearth/text/tokenizer/utf8.h"

namespace {

using namespace hearth::data::parquet;

// One file of the process, written anew each time.
const std::string& file_with(const std::uint8_t* data, std::size_t n) {
  static const std::string path =
      (std::filesystem::temp_directory_path() /
       ("hearth_fuzz_" + std::to_string(getpid()) + ".parquet"))
          .string();
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const bool whole =
      file >= 0 && write(file, data, n) == static_cast<ssize_t>(n);
  close(file);
  if (!whole) std::abort();
  return path;
}

void read_rows(const std::string& path) {
  constexpr int kMost = 2000;
  Rows rows(path);
  std::string row;
  for (int i = 0; i < kMost && rows.next(row); ++i, row.clear()) {
    const std::string text = hearth::text::repair_utf8(row);
    hearth::text::JsonCursor cursor(text);
    cursor.skip();
    cursor.end();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), n);
  try {
    parse_metadata(bytes, n);
  } catch (const hearth::FormatError&) {
  }
  std::string out;
  unpack_snappy(bytes, 1000, out);
  try {
    read_rows(file_with(data, n));
  } catch (const hearth::FormatError& e) {
    // Of the file, never of a row's JSON.
    if (std::string_view(e.what()).find("hearth_fuzz_") == std::string::npos) {
      std::abort();
    }
  }
  return 0;
}
