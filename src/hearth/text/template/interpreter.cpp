// Statements.
#include <algorithm>

#include "hearth/text/template/attributes.h"
#include "hearth/text/template/interpreter_impl.h"
#include "hearth/text/template/loop_impl.h"
#include "hearth/text/template/meter.h"
#include "hearth/text/template/python.h"

namespace hearth::text::jinja {

Value* Scope::find(int id) {
  for (auto& [key, value] : variables) {
    if (key == id) return &value;
  }
  return nullptr;
}

void Scope::set(int id, Value value) {
  if (Value* old = find(id)) {
    *old = std::move(value);
  } else {
    variables.emplace_back(id, std::move(value));
  }
}

// Leaves the scope it entered, whatever happens in between.
class Interpreter::ScopeGuard {
 public:
  ScopeGuard(Interpreter& in, Scope* parent)
      : in_(in), outer_(in.scope_), scope_(in.enter(parent)) {
    in_.scope_ = scope_;
  }
  ~ScopeGuard() {
    in_.scope_ = outer_;
    in_.leave(scope_);
  }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;
  Scope& scope() { return *scope_; }
  // A clean scope for the next turn of a loop.
  void renew() {
    if (scope_->captured) {
      Scope* parent = scope_->parent;
      in_.leave(scope_);
      scope_ = in_.enter(parent);
      in_.scope_ = scope_;
    } else {
      scope_->variables.clear();
    }
  }

 private:
  Interpreter& in_;
  Scope* outer_;
  Scope* scope_;
};

Scope* Interpreter::enter(Scope* parent) {
  if (free_.empty()) {
    Meter::allocate(sizeof(Scope));
    free_.push_back(&scopes_.emplace_back());
  }
  Scope* scope = free_.back();
  free_.pop_back();
  scope->parent = parent;
  return scope;
}

void Interpreter::leave(Scope* scope) {
  if (scope->captured) return;
  scope->variables.clear();
  free_.push_back(scope);
}

Interpreter::Interpreter(
    const Tree& tree,
    const Dict& variables,
    const std::tm& now,
    const TemplateLimits& limits
)
    : Runtime(now), tree_(tree), limits_(limits) {
  context_.resize(tree.names.size());
  in_context_.resize(tree.names.size());
  for (std::size_t i = 0; i < tree.names.size(); ++i) {
    const std::string& name = tree.names[i];
    const Value* found = variables.find(std::string_view(name));
    if (found == nullptr) found = find_global(name);
    in_context_[i] = found != nullptr;
    if (found != nullptr) context_[i] = *found;
    const int id = static_cast<int>(i);
    if (name == "loop") loop_id_ = id;
    if (name == "caller") caller_id_ = id;
    if (name == "varargs") varargs_id_ = id;
    if (name == "kwargs") kwargs_id_ = id;
  }
  messages_ = variables.find(std::string_view("messages"));
}

TemplateRendering Interpreter::run() {
  const ScopeGuard guard(*this, nullptr);
  execute(tree_.body);
  return {std::move(root_), std::move(generations_)};
}

Interpreter::Flow Interpreter::execute(const Block& block) {
  for (const StmtPtr& stmt : block) {
    const Flow flow = execute(*stmt);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute(const Stmt& stmt) {
  const Meter::Nested nested;
  Meter::work();
  offset_ = stmt.offset;
  switch (stmt.kind) {
    case StmtKind::kOutput:
      output(stmt);
      break;
    case StmtKind::kIf:
      return run_if(stmt);
    case StmtKind::kFor:
      return run_for(stmt);
    case StmtKind::kSet:
      run_set(stmt);
      break;
    case StmtKind::kSetBlock:
      run_set_block(stmt);
      break;
    case StmtKind::kMacro:
      define_macro(stmt);
      break;
    case StmtKind::kCallBlock:
      run_call_block(stmt);
      break;
    case StmtKind::kFilterBlock:
      run_filter_block(stmt);
      break;
    case StmtKind::kWith:
      return run_with(stmt);
    case StmtKind::kGeneration:
      run_generation(stmt);
      break;
    case StmtKind::kScope: {
      const ScopeGuard guard(*this, scope_);
      return execute(stmt.blocks[0]);
    }
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

void Interpreter::output(const Stmt& stmt) {
  for (const ExprPtr& expr : stmt.exprs) {
    if (expr->kind == ExprKind::kConstant) {
      write(expr->constant);
    } else {
      write(evaluate(*expr));
    }
  }
}

void Interpreter::write(const Value& value) {
  const std::size_t before = out_->size();
  if (value.is_string()) {
    // Checked first, so that nothing over the limit is ever copied.
    const bool over = out_ == &root_ &&
                      value.text().size() > limits_.max_output_bytes - before;
    if (!over) *out_ += value.text();
    if (!over && out_ == &root_) return;
  } else {
    *out_ += str(value);
  }
  if (out_ != &root_) {
    Meter::allocate(out_->size() - before);
    return;
  }
  if (value.is_string() || root_.size() > limits_.max_output_bytes) {
    throw Failure{
        TemplateFault::kLimit, "output must stay within " +
                                   std::to_string(limits_.max_output_bytes) +
                                   " bytes"
    };
  }
}

Interpreter::Flow Interpreter::run_if(const Stmt& stmt) {
  for (std::size_t i = 0; i < stmt.exprs.size(); ++i) {
    if (truthy(evaluate(*stmt.exprs[i]))) return execute(stmt.blocks[i]);
  }
  if (stmt.blocks.size() > stmt.exprs.size()) {
    return execute(stmt.blocks.back());
  }
  return Flow::kNext;
}

std::vector<Value> Interpreter::loop_items(const Stmt& stmt) {
  const Value iterable = evaluate(*stmt.exprs[0]);
  offset_ = stmt.exprs[0]->offset;
  std::vector<Value> items = items_of(iterable);
  if (stmt.exprs[1] == nullptr) return items;
  std::vector<Value> kept;
  ScopeGuard guard(*this, scope_);
  for (Value& item : items) {
    guard.renew();
    assign(*stmt.target, item);
    if (truthy(evaluate(*stmt.exprs[1]))) kept.push_back(std::move(item));
  }
  return kept;
}

Interpreter::Flow Interpreter::run_for(const Stmt& stmt) {
  const auto loop = std::make_shared<Loop>(loop_items(stmt));
  const std::vector<Value>& items = loop->items();
  ScopeGuard guard(*this, scope_);
  if (items.empty()) return execute(stmt.blocks[1]);
  loop->set_nesting(static_cast<int>(loop_items_.size()));
  loop_items_.push_back(nullptr);
  struct Pop {
    std::vector<const Value*>& stack;
    ~Pop() { stack.pop_back(); }
  } const pop{loop_items_};
  for (std::size_t i = 0; i < items.size(); ++i) {
    Meter::work();
    guard.renew();
    loop->set_index(i);
    loop_items_.back() = &items[i];
    if (loop_id_ >= 0) {
      guard.scope().set(loop_id_, Value(std::shared_ptr<Object>(loop)));
    }
    assign(*stmt.target, items[i]);
    if (execute(stmt.blocks[0]) == Flow::kBreak) break;
  }
  return Flow::kNext;
}

void Interpreter::assign(const Expr& target, const Value& value) {
  at(target);
  if (target.kind == ExprKind::kName) {
    Meter::work(scope_->variables.size() / 16);
    if (scope_->find(target.id) == nullptr) Meter::allocate(sizeof(Value));
    return scope_->set(target.id, value);
  }
  if (target.kind == ExprKind::kNamespace) {
    const Value space = evaluate_name(target);
    auto* made =
        space.is_object() ? dynamic_cast<Namespace*>(&space.object()) : nullptr;
    if (made == nullptr) {
      fail_type("cannot assign attribute on non-namespace object");
    }
    return made->set(target.extra, value);
  }
  if (!is_iterable(value)) {
    fail_type(
        "cannot unpack non-iterable " + std::string(type_name(value)) +
        " object"
    );
  }
  const std::vector<Value> parts = items_of(value);
  const std::size_t wanted = target.items.size();
  if (parts.size() < wanted) {
    fail_value(
        "not enough values to unpack (expected " + std::to_string(wanted) +
        ", got " + std::to_string(parts.size()) + ")"
    );
  }
  if (parts.size() > wanted) {
    fail_value(
        "too many values to unpack (expected " + std::to_string(wanted) + ")"
    );
  }
  for (std::size_t i = 0; i < wanted; ++i) assign(*target.items[i], parts[i]);
}

void Interpreter::run_set(const Stmt& stmt) {
  assign(*stmt.target, evaluate(*stmt.exprs[0]));
}

std::string Interpreter::capture(const Block& block) {
  std::string text;
  std::string* outer = std::exchange(out_, &text);
  struct Restore {
    std::string*& slot;
    std::string* value;
    ~Restore() { slot = value; }
  } const restore{out_, outer};
  const ScopeGuard guard(*this, scope_);
  execute(block);
  return text;
}

void Interpreter::run_set_block(const Stmt& stmt) {
  Value value = capture(stmt.blocks[0]);
  if (stmt.exprs[0] != nullptr) value = filter_text(*stmt.exprs[0], value);
  assign(*stmt.target, value);
}

void Interpreter::run_filter_block(const Stmt& stmt) {
  const Value text = capture(stmt.blocks[0]);
  write(filter_text(*stmt.exprs[0], text));
}

Interpreter::Flow Interpreter::run_with(const Stmt& stmt) {
  std::vector<Value> values;
  for (const ExprPtr& expr : stmt.exprs) values.push_back(evaluate(*expr));
  const ScopeGuard guard(*this, scope_);
  for (std::size_t i = 0; i < values.size(); ++i) {
    assign(*stmt.targets[i], values[i]);
  }
  return execute(stmt.blocks[0]);
}

int Interpreter::message_of_loop() const {
  if (messages_ == nullptr || !messages_->is_sequence()) return -1;
  const std::vector<Value>& messages = messages_->sequence().items;
  for (auto item = loop_items_.rbegin(); item != loop_items_.rend(); ++item) {
    if (*item == nullptr || !(*item)->is_dict()) continue;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (messages[i].same(**item)) return static_cast<int>(i);
    }
  }
  return -1;
}

void Interpreter::run_generation(const Stmt& stmt) {
  if (out_ != &root_) return write(capture(stmt.blocks[0]));
  const std::size_t begin = root_.size();
  {
    const ScopeGuard guard(*this, scope_);
    execute(stmt.blocks[0]);
  }
  generations_.push_back({{begin, root_.size()}, message_of_loop()});
}

}  // namespace hearth::text::jinja
