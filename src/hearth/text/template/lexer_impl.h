#pragma once
// Splits a template into tokens, with the white space control that
// transformers turns on: trim_blocks and lstrip_blocks.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/text/template/failure.h"

namespace hearth::text::jinja {

enum class TokenKind : std::uint8_t {
  kData,
  kBlockBegin,
  kBlockEnd,
  kVariableBegin,
  kVariableEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind;
  std::uint32_t offset;
  std::string text;
  std::int64_t integer = 0;
  double number = 0;
};

// A syntax error with its place, before line and column are known.
struct SyntaxFailure {
  std::string message;
  std::size_t offset;
  TemplateFault fault = TemplateFault::kSyntax;
};

// "\r\n" and "\r" become "\n"; one newline at the very end is dropped.
std::string normalize_newlines(std::string_view source);
std::vector<Token> tokenize(std::string_view source);
// How an error names a token.
std::string describe(const Token& token);

}  // namespace hearth::text::jinja
