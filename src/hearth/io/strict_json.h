#pragma once
// Reads JSON that others wrote, more strictly than base's reader: a key may
// stand only once in its object, and a hostile object of a million keys costs
// no more than its size (base keeps the order of keys and pays for that).
#include <cstddef>
#include <string_view>

#include <nlohmann/json.hpp>

#include "hearth/base/json.h"

namespace hearth::io {

using SortedJson = nlohmann::json;

// `offset` is where the text begins in the file `name`, for messages.
SortedJson parse_strict_json(
    std::string_view text,
    std::string_view name,
    std::size_t offset = 0,
    const JsonLimits& limits = {}
);

// A config file: an object of at most a few thousand keys, order kept. Throws
// IoError or FormatError, one line that names the file.
Json parse_config(std::string_view text, const std::string& name);
Json read_config_file(const std::string& path);

}  // namespace hearth::io
