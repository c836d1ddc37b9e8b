// Any text: as rows of a table, whose fields come back as lines of JSON that
// the reader of records takes; as a list of records in an object; and as
// UTF-16, which becomes valid UTF-8 in pieces of any size.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "hearth/base/error.h"
#include "hearth/data/read/dataset_array.h"
#include "hearth/data/read/dataset_record.h"
#include "hearth/data/read/dataset_table.h"
#include "hearth/data/read/dataset_utf16.h"
#include "hearth/text/tokenizer/utf8.h"

namespace {

using namespace hearth::data;

void require(bool held) {
  if (!held) std::abort();
}

void read_rows(std::string_view text) {
  static const ReadSettings settings;
  static RecordParser parser(settings);
  const char separator = find_separator(text.substr(0, text.find('\n')));
  std::vector<std::string> columns;
  Record record;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(row_end(text, at, separator), text.size());
    require(end == text.size() || text[end] == '\n');
    const auto fields = row_fields(text.substr(at, end - at), separator);
    require(!fields.empty());
    if (at == 0) columns = fields;
    std::string line;
    if (append_row(columns, fields, line)) {
      line = hearth::text::repair_utf8(line);
      hearth::parse_json(line, "row", {.max_bytes = line.size() + 1});
      try {
        parser.parse(line, FileFormat::kJsonl, record);
      } catch (const hearth::FormatError&) {
      }
    }
    at = end + 1;
  }
}

class MemoryStream : public ByteStream {
 public:
  explicit MemoryStream(std::string_view bytes) : bytes_(bytes) {}
  std::size_t read(std::span<char> out) override {
    const std::size_t part = std::min({out.size(), bytes_.size(), at_ % 7 + 1});
    std::copy_n(bytes_.begin(), part, out.begin());
    bytes_.remove_prefix(part);
    at_ += part;
    return part;
  }
  std::uint64_t stored_position() const override { return at_; }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

void read_wide(std::string_view bytes) {
  const auto stream = read_as_utf8(std::make_unique<MemoryStream>(bytes));
  const bool marked =
      bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF");
  std::string text;
  char block[5];
  while (const auto got = stream->read(block)) text.append(block, got);
  require(marked ? hearth::text::is_valid_utf8(text) : text == bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  const std::string_view text(reinterpret_cast<const char*>(data), n);
  read_rows(text);
  read_wide(text);
  if (const auto at = list_of_records(text, {})) {
    require(*at < n && text[*at] == '[');
    wrong_after_list(text.substr(*at), true);
  }
  return 0;
}
