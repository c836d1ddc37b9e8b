#pragma once
// What filters, tests and functions may ask of the rendering they run in.
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/text/template/value.h"

namespace hearth::text::jinja {

// A template's only mutable value. The runtime owns every one until the
// rendering ends, so that a ring of them is freed and a chain of them is not
// freed recursively.
class Namespace : public Object {
 public:
  std::string_view type_name() const override { return "TemplateNamespace"; }
  std::string holder_name() const override {
    return "transformers.utils.chat_template_utils.TemplateNamespace object";
  }
  std::string repr() const override;
  const Value* attribute(std::string_view name) override;
  void set(const std::string& name, Value value);
  void clear() { attributes_.clear(); }

 private:
  std::vector<std::pair<std::string, Value>> attributes_;
};

class Runtime {
 public:
  explicit Runtime(const std::tm& now) : now_(now) {}
  virtual ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const std::tm& now() const { return now_; }
  std::shared_ptr<Namespace> make_namespace();

 private:
  std::tm now_;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
};

Value call_value(Runtime& runtime, const Value& function, Arguments& arguments);
Value apply_filter(
    Runtime& runtime,
    std::string_view name,
    const Value& value,
    Arguments& arguments
);
bool apply_test(
    Runtime& runtime,
    std::string_view name,
    const Value& value,
    Arguments& arguments
);
// A global function of that name, or null.
const Value* find_global(std::string_view name);

// Filters live in two files; this joins them.
using FilterFunction = Value (*)(Runtime&, const Value&, Arguments&);
FilterFunction find_text_filter(std::string_view name);
FilterFunction find_sequence_filter(std::string_view name);

// strftime in the C locale, whatever the process has set.
std::string format_time(const std::tm& time, std::string_view format);

}  // namespace hearth::text::jinja
