// Statements, and the parser's handling of tokens.
#include <algorithm>

#include "hearth/text/template/failure.h"
#include "hearth/text/template/meter.h"
#include "hearth/text/template/parser_impl.h"
#include "hearth/text/template/python.h"
#include "hearth/text/template/text.h"

namespace hearth::text::jinja {

const Token& Parser::ahead() const {
  return tokens_[std::min(at_ + 1, tokens_.size() - 1)];
}

Token Parser::take() {
  Token token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::at_name(std::string_view name) const {
  return now().kind == TokenKind::kName && now().text == name;
}

bool Parser::at_operator(std::string_view text) const {
  return now().kind == TokenKind::kOperator && now().text == text;
}

bool Parser::skip_name(std::string_view name) {
  const bool found = at_name(name);
  if (found) take();
  return found;
}

bool Parser::skip_operator(std::string_view text) {
  const bool found = at_operator(text);
  if (found) take();
  return found;
}

void Parser::expect_operator(std::string_view text) {
  if (skip_operator(text)) return;
  if (now().kind == TokenKind::kEnd) {
    fail("unexpected end of template, expected " + quote(text) + ".");
  }
  fail("expected token " + quote(text) + ", got " + quote(describe(now())));
}

void Parser::expect_kind(TokenKind kind) {
  if (now().kind == kind) {
    take();
    return;
  }
  const std::string wanted = quote(describe(Token{kind, 0, ""}));
  if (now().kind == TokenKind::kEnd) {
    fail("unexpected end of template, expected " + wanted + ".");
  }
  fail("expected token " + wanted + ", got " + quote(describe(now())));
}

std::string Parser::expect_identifier() {
  if (now().kind == TokenKind::kName) return take().text;
  fail("expected token 'name', got " + quote(describe(now())));
}

void Parser::fail(std::string message) const {
  fail_at(std::move(message), now().offset);
}

void Parser::fail_at(std::string message, std::size_t offset) const {
  throw SyntaxFailure{std::move(message), offset};
}

int Parser::id_of(const std::string& name) {
  const auto [at, fresh] =
      ids_.try_emplace(name, static_cast<int>(tree_.names.size()));
  if (fresh) tree_.names.push_back(name);
  return at->second;
}

ExprPtr Parser::make(ExprKind kind, std::uint32_t offset) const {
  auto made = std::make_unique<Expr>();
  made->kind = kind;
  made->offset = offset;
  return made;
}

void Parser::run() {
  try {
    tree_.body = block({});
  } catch (const Failure& failure) {
    throw SyntaxFailure{failure.message, now().offset, failure.fault};
  }
}

// Text and tags up to one of `ends`, whose name is left as the current token.
Block Parser::block(const std::vector<std::string>& ends) {
  const Meter::Nested nested;
  Block statements;
  const auto output = [&](ExprPtr expr) {
    const bool open = !statements.empty() &&
                      statements.back()->kind == StmtKind::kOutput &&
                      statements.back()->name.empty();
    if (!open) {
      statements.push_back(std::make_unique<Stmt>());
      statements.back()->kind = StmtKind::kOutput;
      statements.back()->offset = expr->offset;
    }
    statements.back()->exprs.push_back(std::move(expr));
  };
  end_stack_.push_back(ends);
  while (now().kind != TokenKind::kEnd) {
    if (now().kind == TokenKind::kData) {
      ExprPtr text = make(ExprKind::kConstant, now().offset);
      text->constant = take().text;
      output(std::move(text));
    } else if (now().kind == TokenKind::kVariableBegin) {
      take();
      output(tuple(false, true, false, false));
      expect_kind(TokenKind::kVariableEnd);
    } else {
      expect_kind(TokenKind::kBlockBegin);
      const bool ended = now().kind == TokenKind::kName &&
                         std::ranges::find(ends, now().text) != ends.end();
      if (ended) break;
      if (StmtPtr made = statement()) statements.push_back(std::move(made));
      expect_kind(TokenKind::kBlockEnd);
    }
  }
  if (now().kind == TokenKind::kEnd && !ends.empty()) unexpected_end();
  end_stack_.pop_back();
  return statements;
}

Block Parser::body(Ends ends, std::string* found) {
  skip_operator(":");
  expect_kind(TokenKind::kBlockEnd);
  Block made = block({ends.begin(), ends.end()});
  const std::string end = take().text;
  if (found != nullptr) *found = end;
  return made;
}

namespace {

std::string wanted_tags(const std::vector<std::string>& ends) {
  std::string text;
  for (const std::string& end : ends) {
    text += (text.empty() ? "" : " or ") + quote(end);
  }
  return text;
}

}  // namespace

void Parser::unknown_tag(const std::string& name) const {
  std::string message = "Encountered unknown tag " + quote(name) + ".";
  const std::string wanted = wanted_tags(end_stack_.back());
  const bool expected = std::ranges::any_of(end_stack_, [&](const auto& ends) {
    return std::ranges::find(ends, name) != ends.end();
  });
  if (!wanted.empty() && expected) {
    message +=
        " You probably made a nesting mistake. Jinja is expecting this tag, "
        "but currently looking for " +
        wanted + ".";
  } else if (!wanted.empty()) {
    message += " Jinja was looking for the following tags: " + wanted + ".";
  }
  if (!tag_stack_.empty()) {
    message += " The innermost block that needs to be closed is " +
               quote(tag_stack_.back()) + ".";
  }
  fail(message);
}

void Parser::unexpected_end() const {
  std::string message =
      "Unexpected end of template. Jinja was looking for the following tags: " +
      wanted_tags(end_stack_.back()) + ".";
  if (!tag_stack_.empty()) {
    message += " The innermost block that needs to be closed is " +
               quote(tag_stack_.back()) + ".";
  }
  fail(message);
}

StmtPtr Parser::statement() {
  if (now().kind != TokenKind::kName) fail("tag name expected");
  const std::uint32_t offset = now().offset;
  const std::string tag = now().text;
  static constexpr std::string_view kKnown[] = {
      "if",   "for",   "set",        "macro",      "call",  "filter",
      "with", "print", "autoescape", "generation", "break", "continue"
  };
  if (std::ranges::find(kKnown, tag) == std::end(kKnown)) {
    static constexpr std::string_view kOther[] = {
        "block", "extends", "include", "import", "from"
    };
    if (std::ranges::find(kOther, tag) != std::end(kOther)) {
      fail("chat templates stand alone: tag " + quote(tag) + " is refused");
    }
    unknown_tag(tag);
  }
  take();
  tag_stack_.push_back(tag);
  StmtPtr made = statement_of(tag, offset);
  tag_stack_.pop_back();
  return made;
}

StmtPtr Parser::statement_of(const std::string& tag, std::uint32_t offset) {
  auto made = std::make_unique<Stmt>();
  made->offset = offset;
  if (tag == "if") {
    if_statement(*made);
  } else if (tag == "for") {
    for_statement(*made);
  } else if (tag == "set") {
    set_statement(*made);
  } else if (tag == "macro") {
    macro_statement(*made);
  } else if (tag == "call") {
    call_statement(*made);
  } else if (tag == "filter") {
    made->kind = StmtKind::kFilterBlock;
    made->exprs.push_back(filter(nullptr, true));
    made->blocks.push_back(body({"endfilter"}));
  } else if (tag == "with") {
    with_statement(*made);
  } else if (tag == "print") {
    print_statement(*made);
  } else if (tag == "autoescape") {
    made->kind = StmtKind::kScope;
    expression();
    made->blocks.push_back(body({"endautoescape"}));
  } else if (tag == "generation") {
    made->kind = StmtKind::kGeneration;
    tree_.has_generation = true;
    const int outer = std::exchange(loops_, 0);
    made->blocks.push_back(body({"endgeneration"}));
    loops_ = outer;
  } else {
    made->kind = tag == "break" ? StmtKind::kBreak : StmtKind::kContinue;
    loop_control(*made);
  }
  return made;
}

void Parser::loop_control(const Stmt& stmt) const {
  if (loops_ > 0) return;
  const char* name = stmt.kind == StmtKind::kBreak ? "break" : "continue";
  fail_at("'" + std::string(name) + "' outside loop", stmt.offset);
}

void Parser::if_statement(Stmt& stmt) {
  stmt.kind = StmtKind::kIf;
  std::string end = "elif";
  while (end == "elif") {
    stmt.exprs.push_back(tuple(false, false, false, false));
    stmt.blocks.push_back(body({"elif", "else", "endif"}, &end));
  }
  if (end == "else") stmt.blocks.push_back(body({"endif"}));
}

void Parser::for_statement(Stmt& stmt) {
  stmt.kind = StmtKind::kFor;
  stmt.target = target(false);
  if (!skip_name("in")) {
    fail("expected token 'in', got " + quote(describe(now())));
  }
  stmt.exprs.push_back(tuple(false, false, false, false));
  stmt.exprs.push_back(skip_name("if") ? expression() : nullptr);
  if (at_name("recursive")) fail("recursive loops are not supported");
  std::string end;
  ++loops_;
  stmt.blocks.push_back(body({"endfor", "else"}, &end));
  --loops_;
  if (end == "else") {
    stmt.blocks.push_back(body({"endfor"}));
  } else {
    stmt.blocks.emplace_back();
  }
}

void Parser::set_statement(Stmt& stmt) {
  stmt.target = target(true);
  if (skip_operator("=")) {
    stmt.kind = StmtKind::kSet;
    stmt.exprs.push_back(tuple(false, true, false, false));
    return;
  }
  stmt.kind = StmtKind::kSetBlock;
  stmt.exprs.push_back(at_operator("|") ? filter(nullptr, false) : nullptr);
  stmt.blocks.push_back(body({"endset"}));
}

void Parser::signature(Stmt& stmt) {
  expect_operator("(");
  bool defaults = false;
  while (!at_operator(")")) {
    if (!stmt.parameters.empty()) expect_operator(",");
    MacroParameter parameter;
    parameter.name = expect_identifier();
    parameter.id = id_of(parameter.name);
    if (skip_operator("=")) {
      parameter.otherwise = expression();
      defaults = true;
    } else if (defaults) {
      fail("non-default argument follows default argument");
    }
    stmt.parameters.push_back(std::move(parameter));
  }
  expect_operator(")");
}

void Parser::macro_statement(Stmt& stmt) {
  stmt.kind = StmtKind::kMacro;
  stmt.name = expect_identifier();
  stmt.id = id_of(stmt.name);
  signature(stmt);
  const std::size_t start = at_;
  const int outer = std::exchange(loops_, 0);
  stmt.blocks.push_back(body({"endmacro"}));
  loops_ = outer;
  for (std::size_t i = start; i < at_; ++i) {
    if (tokens_[i].kind != TokenKind::kName) continue;
    stmt.uses_caller |= tokens_[i].text == "caller";
    stmt.uses_varargs |= tokens_[i].text == "varargs";
    stmt.uses_kwargs |= tokens_[i].text == "kwargs";
  }
}

void Parser::call_statement(Stmt& stmt) {
  stmt.kind = StmtKind::kCallBlock;
  stmt.name = "caller";
  if (at_operator("(")) signature(stmt);
  stmt.exprs.push_back(expression());
  if (stmt.exprs[0]->kind != ExprKind::kCall) {
    fail_at("expected call", stmt.offset);
  }
  const int outer = std::exchange(loops_, 0);
  stmt.blocks.push_back(body({"endcall"}));
  loops_ = outer;
}

void Parser::with_statement(Stmt& stmt) {
  stmt.kind = StmtKind::kWith;
  while (now().kind != TokenKind::kBlockEnd) {
    if (!stmt.targets.empty()) expect_operator(",");
    stmt.targets.push_back(target(false));
    expect_operator("=");
    stmt.exprs.push_back(expression());
  }
  stmt.blocks.push_back(body({"endwith"}));
}

void Parser::print_statement(Stmt& stmt) {
  stmt.kind = StmtKind::kOutput;
  stmt.name = "print";
  while (now().kind != TokenKind::kBlockEnd) {
    if (!stmt.exprs.empty()) expect_operator(",");
    stmt.exprs.push_back(expression());
  }
}

std::pair<int, int> position_of(const Tree& tree, std::uint32_t offset) {
  const std::string_view before =
      std::string_view(tree.source).substr(0, offset);
  const auto lines = std::ranges::count(before, '\n');
  const std::size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
  return {
      static_cast<int>(lines) + 1,
      static_cast<int>(code_point_count(before.substr(start))) + 1
  };
}

Tree parse_template(std::string_view source) {
  Tree tree;
  tree.source = normalize_newlines(source);
  try {
    std::vector<Token> tokens = tokenize(tree.source);
    Parser parser(std::move(tokens), tree);
    parser.run();
  } catch (const SyntaxFailure& failure) {
    const auto [line, column] =
        position_of(tree, static_cast<std::uint32_t>(failure.offset));
    throw TemplateError(failure.fault, failure.message, line, column);
  }
  return tree;
}

}  // namespace hearth::text::jinja
