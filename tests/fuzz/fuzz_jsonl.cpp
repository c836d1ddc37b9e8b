// Any line: a record or a FormatError; and whatever base/json.h takes for
// JSON, the quick reader takes too, with the same value.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "hearth/base/error.h"
#include "hearth/data/read/dataset_record.h"
#include "hearth/text/json_cursor.h"
#include "hearth/text/tokenizer/utf8.h"

namespace {

void compare(std::string_view text) {
  // The general parser takes a NUL after the value for the end of the text.
  if (text.find('\0') != std::string_view::npos) return;
  hearth::Json expected;
  try {
    expected = hearth::parse_json(text, "fuzz");
  } catch (const hearth::FormatError&) {
    return;
  }
  hearth::text::JsonCursor cursor(text);
  const hearth::Json got = cursor.value();
  cursor.end();
  if (got != expected) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  const std::string_view line(reinterpret_cast<const char*>(data), n);
  static const hearth::data::ReadSettings settings;
  hearth::data::RecordParser parser(settings);
  hearth::data::Record record;
  try {
    parser.parse(line, hearth::data::FileFormat::kJsonl, record);
    record.content_hash();
  } catch (const hearth::FormatError&) {
  }
  compare(hearth::text::repair_utf8(line));
  return 0;
}
