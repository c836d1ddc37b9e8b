#pragma once
// JSON, kept in the order it was written in, read with limits: a document from
// outside is bounded in size and depth, and an error says file, line, column.
#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace hearth {

using Json = nlohmann::ordered_json;

struct JsonLimits {
  std::size_t max_bytes = std::size_t{64} << 20;
  int max_depth = 64;
};

// `name` stands for the text in errors, usually its file, and first_line for
// where in it the text begins.
Json parse_json(
    std::string_view text,
    std::string_view name,
    const JsonLimits& limits = {},
    long first_line = 1
);
Json read_json_file(const std::string& path, const JsonLimits& limits = {});

// One line, UTF-8 kept as it is, invalid bytes replaced by U+FFFD.
std::string to_json_line(const Json& value);
// Indented by two, for people and for files that are kept.
std::string to_json_text(const Json& value);

}  // namespace hearth
