#include "hearth/text/template/failure.h"

namespace hearth::text {
namespace {

std::string describe(
    const std::string& message,
    int line,
    int column,
    const std::string& file
) {
  return (file.empty() ? "[data.template]" : file + ": template") + " line " +
         std::to_string(line) + ", column " + std::to_string(column) + ": " +
         message;
}

}  // namespace

TemplateError::TemplateError(
    TemplateFault fault,
    std::string message,
    int line,
    int column,
    const std::string& file
)
    : FormatError(describe(message, line, column, file)),
      fault_(fault),
      message_(std::move(message)),
      line_(line),
      column_(column) {}

}  // namespace hearth::text
