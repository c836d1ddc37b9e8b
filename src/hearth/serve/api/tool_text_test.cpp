// Chats put another way, where a template knows no tools or no system message.
#include "hearth/serve/api/tool_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hearth/serve/api/api_error.h"
#include "hearth/serve/service_bench_test.h"

namespace hearth::serve {
namespace {

const Json kTools = Json::parse(
    R"([{"type":"function","function":{"name":"add","parameters":)"
    R"({"type":"object","properties":{"a":{"type":"integer"}}}}}])"
);

Json a_call(const Json& arguments) {
  return {
      {"role", "assistant"},
      {"content", "Well."},
      {"tool_calls",
       Json::array(
           {{{"id", "1"},
             {"type", "function"},
             {"function", {{"name", "add"}, {"arguments", arguments}}}}}
       )}
  };
}

TEST(ToolText, CallsAreWrittenAsTheyAreReadBack) {
  Json messages = Json::array({a_call({{"a", 1}})});
  ASSERT_TRUE(write_calls_as_text(messages));
  EXPECT_FALSE(messages[0].contains("tool_calls"));
  const auto read = infer::read_tool_calls(
      std::string(messages[0]["content"]), kPlainToolForm
  );
  EXPECT_EQ(read.text, "Well.\n");
  ASSERT_EQ(read.calls.size(), 1U);
  EXPECT_EQ(read.calls[0].name, "add");
  EXPECT_EQ(read.calls[0].arguments, R"({"a":1})");
}

TEST(ToolText, BrokenArgumentsStandThereAsTheyWereWritten) {
  Json messages = Json::array({a_call("{\"a\": ")});
  ASSERT_TRUE(write_calls_as_text(messages));
  EXPECT_NE(
      std::string(messages[0]["content"]).find("\"arguments\": {\"a\": }"),
      std::string::npos
  );
}

// Copying what has come together for each message would take 100 GB of it.
TEST(ToolText, ManyMessagesBehindAResultAreJoinedInPlace) {
  constexpr std::size_t kMany = 50'000, kEach = 100;
  Json messages = Json::array();
  messages.push_back({{"role", "tool"}, {"content", "x"}});
  for (std::size_t i = 0; i < kMany; ++i) {
    messages.push_back(
        {{"role", "user"}, {"content", std::string(kEach, 'y')}}
    );
  }
  ASSERT_TRUE(write_calls_as_text(messages));
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_GT(
      messages[0]["content"].get_ref<const std::string&>().size(), kMany * kEach
  );
}

TEST(ToolText, ResultsAreOneTurnOfTheUser) {
  const auto result = [](const char* text) {
    return Json{{"role", "tool"}, {"content", text}, {"tool_call_id", "1"}};
  };
  Json messages = Json::array(
      {a_call({{"a", 1}}), result("x"), result("y"),
       Json{{"role", "user"}, {"content", "and?"}},
       Json{{"role", "user"}, {"content", "no"}}}
  );
  ASSERT_TRUE(write_calls_as_text(messages));
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages[1]["role"], "user");
  EXPECT_EQ(
      messages[1]["content"],
      "<tool_response>\nx\n</tool_response>\n"
      "<tool_response>\ny\n</tool_response>\nand?\nno"
  );
  Json plain = Json::array({Json{{"role", "user"}, {"content", "hi"}}});
  EXPECT_FALSE(write_calls_as_text(plain));
}

TEST(ToolText, ToolsStandInTheSystemMessage) {
  Json without = Json::array({Json{{"role", "user"}, {"content", "hi"}}});
  add_tools_as_text(without, kTools);
  ASSERT_EQ(without.size(), 2U);
  EXPECT_EQ(without[0]["role"], "system");
  Json with = Json::array(
      {Json{{"role", "system"}, {"content", "Be brief."}},
       Json{{"role", "user"}, {"content", "hi"}}}
  );
  add_tools_as_text(with, kTools);
  const std::string text = with[0]["content"];
  EXPECT_TRUE(text.starts_with("Be brief.\n\n"));
  EXPECT_NE(text.find(to_json_line(kTools[0]["function"])), text.npos);
}

// The text that a template makes of a chat, by the tokenizer's letters.
std::string prompt_of(
    const std::string& chat_template,
    const std::string& body,
    bool strict = false
) {
  const ServedText text(letters_tokenizer(), template_of(chat_template), {});
  const auto request = parse_chat_request(body, {.strict = strict});
  return letters_tokenizer()->decode(text.chat_ids(request, 4096));
}

std::string chat_of(const std::string& messages, const std::string& more = {}) {
  return R"({"model":"m","messages":[)" + messages + "]" + more + "}";
}

const std::string kSystem = R"({"role":"system","content":"be brief"})";
const std::string kUser = R"({"role":"user","content":"hi"})";

TEST(ToolText, ASystemMessageThatATemplateRefusesIsTheUsers) {
  for (const char* refusing :
       {"{% for m in messages %}{% if m.role == 'system' %}"
        "{{ raise_exception('no system') }}{% endif %}{{ m.content }}"
        "{% endfor %}",
        "{% for m in messages %}{% if m.role != 'system' %}{{ m.content }}"
        "{% endif %}{% endfor %}"}) {
    const std::string body = chat_of(kSystem + "," + kUser);
    EXPECT_EQ(prompt_of(refusing, body), "be briefhi") << refusing;
    EXPECT_THROW(prompt_of(refusing, body, true), ApiError);
  }
}

TEST(ToolText, ToolsOfATemplateThatKnowsNoneAreTold) {
  const std::string tools = ",\"tools\":" + to_json_line(kTools);
  const std::string text = prompt_of(kPlainTemplate, chat_of(kUser, tools));
  EXPECT_NE(text.find("ou may call functions"), text.npos) << text;
  EXPECT_NE(text.find("add"), text.npos);
  EXPECT_EQ(
      prompt_of(
          kPlainTemplate, chat_of(kUser, tools + R"(,"tool_choice":"none")")
      ),
      "hi!"
  );
}

// Some templates take a description and a list for granted.
TEST(ToolText, ATemplateFindsWhatItTakesForGranted) {
  const std::string hermes =
      "{% for t in tools %}{{ t.function.description + 'x' }}"
      "{{ t.function.parameters.properties|length }}"
      "<tool_call>{\"name\": , \"arguments\": }</tool_call>{% endfor %}"
      "{% for m in messages %}{{ m.content }}{% endfor %}";
  EXPECT_EQ(prompt_of(hermes, chat_of(kUser)), "hi");
  const std::string tools =
      R"(,"tools":[{"type":"function","function":{"name":"f"}}])";
  EXPECT_TRUE(prompt_of(hermes, chat_of(kUser, tools)).starts_with("x"));
  EXPECT_THROW(prompt_of(hermes, chat_of(kUser), true), ApiError);
  // One that asks whether there are tools is told that there are none.
  const std::string asks =
      "{% if tools is not none %}tools{% endif %}{{ messages[0].content }}";
  EXPECT_EQ(prompt_of(asks, chat_of(kUser)), "hi");
}

TEST(ToolText, HistoryOfCallsIsTextWhereTheTemplateReadsNone) {
  const std::string call =
      R"({"role":"assistant","content":null,"tool_calls":[{"id":"c",)"
      R"("function":{"name":"add","arguments":"{\"a\": "}}]},)"
      R"({"role":"tool","tool_call_id":"c","content":"three"})";
  const std::string only_users =
      "{% for m in messages %}{% if m.role in ['user', 'assistant'] %}"
      "{{ m.content }}{% endif %}{% endfor %}";
  for (const std::string& chat : {std::string(kPlainTemplate), only_users}) {
    const std::string text = prompt_of(chat, chat_of(kUser + "," + call));
    EXPECT_NE(text.find("add"), text.npos) << text;
    EXPECT_NE(text.find("three"), text.npos) << text;
  }
  // A template that takes arguments apart cannot do so with a text.
  const std::string takes_apart =
      "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}"
      "{% for k, v in c.function.arguments|items %}{{ k }}{{ v }}"
      "{% endfor %}{% endfor %}{% endfor %}";
  const std::string text = prompt_of(takes_apart, chat_of(kUser + "," + call));
  EXPECT_NE(text.find("arguments"), text.npos) << text;
}

TEST(ToolText, NamesAndThoughtsMayBeLeftOut) {
  EXPECT_EQ(
      prompt_of(
          kPlainTemplate, chat_of(
                              R"({"role":"user","content":"a","name":"bob"},)"
                              R"({"role":"assistant","content":"b",)"
                              R"("reasoning_content":"c"})"
                          )
      ),
      "ab!"
  );
  EXPECT_EQ(
      prompt_of(
          "{% for m in messages %}{{ m.name }}{{ m.content }}{% endfor %}",
          chat_of(R"({"role":"user","content":"a","name":"bob"})")
      ),
      "boba"
  );
}

TEST(ToolText, EffortReachesATemplateThatKnowsIt) {
  const std::string effort = R"(,"reasoning_effort":"high")";
  EXPECT_EQ(prompt_of(kPlainTemplate, chat_of(kUser, effort)), "hi!");
  EXPECT_EQ(
      prompt_of(
          "{{ reasoning_effort }}{{ messages[0].content }}",
          chat_of(kUser, effort)
      ),
      "highhi"
  );
}

// Held by a grammar, even this model makes a call.
TEST(ToolText, AForcedCallComesBackAsACall) {
  const auto grammar =
      infer::grammar_of_tool_call(kPlainToolForm, kTools, "add");
  EXPECT_TRUE(
      text::is_whole_text(
          *grammar,
          "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": "
          "1}}\n</tool_call>"
      )
  );
}

TEST(ToolText, AnswersAreCallsOrWhatWasAskedFor) {
  using infer::ToolForm;
  const Json schema = Json::parse(
      R"({"type":"object","properties":{"city":)"
      R"({"const":"Rome"}},"required":["city"],)"
      R"("additionalProperties":false})"
  );
  const auto hermes =
      infer::grammar_of_calls_or_json(ToolForm::hermes, kTools, &schema, false);
  EXPECT_TRUE(is_whole_text(*hermes, R"({"city": "Rome"})"));
  EXPECT_TRUE(is_whole_text(
      *hermes,
      "<tool_call>\n{\"name\": \"add\", \"arguments\": {}}\n</tool_call>"
  ));
  EXPECT_FALSE(is_whole_text(*hermes, "Rome"));
  EXPECT_FALSE(is_whole_text(*hermes, R"({"city": "Oslo"})"));
  const auto llama = infer::grammar_of_calls_or_text(
      ToolForm::llama,
      Json::parse(
          R"([{"type":"function","function":{"name":"add","strict":true,)"
          R"("parameters":{"type":"object","properties":{"a":{"const":1}},)"
          R"("required":["a"],"additionalProperties":false}}}])"
      ),
      true
  );
  EXPECT_TRUE(is_whole_text(*llama, "It is {sunny}."));
  EXPECT_TRUE(is_whole_text(*llama, ""));
  EXPECT_TRUE(
      is_whole_text(*llama, R"({"name": "add", "parameters": {"a": 1}})")
  );
  EXPECT_FALSE(
      is_whole_text(*llama, R"({"name": "add", "parameters": {"a": 2}})")
  );
}

}  // namespace
}  // namespace hearth::serve
