#include "hearth/data/template/failure.h"

namespace hearth::data {
namespace {

std::string describe(const std::string& message, int line, int column) {
  return "[data.template] line " + std::to_string(line) + ", column " +
         std::to_string(column) + ": " + message;
}

}  // namespace

TemplateError::TemplateError(
    TemplateFault fault,
    std::string message,
    int line,
    int column
)
    : FormatError(describe(message, line, column)),
      fault_(fault),
      message_(std::move(message)),
      line_(line),
      column_(column) {}

}  // namespace hearth::data
