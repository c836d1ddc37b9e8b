#include "hearth/serve/api/message_turns.h"

#include <gtest/gtest.h>

#include "hearth/serve/api/api_error.h"
#include "hearth/serve/service_bench_test.h"

namespace hearth::serve {
namespace {

// "s:a u:b" as messages, and back.
Json messages_of(const std::string& text) {
  Json out = Json::array();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const char role = text[at];
    out.push_back(
        {{"role", role == 's'   ? "system"
                  : role == 'u' ? "user"
                                : "assistant"},
         {"content", text.substr(at + 2, end - at - 2)}}
    );
    at = end + 1;
  }
  return out;
}

std::string text_of(const Json& messages) {
  std::string out;
  for (const Json& m : messages) {
    std::string content = m["content"];
    for (char& c : content) {
      if (c == '\n') c = '/';
    }
    if (!out.empty()) out += ' ';
    out += m["role"].get<std::string>().substr(0, 1) + ":" + content;
  }
  return out;
}

TEST(MessageTurns, EachFormGoesFurther) {
  using enum TurnForm;
  struct Case {
    const char* given;
    TurnForm form;
    const char* made;
  };
  const Case cases[] = {
      {"s:a s:b u:c", own, "s:a s:b u:c"},
      {"s:a s:b u:c u:d", joined, "s:a//b u:c//d"},
      {"s:a u:b s:c a:d s:e", joined, "s:a u:b s:c a:d s:e"},
      {"s:a u:b s:c a:d s:e", one_system, "s:a u:b//c a:d u:e"},
      {"u:a s:b", one_system, "u:a//b"},
      {"s:a s:b u:c", one_system, "s:a//b u:c"},
      {"s:a s:b u:c", no_system, "u:a//b//c"},
      {"s:a a:b u:c", no_system, "u:a a:b u:c"},
      {"s:a", no_system, "u:a"},
      {"a:b a:c u:d", no_system, "a:b//c u:d"},
      {"a:b u:c", user_first, "u: a:b u:c"},
      {"s:a a:b", user_first, "u:a a:b"},
  };
  for (const auto& [given, form, made] : cases) {
    EXPECT_EQ(text_of(in_turns(messages_of(given), form)), made) << given;
  }
}

TEST(MessageTurns, CallsResultsAndNamesStayApart) {
  const Json given = Json::parse(R"([
      {"role":"user","content":"a","name":"x"},
      {"role":"user","content":"b","name":"y"},
      {"role":"user","content":"c"},
      {"role":"assistant","content":"d","tool_calls":[{"id":"1"}]},
      {"role":"assistant","content":"e"},
      {"role":"tool","content":"f","tool_call_id":"1"},
      {"role":"tool","content":"g","tool_call_id":"1"}])");
  EXPECT_EQ(in_turns(given, TurnForm::user_first), given);
}

std::string prompt_of(
    const std::string& chat_template,
    const std::string& messages,
    bool strict = false
) {
  const ServedText text(letters_tokenizer(), template_of(chat_template), {});
  Json given = messages_of(messages);
  const Json body = {{"model", "m"}, {"messages", std::move(given)}};
  const auto request =
      parse_chat_request(to_json_line(body), {.strict = strict});
  return letters_tokenizer()->decode(text.chat_ids(request, 4096));
}

// As three kinds of templates are: one knows no system message and wants turns
// to alternate, one reads the first message of the system alone, one refuses
// those that come later.
TEST(MessageTurns, TemplatesGetWhatTheyCanWrite) {
  const std::string alternating =
      "{% for m in messages %}{% if m.role == 'system' %}"
      "{{ raise_exception('no system') }}{% endif %}"
      "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
      "{{ raise_exception('roles must alternate') }}{% endif %}"
      "{{ m.role[0] }}{{ m.content|replace('\\n', '') }}.{% endfor %}";
  const std::string first_only =
      "{% if messages[0].role == 'system' %}{{ messages[0].content|"
      "replace('\\n', '') }}!{% endif %}{% for m in messages %}"
      "{% if m.role != 'system' %}{{ m.role[0] }}"
      "{{ m.content|replace('\\n', '') }}.{% endif %}{% endfor %}";
  const std::string first_or_none =
      "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
      "{{ raise_exception('system must be first') }}{% endif %}"
      "{{ m.role[0] }}{{ m.content|replace('\\n', '') }}.{% endfor %}";
  struct Case {
    std::string chat_template, given, made;
  };
  const Case cases[] = {
      {alternating, "s:x s:y u:hi", "uxyhi."},
      {alternating, "s:x", "ux."},
      {alternating, "u:a u:b", "uab."},
      {alternating, "a:a u:b", "u.aa.ub."},
      {alternating, "u:a a:b s:c u:d", "ua.ab.ucd."},
      {first_only, "s:x s:y u:hi", "xy!uhi."},
      {first_only, "u:hi s:x", "uhix."},
      {first_only, "s:x u:a a:b s:y u:c", "x!ua.ab.uyc."},
      {first_or_none, "s:x s:y u:hi", "sxy.uhi."},
      {first_or_none, "u:hi s:x", "uhix."},
  };
  for (const auto& [chat_template, given, made] : cases) {
    EXPECT_EQ(prompt_of(chat_template, given), made) << given;
    EXPECT_THROW(prompt_of(chat_template, given, true), ApiError) << given;
  }
  EXPECT_EQ(prompt_of(first_only, "s:x u:a u:b", true), "x!ua.ub.")
      << "what a template can write is left as it is";
}

}  // namespace
}  // namespace hearth::serve
