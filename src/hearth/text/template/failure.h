#pragma once
// What goes wrong inside a template. Deep code throws Failure, which does not
// know where it is; the interpreter turns it into a TemplateError that does.
#include <string>
#include <utility>

#include "hearth/base/error.h"

namespace hearth::text {

enum class TemplateFault {
  kSyntax,     // the template does not parse
  kUndefined,  // an operation on something that is not there
  kType,       // an operation its operands do not have
  kValue,      // a value the operation does not take
  kRaised,     // the template called raise_exception
  kSecurity,   // an attribute templates may not touch
  kLimit,      // work, output, memory or depth limit
};

// `message` is what Python's jinja2 says, where it would fail too; what() adds
// the position in the template, both counted from 1, and the template's file
// where it is known.
class TemplateError : public FormatError {
 public:
  TemplateError(
      TemplateFault fault,
      std::string message,
      int line,
      int column,
      const std::string& file = {}
  );
  TemplateFault fault() const noexcept { return fault_; }
  const std::string& message() const noexcept { return message_; }
  int line() const noexcept { return line_; }
  int column() const noexcept { return column_; }

 private:
  TemplateFault fault_;
  std::string message_;
  int line_;
  int column_;
};

namespace jinja {

struct Failure {
  TemplateFault fault;
  std::string message;
};

[[noreturn]] inline void fail_type(std::string message) {
  throw Failure{TemplateFault::kType, std::move(message)};
}
[[noreturn]] inline void fail_value(std::string message) {
  throw Failure{TemplateFault::kValue, std::move(message)};
}

}  // namespace jinja
}  // namespace hearth::text
