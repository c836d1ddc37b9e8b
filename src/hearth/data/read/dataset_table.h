#pragma once
// Tables as text, CSV and TSV: rows of fields, of which any may stand in quotes
// and then holds separators, line ends, and quotes written twice. The first row
// names the columns; each other row is a record with these fields.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::data {

// Where the row that begins at `from` ends: at its line end, or npos when that
// is not in the text.
std::size_t row_end(std::string_view text, std::size_t from, char separator);

// The fields of one row, given without its line end.
std::vector<std::string> row_fields(std::string_view row, char separator);

// What stands most often between the names of a first row, outside of quotes:
// a comma, a semicolon, a tab or a bar.
char find_separator(std::string_view first_row);

// A row as one line of JSON. Returns false when it has not a field for each
// column.
bool append_row(
    const std::vector<std::string>& columns,
    const std::vector<std::string>& fields,
    std::string& out
);

}  // namespace hearth::data
