#include "hearth/text/chat/builtin_template.h"

#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/env.h"
#include "hearth/base/error.h"
#include "hearth/base/hash.h"

namespace hearth::text {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kChatMl =
    R"~~({%- set first = messages[0] if messages else none %}
{%- set head = first.content if first and first.role == 'system' else '' %}
{%- if head or tools %}
    {{- '<|im_start|>system\n' + head }}
    {%- if tools %}
        {{- ('\n\n' if head else '') + 'Tools:' }}
        {%- for tool in tools %}
            {{- '\n' + tool | tojson }}
        {%- endfor %}
        {{- '\nA call is <tool_call>{"name": ..., "arguments": {...}}</tool_call>.' }}
    {%- endif %}
    {{- '<|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if not (loop.first and message.role == 'system') %}
        {{- '<|im_start|>' + message.role + '\n' + (message.content or '') }}
        {%- for call in message.tool_calls or [] %}
            {%- set function = call.function or call %}
            {%- set arguments = function.arguments if function.arguments is string else function.arguments | tojson %}
            {{- '<tool_call>{"name": ' + function.name | tojson + ', "arguments": ' + arguments + '}</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
)~~";

}  // namespace

std::optional<std::string_view> builtin_template(std::string_view name) {
  if (name == "chatml") return kChatMl;
  return std::nullopt;
}

std::string builtin_template_file(std::string_view name) {
  const auto text = builtin_template(name);
  if (!text) {
    throw UsageError(
        fmt::format(
            "[data.builtin_template_file] there is no built-in template '{}'",
            name
        )
    );
  }
  const fs::path folder = fs::path(env::cache_folder()) / "templates";
  const fs::path file =
      folder / fmt::format("{}-{:016x}.jinja", name, hash64(*text));
  if (!fs::exists(file)) {
    fs::create_directories(folder);
    write_file_atomically(file.string(), *text);
  }
  return file.string();
}

}  // namespace hearth::text
