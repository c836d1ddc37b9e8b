#pragma once
// What a user names on the command line, looked at before any work starts;
// "-" stands for standard input and output.
#include <functional>
#include <string>
#include <string_view>

#include "hearth/base/json.h"
#include "hearth/base/yaml.h"

namespace hearth::cli {

// Throws UsageError when there is nothing at the path or it cannot be looked
// at; "-" is always there. `what` is the noun of the message, such as
// "tokenizer".
void require_input(const std::string& path, std::string_view what);
// As require_input(), for a path that must not be a folder.
void require_input_file(const std::string& path, std::string_view what);
// Throws UsageError when what is at the path cannot be looked at: a folder that
// may not be searched, links in a circle. That nothing is there is no error.
void require_in_reach(const std::string& path, std::string_view what);
// Throws UsageError when the folder that would hold the output is missing.
void require_output_folder(const std::string& path);

// All of standard input for "-", else the file, which may be a pipe. Throws
// IoError.
std::string read_text(const std::string& path);
// The same as YAML; throws UsageError when there is no file.
YamlNode read_yaml(const std::string& path, std::string_view what);
// The same as JSON; throws UsageError when there is no file.
Json read_json(const std::string& path, std::string_view what);
// Calls body(line, number) for each line of standard input that is not blank.
void each_stdin_line(
    const std::function<void(std::string_view line, long number)>& body
);

}  // namespace hearth::cli
