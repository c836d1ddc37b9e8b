#pragma once
// A method of a built-in type and the object that binds it to a value.
#include <memory>
#include <string_view>

#include "hearth/text/template/attributes.h"
#include "hearth/text/template/value.h"

namespace hearth::text::jinja {

using MethodFunction = Value (*)(const Value& self, Arguments& arguments);

struct Method {
  std::string_view name;
  MethodFunction call;
};

class BoundMethod : public Object {
 public:
  BoundMethod(Value self, const Method* method)
      : self_(std::move(self)), method_(method) {}
  std::string_view type_name() const override {
    return "builtin_function_or_method";
  }
  std::string repr() const override {
    return "<built-in method " + std::string(method_->name) + ">";
  }
  bool callable() const override { return true; }
  int depth() const override { return self_.depth() + 1; }
  Value call(Runtime&, Arguments& arguments) override {
    return method_->call(self_, arguments);
  }

 private:
  Value self_;
  const Method* method_;
};

const Method* find_string_method(std::string_view name);

}  // namespace hearth::text::jinja
