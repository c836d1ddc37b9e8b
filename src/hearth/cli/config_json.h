#pragma once
// A config as JSON, for programs that read what would run.
#include "hearth/base/config.h"
#include "hearth/base/json.h"

namespace hearth::cli {

// {key, value, origin} of each value of the sections that are there.
Json config_values(const ConfigReader& reader);
// {key, type, default, must_be, help} of every key.
Json config_keys(const ConfigReader& reader);

}  // namespace hearth::cli
