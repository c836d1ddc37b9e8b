#include <gtest/gtest.h>

#include "hearth/data/chat.h"

namespace hearth::data {
namespace {

std::optional<std::size_t> unread(
    const char* source,
    const char* messages,
    bool goes_on = false
) {
  const ChatTemplate chat(source);
  ChatOptions options;
  options.add_generation_prompt = !goes_on;
  options.continue_final_message = goes_on;
  const Json list = Json::parse(messages);
  return unread_message(chat, list, options, chat.render(list, options));
}

constexpr const char* kUserAndAssistant =
    "{% for m in messages %}{% if m.role == 'user' %}[U]{{ m.content }}"
    "{% elif m.role == 'assistant' %}[A]{{ m.content | trim }}{% endif %}"
    "{% endfor %}[A]";

TEST(UnreadMessage, IsNamed) {
  const char* const source = kUserAndAssistant;
  EXPECT_EQ(
      unread(source, R"([{"role":"system","content":"x"},
                         {"role":"user","content":"x"}])"),
      0u
  );
  EXPECT_EQ(
      unread(source, R"([{"role":"user","content":"a"},
                         {"role":"assistant","content":" b "},
                         {"role":"tool","content":"42"},
                         {"role":"user","content":"c"}])"),
      2u
  );
  // Only the first and the last are written.
  EXPECT_EQ(
      unread(
          "{{ messages[0].content }}{{ messages[-1].content }}",
          R"([{"role":"user","content":"a"},{"role":"user","content":"b"},
              {"role":"user","content":"c"}])"
      ),
      1u
  );
}

TEST(UnreadMessage, IsNotOneThatIsReadOrSaysNothing) {
  const char* const source = kUserAndAssistant;
  EXPECT_FALSE(unread(source, R"([{"role":"user","content":"a"},
                                  {"role":"assistant","content":"b"}])"));
  EXPECT_FALSE(unread(source, R"([{"role":"system","content":" "},
                                  {"role":"user","content":"a"}])"));
  EXPECT_FALSE(unread(
      source,
      R"([{"role":"user","content":"a"},{"role":"user","content":"b"},
              {"role":"assistant","content":"b"}])",
      true
  ));
  // Read without being written.
  EXPECT_FALSE(unread(
      "{% if messages[0].content == 'brief' %}Be brief. {% endif %}"
      "{{ messages[1].content }}",
      R"([{"role":"system","content":"brief"},{"role":"user","content":"a"}])"
  ));
  // The template refuses any other content.
  EXPECT_FALSE(unread(
      "{% if messages[0].content != 'on' %}{{ raise_exception('no') }}"
      "{% endif %}{{ messages[1].content }}",
      R"([{"role":"system","content":"on"},{"role":"user","content":"a"}])"
  ));
  // Some templates write the call alone.
  EXPECT_FALSE(unread(
      "{% for m in messages %}{% if m.tool_calls %}{{ m.tool_calls }}"
      "{% else %}{{ m.content }}{% endif %}{% endfor %}",
      R"([{"role":"user","content":"a"},
          {"role":"assistant","content":"Let me see.","tool_calls":[{}]}])"
  ));
}

}  // namespace
}  // namespace hearth::data
