#pragma once
// Walks the tree. Scopes are pooled: a macro keeps a pointer to the scope it
// was defined in, so a scope that a macro saw lives until the rendering ends.
#include <deque>
#include <vector>

#include "hearth/text/template/ast_impl.h"
#include "hearth/text/template/runtime_impl.h"
#include "hearth/text/template/template.h"

namespace hearth::text::jinja {

struct Scope {
  Scope* parent = nullptr;
  bool captured = false;
  std::vector<std::pair<int, Value>> variables;
  Value* find(int id);
  void set(int id, Value value);
};

class Interpreter : public Runtime {
 public:
  Interpreter(
      const Tree& tree,
      const Dict& variables,
      const std::tm& now,
      const TemplateLimits& limits
  );
  TemplateRendering run();
  // Where the last evaluated node stands.
  std::uint32_t offset() const { return offset_; }

  // The text of a macro or call block.
  std::string call_macro(const Stmt& macro, Scope* scope, Arguments& arguments);

 private:
  enum class Flow { kNext, kBreak, kContinue };

  Flow execute(const Block& block);
  Flow execute(const Stmt& stmt);
  void output(const Stmt& stmt);
  void write(const Value& value);
  Flow run_if(const Stmt& stmt);
  Flow run_for(const Stmt& stmt);
  std::vector<Value> loop_items(const Stmt& stmt);
  void run_set(const Stmt& stmt);
  void run_set_block(const Stmt& stmt);
  void define_macro(const Stmt& stmt);
  void run_call_block(const Stmt& stmt);
  void run_filter_block(const Stmt& stmt);
  Flow run_with(const Stmt& stmt);
  void run_generation(const Stmt& stmt);
  // Runs a block in a scope of its own and returns what it printed.
  std::string capture(const Block& block);
  void assign(const Expr& target, const Value& value);

  Value evaluate(const Expr& expr);
  Value evaluate_name(const Expr& expr);
  Value evaluate_sequence(const Expr& expr);
  Value evaluate_dict(const Expr& expr);
  Value evaluate_slice(const Expr& expr);
  Value evaluate_call(const Expr& expr);
  Value evaluate_filter(const Expr& expr, const Value& value);
  Value filter_text(const Expr& expr, const Value& text);
  Value evaluate_concat(const Expr& expr);
  bool evaluate_compare(const Expr& expr);
  Value evaluate_condition(const Expr& expr);
  Arguments evaluate_arguments(const Expr& expr, std::size_t from);
  void at(const Expr& expr) { offset_ = expr.offset; }

  Scope* enter(Scope* parent);
  void leave(Scope* scope);
  class ScopeGuard;
  int message_of_loop() const;

  const Tree& tree_;
  const TemplateLimits& limits_;
  std::vector<Value> context_;  // by name id
  std::vector<bool> in_context_;
  const Value* messages_ = nullptr;
  std::deque<Scope> scopes_;
  std::vector<Scope*> free_;
  Scope* scope_ = nullptr;
  std::string root_;
  std::string* out_ = &root_;
  std::vector<TemplateRendering::Generation> generations_;
  std::vector<const Value*> loop_items_;  // current item of each open loop
  std::uint32_t offset_ = 0;
  int loop_id_ = -1;
  int caller_id_ = -1, varargs_id_ = -1, kwargs_id_ = -1;
};

}  // namespace hearth::text::jinja
