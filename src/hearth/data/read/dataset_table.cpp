#include "hearth/data/read/dataset_table.h"

#include <algorithm>

#include "hearth/data/read/json_string.h"

namespace hearth::data {
namespace {

// The end of the field that begins at `at`: a separator, a line end, or npos
// where the text ends before that is certain. A quote that is not the first
// character of a field is a character like others.
std::size_t field_end(std::string_view text, std::size_t at, char separator) {
  if (at < text.size() && text[at] == '"') {
    ++at;
    for (;;) {
      at = text.find('"', at);
      if (at == std::string_view::npos) return at;
      const bool doubled = at + 1 < text.size() && text[at + 1] == '"';
      if (!doubled) break;
      at += 2;
    }
  }
  const char ends[] = {separator, '\n'};
  return text.find_first_of(std::string_view(ends, 2), at);
}

std::string unquoted(std::string_view field) {
  if (!field.starts_with('"')) return std::string(field);
  std::string out;
  std::size_t at = 1;
  while (at < field.size()) {
    const bool quote = field[at] == '"';
    if (quote && (at + 1 >= field.size() || field[at + 1] != '"')) break;
    out += field[at];
    at += quote ? 2 : 1;
  }
  // What follows the closing quote is kept, as spreadsheets do.
  out += field.substr(std::min(at + 1, field.size()));
  return out;
}

}  // namespace

std::size_t row_end(std::string_view text, std::size_t from, char separator) {
  for (std::size_t at = from;; ++at) {
    at = field_end(text, at, separator);
    if (at == std::string_view::npos || text[at] == '\n') return at;
  }
}

std::vector<std::string> row_fields(std::string_view row, char separator) {
  std::vector<std::string> fields;
  for (std::size_t at = 0;;) {
    const std::size_t end = std::min(field_end(row, at, separator), row.size());
    fields.push_back(unquoted(row.substr(at, end - at)));
    if (end == row.size()) return fields;
    at = end + 1;
  }
}

char find_separator(std::string_view first_row) {
  char best = ',';
  std::size_t most = 0;
  for (const char separator : {',', ';', '\t', '|'}) {
    const std::size_t count = row_fields(first_row, separator).size();
    if (count > most) best = separator, most = count;
  }
  return best;
}

bool append_row(
    const std::vector<std::string>& columns,
    const std::vector<std::string>& fields,
    std::string& out
) {
  if (fields.size() != columns.size()) return false;
  out += '{';
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) out += ',';
    append_json_string(out, columns[i]);
    out += ':';
    append_json_string(out, fields[i]);
  }
  out += '}';
  return true;
}

}  // namespace hearth::data
