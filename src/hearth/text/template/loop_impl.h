#pragma once
// The `loop` of a for loop, and macros: the objects the interpreter makes.
#include <string_view>
#include <vector>

#include "hearth/text/template/interpreter_impl.h"

namespace hearth::text::jinja {

class Loop : public Object {
 public:
  explicit Loop(std::vector<Value> items);
  std::string_view type_name() const override { return "LoopContext"; }
  std::string holder_name() const override {
    return "jinja2.runtime.LoopContext object";
  }
  const Value* attribute(std::string_view name) override;
  int depth() const override { return depth_; }
  const std::vector<Value>& items() const { return items_; }
  void set_index(std::size_t index) { index_ = index; }
  void set_nesting(int nesting) { nesting_ = nesting; }

 private:
  std::vector<Value> items_;
  std::size_t index_ = 0;
  int nesting_ = 0;
  int depth_ = 1;
  Value answer_;  // what attribute() points at
};

class Macro : public Object {
 public:
  Macro(const Stmt& stmt, Scope* scope) : stmt_(stmt), scope_(scope) {}
  std::string_view type_name() const override { return "Macro"; }
  std::string holder_name() const override {
    return "jinja2.runtime.Macro object";
  }
  std::string repr() const override;
  bool callable() const override { return true; }
  const Value* attribute(std::string_view name) override;
  Value call(Runtime& runtime, Arguments& arguments) override;

 private:
  const Stmt& stmt_;
  Scope* scope_;
  Value answer_;
};

}  // namespace hearth::text::jinja
