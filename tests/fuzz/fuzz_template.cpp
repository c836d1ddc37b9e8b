// Any bytes as a chat template: rendered within its limits, or refused with a
// TemplateError; never a crash, a hang or a leak.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hearth/base/json.h"
#include "hearth/text/template/template.h"

extern "C" int LLVMFuzzerTestOneInput(
    const std::uint8_t* data,
    std::size_t size
) {
  using hearth::text::jinja::Value;
  static const Value variables = Value::from_json(hearth::Json::parse(R"({
    "messages": [{"role": "user", "content": "hé"},
                 {"role": "assistant", "content": "", "tool_calls":
                  [{"function": {"name": "f", "arguments": {"a": [1, 2.5]}}}]}],
    "tools": [{"type": "function", "function": {"name": "f"}}],
    "x": 3, "y": "text", "bos_token": "<s>", "add_generation_prompt": true})"));
  hearth::text::TemplateLimits limits;
  limits.max_work = 20000;
  limits.max_value_bytes = 4 << 20;
  limits.max_output_bytes = 1 << 20;
  limits.max_depth = 100;
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  try {
    const hearth::text::Template made(source, limits);
    made.render(variables.dict(), std::tm{});
  } catch (const hearth::text::TemplateError&) {
  }
  return 0;
}
