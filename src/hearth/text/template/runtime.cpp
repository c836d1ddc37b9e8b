// What a template has at hand while it runs: namespaces, calls, filters.
#include <algorithm>

#include "hearth/text/template/failure.h"
#include "hearth/text/template/meter.h"
#include "hearth/text/template/python.h"
#include "hearth/text/template/runtime_impl.h"

namespace hearth::text::jinja {

std::string Namespace::repr() const {
  // Values are left out: a namespace may hold itself.
  std::string out = "<Namespace";
  for (const auto& [name, value] : attributes_) out += " " + name;
  return out + ">";
}

const Value* Namespace::attribute(std::string_view name) {
  for (const auto& [key, value] : attributes_) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Namespace::set(const std::string& name, Value value) {
  if (name.starts_with('_')) {
    throw Failure{
        TemplateFault::kSecurity,
        "Chat templates cannot store underscore-prefixed attributes on a "
        "namespace, but got " +
            quote(name) + ". Please rename the attribute."
    };
  }
  Meter::work(attributes_.size() / 8);
  for (auto& [key, old] : attributes_) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  Meter::allocate(sizeof(Value) + name.size());
  attributes_.emplace_back(name, std::move(value));
}

Runtime::~Runtime() {
  for (const auto& space : namespaces_) space->clear();
}

std::shared_ptr<Namespace> Runtime::make_namespace() {
  Meter::allocate(sizeof(Namespace));
  namespaces_.push_back(std::make_shared<Namespace>());
  return namespaces_.back();
}

Value call_value(
    Runtime& runtime,
    const Value& function,
    Arguments& arguments
) {
  require_defined(function);
  if (!function.is_object() || !function.object().callable()) {
    fail_type(quote(type_name(function)) + " object is not callable");
  }
  return function.object().call(runtime, arguments);
}

Value apply_filter(
    Runtime& runtime,
    std::string_view name,
    const Value& value,
    Arguments& arguments
) {
  FilterFunction filter = find_text_filter(name);
  if (filter == nullptr) filter = find_sequence_filter(name);
  if (filter == nullptr) {
    throw Failure{
        TemplateFault::kSyntax, "No filter named " + quote(name) + "."
    };
  }
  return filter(runtime, value, arguments);
}

}  // namespace hearth::text::jinja
