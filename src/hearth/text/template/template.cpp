#include "hearth/text/template/template.h"

#include <algorithm>
#include <iterator>

#include "hearth/text/template/ast_impl.h"
#include "hearth/text/template/interpreter_impl.h"
#include "hearth/text/template/lexer_impl.h"
#include "hearth/text/template/meter.h"
#include "hearth/text/template/text.h"

namespace hearth::text {

struct TemplateTree : jinja::Tree {};

Template::Template(std::string_view source, const TemplateLimits& limits)
    : limits_(limits) {
  if (source.size() > limits.max_source_bytes) {
    throw TemplateError(
        TemplateFault::kLimit,
        "templates must stay within " +
            std::to_string(limits.max_source_bytes) + " bytes, got " +
            std::to_string(source.size()),
        1, 1
    );
  }
  if (!jinja::valid_utf8(source)) {
    throw TemplateError(
        TemplateFault::kSyntax, "templates must be valid UTF-8", 1, 1
    );
  }
  const jinja::Meter meter(limits);
  tree_ = std::make_unique<const TemplateTree>(
      TemplateTree{jinja::parse_template(source)}
  );
  for (jinja::Token& token : jinja::tokenize(tree_->source)) {
    if (token.kind == jinja::TokenKind::kName ||
        token.kind == jinja::TokenKind::kString) {
      words_.insert(std::move(token.text));
    }
  }
}

Template::~Template() = default;
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;

bool Template::has_generation() const {
  return tree_->has_generation;
}

bool Template::mentions(std::string_view word) const {
  return words_.contains(word);
}

bool Template::is_given(std::string_view name) {
  constexpr std::string_view kOfStatements[] = {
      "loop", "self", "caller", "varargs", "kwargs",
  };
  return jinja::find_global(name) != nullptr ||
         std::ranges::find(kOfStatements, name) != std::end(kOfStatements);
}

TemplateRendering Template::render(
    const jinja::Dict& variables,
    const std::tm& now,
    Effort* effort
) const {
  const jinja::Meter meter(limits_, effort);
  jinja::Interpreter interpreter(*tree_, variables, now, limits_);
  try {
    return interpreter.run();
  } catch (const jinja::Failure& failure) {
    const auto [line, column] =
        jinja::position_of(*tree_, interpreter.offset());
    throw TemplateError(failure.fault, failure.message, line, column);
  }
}

std::tm local_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return local;
}

}  // namespace hearth::text
