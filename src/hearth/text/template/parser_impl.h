#pragma once
// Recursive descent over the tokens. Expressions are in parser_expr.cpp,
// statements in parser.cpp.
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/text/template/ast_impl.h"
#include "hearth/text/template/lexer_impl.h"

namespace hearth::text::jinja {

class Parser {
 public:
  Parser(std::vector<Token> tokens, Tree& tree)
      : tokens_(std::move(tokens)), tree_(tree) {}
  void run();

 private:
  // Tokens.
  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const;
  Token take();
  bool at_name(std::string_view name) const;
  bool at_operator(std::string_view text) const;
  bool skip_name(std::string_view name);
  bool skip_operator(std::string_view text);
  void expect_operator(std::string_view text);
  void expect_kind(TokenKind kind);
  std::string expect_identifier();
  [[noreturn]] void fail(std::string message) const;
  [[noreturn]] void fail_at(std::string message, std::size_t offset) const;
  int id_of(const std::string& name);
  ExprPtr make(ExprKind kind, std::uint32_t offset) const;

  // Statements.
  using Ends = std::initializer_list<std::string_view>;
  Block block(const std::vector<std::string>& ends);
  // The rest of a tag, the body, and the end tag's name, which is consumed.
  Block body(Ends ends, std::string* found = nullptr);
  StmtPtr statement();
  StmtPtr statement_of(const std::string& tag, std::uint32_t offset);
  void if_statement(Stmt& stmt);
  void for_statement(Stmt& stmt);
  void set_statement(Stmt& stmt);
  void macro_statement(Stmt& stmt);
  void call_statement(Stmt& stmt);
  void with_statement(Stmt& stmt);
  void loop_control(const Stmt& stmt) const;
  void print_statement(Stmt& stmt);
  void signature(Stmt& stmt);
  [[noreturn]] void unknown_tag(const std::string& name) const;
  [[noreturn]] void unexpected_end() const;

  // Expressions.
  void adopt(Expr& parent, ExprPtr child) const;
  void deepen(Expr& parent, const Expr& child) const;
  ExprPtr expression(bool with_condition = true);
  ExprPtr binary(int level);
  ExprPtr unary(bool with_filters = true);
  ExprPtr primary(bool with_namespace = false);
  ExprPtr call(ExprPtr function);
  ExprPtr postfix(ExprPtr expr);
  ExprPtr filters(ExprPtr expr);
  ExprPtr filter(ExprPtr expr, bool inline_start);
  ExprPtr test(ExprPtr expr);
  ExprPtr subscript(ExprPtr expr);
  ExprPtr subscribed(ExprPtr object, std::uint32_t offset);
  void call_arguments(Expr& call);
  ExprPtr tuple(
      bool simple,
      bool with_condition,
      bool parenthesised,
      bool with_namespace
  );
  ExprPtr list();
  ExprPtr dict();
  ExprPtr target(bool with_namespace);
  bool comparison(std::string& op);

  std::vector<Token> tokens_;
  Tree& tree_;
  std::size_t at_ = 0;
  std::map<std::string, int, std::less<>> ids_;
  std::vector<std::vector<std::string>> end_stack_;
  std::vector<std::string> tag_stack_;
  int loops_ = 0;  // loops around the current statement, in this function
};

}  // namespace hearth::text::jinja
