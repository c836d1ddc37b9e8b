// Loops' and macros' objects, and the calling of macros.
#include <algorithm>

#include "hearth/text/template/attributes.h"
#include "hearth/text/template/failure.h"
#include "hearth/text/template/loop_impl.h"
#include "hearth/text/template/meter.h"
#include "hearth/text/template/python.h"

namespace hearth::text::jinja {
namespace {

// loop.cycle: its argument for this turn, fixed when it was looked up.
class Cycle : public Object {
 public:
  explicit Cycle(std::size_t index) : index_(index) {}
  std::string_view type_name() const override { return "method"; }
  bool callable() const override { return true; }
  Value call(Runtime&, Arguments& arguments) override {
    const auto& choices = arguments.positional;
    if (choices.empty()) fail_type("no items for cycling given");
    return choices[index_ % choices.size()];
  }

 private:
  std::size_t index_;
};

}  // namespace

Loop::Loop(std::vector<Value> items) : items_(std::move(items)) {
  for (const Value& item : items_) {
    depth_ = std::max(depth_, item.depth() + 1);
  }
}

const Value* Loop::attribute(std::string_view name) {
  const auto index = static_cast<std::int64_t>(index_);
  const auto count = static_cast<std::int64_t>(items_.size());
  if (name == "index") {
    answer_ = index + 1;
  } else if (name == "index0") {
    answer_ = index;
  } else if (name == "revindex") {
    answer_ = count - index;
  } else if (name == "revindex0") {
    answer_ = count - index - 1;
  } else if (name == "first") {
    answer_ = index == 0;
  } else if (name == "last") {
    answer_ = index + 1 == count;
  } else if (name == "length") {
    answer_ = count;
  } else if (name == "depth") {
    answer_ = 1;  // above 1 only in recursive loops
  } else if (name == "depth0") {
    answer_ = 0;
  } else if (name == "previtem") {
    answer_ = index > 0 ? items_[index_ - 1]
                        : Value::undefined_hint("there is no previous item");
  } else if (name == "nextitem") {
    answer_ = index + 1 < count
                  ? items_[index_ + 1]
                  : Value::undefined_hint("there is no next item");
  } else if (name == "cycle") {
    answer_ = Value(std::shared_ptr<Object>(std::make_shared<Cycle>(index_)));
  } else {
    return nullptr;
  }
  return &answer_;
}

std::string Macro::repr() const {
  return "<Macro " + quote(stmt_.name) + ">";
}

const Value* Macro::attribute(std::string_view name) {
  if (name != "name") return nullptr;
  answer_ = stmt_.name;
  return &answer_;
}

Value Macro::call(Runtime& runtime, Arguments& arguments) {
  return static_cast<Interpreter&>(runtime).call_macro(
      stmt_, scope_, arguments
  );
}

void Interpreter::define_macro(const Stmt& stmt) {
  for (Scope* s = scope_; s != nullptr && !s->captured; s = s->parent) {
    s->captured = true;
  }
  Meter::allocate(sizeof(Macro));
  scope_->set(
      stmt.id,
      Value(std::shared_ptr<Object>(std::make_shared<Macro>(stmt, scope_)))
  );
}

void Interpreter::run_call_block(const Stmt& stmt) {
  const Expr& call = *stmt.exprs[0];
  for (Scope* s = scope_; s != nullptr && !s->captured; s = s->parent) {
    s->captured = true;
  }
  const Value function = evaluate(*call.items[0]);
  Arguments arguments = evaluate_arguments(call, 1);
  arguments.named.emplace_back(
      "caller",
      Value(std::shared_ptr<Object>(std::make_shared<Macro>(stmt, scope_)))
  );
  at(call);
  write(call_value(*this, function, arguments));
}

namespace {

// Takes an argument given by name out of the call.
std::optional<Value> take_named(Arguments& arguments, std::string_view name) {
  auto& named = arguments.named;
  Meter::work(named.size() / 8);
  const auto at = std::ranges::find_if(named, [&](const auto& entry) {
    return entry.first == name;
  });
  if (at == named.end()) return std::nullopt;
  Value value = std::move(at->second);
  named.erase(at);
  return value;
}

// What a macro did not ask for by name or number.
void check_rest(const Stmt& macro, const Arguments& arguments) {
  const std::string name = quote(macro.name);
  const std::size_t known = macro.parameters.size();
  if (!macro.uses_kwargs && !arguments.named.empty()) {
    for (const auto& entry : arguments.named) {
      if (entry.first != "caller") continue;
      fail_type(
          "macro " + name +
          " was invoked with two values for the special caller argument. This "
          "is most likely a bug."
      );
    }
    fail_type(
        "macro " + name + " takes no keyword argument " +
        quote(arguments.named.front().first)
    );
  }
  if (!macro.uses_varargs && arguments.positional.size() > known) {
    fail_type(
        "macro " + name + " takes not more than " + std::to_string(known) +
        " argument(s)"
    );
  }
}

}  // namespace

std::string Interpreter::call_macro(
    const Stmt& macro,
    Scope* scope,
    Arguments& arguments
) {
  const Meter::Nested nested;
  Scope* outer = std::exchange(scope_, enter(scope));
  Scope* inner = scope_;
  std::string text;
  std::string* outer_out = std::exchange(out_, &text);
  struct Restore {
    Interpreter& in;
    Scope *outer, *inner;
    std::string* out;
    ~Restore() {
      in.scope_ = outer;
      in.leave(inner);
      in.out_ = out;
    }
  } const restore{*this, outer, inner, outer_out};

  const auto& given = arguments.positional;
  const std::size_t known = macro.parameters.size();
  std::vector<std::optional<Value>> values(known);
  for (std::size_t i = 0; i < known; ++i) {
    if (i < given.size()) {
      values[i] = given[i];
    } else {
      values[i] = take_named(arguments, macro.parameters[i].name);
    }
  }
  if (macro.uses_caller && scope_->find(caller_id_) == nullptr) {
    auto caller = take_named(arguments, "caller");
    scope_->set(
        caller_id_,
        caller ? *caller : Value::undefined_hint("No caller defined")
    );
  }
  check_rest(macro, arguments);
  if (macro.uses_kwargs) {
    Dict rest;
    for (auto& [name, value] : arguments.named) rest.set(name, value);
    scope_->set(kwargs_id_, Value::dict(std::move(rest)));
  }
  if (macro.uses_varargs) {
    const auto from =
        given.begin() +
        static_cast<std::ptrdiff_t>(std::min(known, given.size()));
    scope_->set(varargs_id_, Value::tuple({from, given.end()}));
  }
  for (std::size_t i = 0; i < known; ++i) {
    const MacroParameter& parameter = macro.parameters[i];
    if (!values[i]) {
      values[i] =
          parameter.otherwise != nullptr
              ? evaluate(*parameter.otherwise)
              : Value::undefined_hint(
                    "parameter " + quote(parameter.name) + " was not provided"
                );
    }
    scope_->set(parameter.id, std::move(*values[i]));
  }
  execute(macro.blocks[0]);
  return text;
}

}  // namespace hearth::text::jinja
