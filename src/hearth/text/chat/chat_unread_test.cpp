// Messages that a template leaves out.
#include <gtest/gtest.h>

#include "hearth/text/chat/chat.h"

namespace hearth::text {
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

// The mark was a fixed word, made longer by one letter for each time that it
// was found: two million letters took the square of that.
TEST(UnreadMessage, NoTextMakesTheMarkExpensive) {
  const Json list = {
      {{"role", "user"},
       {"content", "HEARTH_SAID" + std::string(2'000'000, 'X')}}
  };
  const ChatTemplate chat(kUserAndAssistant);
  const std::string text = chat.render(list, {});
  EXPECT_FALSE(unread_message(chat, list, {}, text));
}

// Each message that is not written is left out once to see what changes.
TEST(UnreadMessage, CountsItsRenderings) {
  Json list = Json::array();
  for (int i = 0; i < 3000; ++i) {
    list.push_back({{"role", "user"}, {"content", "a"}});
  }
  // It reads all and writes none.
  const ChatTemplate chat(
      "{% for m in messages %}{{ m.content | length }}{% endfor %}"
  );
  const std::string text = chat.render(list, {});
  Effort effort(1'000'000);
  ChatOptions options;
  options.effort = &effort;
  EXPECT_THROW(unread_message(chat, list, options, text), EffortError);
}

TEST(ContinuedMessage, IsFoundInALongTextOfOneLetter) {
  // Looked for at every place of the text, to its end each time.
  const std::string content = std::string(1'000'000, 'a') + "b";
  const Json list = {
      {{"role", "user"}, {"content", std::string(2'000'000, 'a')}},
      {{"role", "assistant"}, {"content", content}}
  };
  ChatOptions options;
  options.continue_final_message = true;
  const ChatTemplate chat("{% for m in messages %}{{ m.content }}{% endfor %}");
  EXPECT_EQ(chat.render(list, options).size(), 3'000'001U);
}

}  // namespace
}  // namespace hearth::text
