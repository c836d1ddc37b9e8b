#pragma once
// A chat template, parsed once and rendered many times: Jinja as transformers
// sets it up for apply_chat_template (trim_blocks, lstrip_blocks, immutable
// sandbox, its own tojson), to the byte. Knows nothing of messages; chat.h
// does. Safe to render from several threads at once.
#include <cstddef>
#include <ctime>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/effort.h"
#include "hearth/text/template/failure.h"
#include "hearth/text/template/limits.h"
#include "hearth/text/template/value.h"

namespace hearth::text {

// Bytes [begin, end) of a rendering.
struct TextSpan {
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct TemplateRendering {
  std::string text;
  // What stood between {% generation %} and {% endgeneration %}, with the
  // item of the innermost loop around it that is also an item of `messages`;
  // -1 when there is none.
  struct Generation {
    TextSpan span;
    int message;
  };
  std::vector<Generation> generations;
};

class Template {
 public:
  // Throws TemplateError.
  explicit Template(std::string_view source, const TemplateLimits& limits = {});
  ~Template();
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;

  // `now` is what strftime_now tells. Throws TemplateError. The work counts to
  // `effort` as well as to the template's own limits.
  TemplateRendering render(
      const jinja::Dict& variables,
      const std::tm& now,
      Effort* effort = nullptr
  ) const;
  bool has_generation() const;
  // Whether its code, not its text, has this name, attribute or string: one
  // that it lacks cannot change what it renders.
  bool mentions(std::string_view word) const;
  // Whether the language itself gives this name a meaning: a function such as
  // raise_exception, or what a loop or a macro brings.
  static bool is_given(std::string_view name);

 private:
  std::unique_ptr<const struct TemplateTree> tree_;
  std::set<std::string, std::less<>> words_;
  TemplateLimits limits_;
};

// The local time, as datetime.now().
std::tm local_now();

}  // namespace hearth::text
