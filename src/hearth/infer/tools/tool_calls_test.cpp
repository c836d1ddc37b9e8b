#include "hearth/infer/tools/tool_calls.h"

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/text/grammar/vocabulary_test.h"

namespace hearth::infer {
namespace {

struct Case {
  ToolForm form;
  std::string answer, text;
  std::vector<ToolCall> calls;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases{
      {ToolForm::hermes,
       "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
       "\"Paris\"}}\n</tool_call>",
       "",
       {{"get_weather", R"({"city":"Paris"})", ""}}},
      {ToolForm::hermes,
       "Let me look.\n<tool_call>\n{\"name\": \"a\", \"arguments\": {}}\n"
       "</tool_call>\n<tool_call>\n{\"arguments\": {\"x\": 1}, \"name\": "
       "\"b\"}\n"
       "</tool_call>\n",
       "Let me look.\n",
       {{"a", "{}", ""}, {"b", R"({"x":1})", ""}}},
      // A stop token took the closing mark; a text that looks like one inside.
      {ToolForm::hermes,
       "<tool_call>{\"name\": \"a\", \"arguments\": {\"t\": "
       "\"</tool_call> \\\" {\"}}",
       "",
       {{"a", R"({"t":"</tool_call> \" {"})", ""}}},
      {ToolForm::hermes,
       "<tool_call>\n{\"name\": broken}\n</tool_call> after",
       "<tool_call>\n{\"name\": broken}\n</tool_call> after",
       {}},
      {ToolForm::hermes,
       "<tool_call>\n{\"name\": \"a\", \"argu",
       "<tool_call>\n{\"name\": \"a\", \"argu",
       {}},
      {ToolForm::hermes,
       "<tool_call>call me</tool_call>",
       "<tool_call>call me</tool_call>",
       {}},
      {ToolForm::hermes, "a < b <tool", "a < b <tool", {}},
      {ToolForm::hermes, "\n\n", "\n\n", {}},
      {ToolForm::llama,
       "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Oslo\"}}",
       "",
       {{"get_weather", R"({"city":"Oslo"})", ""}}},
      {ToolForm::llama,
       "<|python_tag|>{\"type\": \"function\", \"name\": \"get_weather\", "
       "\"parameters\": {\"city\": \"Rome\"}}; {\"name\": \"a\", "
       "\"parameters\": {}}",
       "",
       {{"get_weather", R"({"city":"Rome"})", ""}, {"a", "{}", ""}}},
      {ToolForm::llama,
       "<|python_tag|>brave_search.call(query=\"a \\\"b\\\"\", n=3, deep=True, "
       "l=['x', None, {'k': -1.5}])",
       "",
       {{"brave_search",
         R"({"query":"a \"b\"","n":3,"deep":true,"l":["x",null,{"k":-1.5}]})",
         ""}}},
      {ToolForm::llama,
       "<|python_tag|>print(1 + 1)",
       "<|python_tag|>print(1 + 1)",
       {}},
      {ToolForm::llama,
       "Sure: {\"name\": \"a\", \"parameters\": {}}",
       "Sure: {\"name\": \"a\", \"parameters\": {}}",
       {}},
      {ToolForm::llama, "{\"answer\": 42}", "{\"answer\": 42}", {}},
      {ToolForm::llama,
       "{\"name\": \"Bob\", \"parameters\": {}}",
       "{\"name\": \"Bob\", \"parameters\": {}}",
       {}},
      {ToolForm::llama, "{\"name\": \"a\"}", "{\"name\": \"a\"}", {}},
      {ToolForm::mistral,
       "[TOOL_CALLS] [{\"name\": \"get_weather\", \"arguments\": {\"city\": "
       "\"Nice\"}, \"id\": \"abcdefghi\"}, {\"name\": \"a\", \"arguments\": "
       "\"{\\\"x\\\": [1]}\"}]",
       "",
       {{"get_weather", R"({"city":"Nice"})", "abcdefghi"},
        {"a", R"({"x":[1]})", ""}}},
      {ToolForm::mistral,
       "Hm.[TOOL_CALLS]a{\"x\": 1}[TOOL_CALLS]b[CALL_ID]123456789[ARGS]{}",
       "Hm.",
       {{"a", R"({"x":1})", ""}, {"b", "{}", "123456789"}}},
      {ToolForm::mistral,
       "[TOOL_CALLS] [{\"name\": 1}] end",
       "[TOOL_CALLS] [{\"name\": 1}] end",
       {}},
      {ToolForm::none,
       "<tool_call>{\"name\": \"a\", \"arguments\": {}}",
       "<tool_call>{\"name\": \"a\", \"arguments\": {}}",
       {}},
  };
  return kCases;
}

const std::vector<std::string> kNames{"get_weather", "a", "b", "brave_search"};

TEST(ToolCalls, ReadsEveryForm) {
  for (const Case& one : cases()) {
    const ToolText read = read_tool_calls(one.answer, one.form, kNames);
    EXPECT_EQ(read.text, one.text) << one.answer;
    EXPECT_EQ(read.calls, one.calls) << one.answer;
  }
}

TEST(ToolCalls, PiecesOfAnySizeGiveTheSame) {
  std::mt19937 random(9);
  for (const Case& one : cases()) {
    for (int round = 0; round < 20; ++round) {
      ToolCallReader reader(one.form, kNames);
      std::string text;
      std::vector<ToolCall> calls;
      const auto take = [&](const ToolText& out) {
        text += out.text;
        calls.insert(calls.end(), out.calls.begin(), out.calls.end());
      };
      for (std::size_t at = 0; at < one.answer.size();) {
        const std::size_t size = round == 0 ? 1 : 1 + random() % 9;
        take(reader.feed(std::string_view(one.answer).substr(at, size)));
        at += size;
      }
      take(reader.finish());
      ASSERT_EQ(text, one.text) << one.answer;
      ASSERT_EQ(calls, one.calls) << one.answer;
    }
  }
}

TEST(ToolCalls, ShowsTextAtOnceAndHoldsTheCallBack) {
  ToolCallReader reader(ToolForm::hermes);
  EXPECT_EQ(reader.feed("Hello there").text, "Hello there");
  EXPECT_EQ(reader.feed(", <to").text, ", ");
  EXPECT_EQ(reader.feed("ol_call>{\"name\": \"a\",").text, "");
  EXPECT_EQ(reader.feed(" \"arguments\": {}}").calls.size(), 0U);
  EXPECT_EQ(reader.feed("</tool_call>").calls.size(), 1U);
  EXPECT_EQ(reader.feed("\n").text, "");
  EXPECT_EQ(reader.feed("Done").text, "\nDone");

  ToolCallReader llama(ToolForm::llama);
  EXPECT_EQ(llama.feed("{").text, "");
  EXPECT_EQ(llama.feed("\"ans").text, "{\"ans");
  EXPECT_EQ(llama.feed("wer\": 1}").text, "wer\": 1}");
}

TEST(ToolCalls, FormByTemplate) {
  EXPECT_EQ(
      tool_form_of("… within <tool_call></tool_call> tags"), ToolForm::hermes
  );
  EXPECT_EQ(tool_form_of("{{ '[TOOL_CALLS]' }}"), ToolForm::mistral);
  EXPECT_EQ(tool_form_of("{{ '<|python_tag|>' }}"), ToolForm::llama);
  EXPECT_EQ(tool_form_of("{{ messages }}"), ToolForm::none);
}

TEST(ToolCalls, FormsOfRealTemplates) {
  const std::filesystem::path folder =
      std::filesystem::path(HEARTH_SOURCE_DIR) /
      "../shared/data/fixtures/templates";
  if (!std::filesystem::exists(folder))
    GTEST_SKIP() << "no templates next door";
  const std::pair<const char*, ToolForm> known[] = {
      {"Qwen-Qwen2.5-7B-Instruct", ToolForm::hermes},
      {"Qwen-Qwen3-0.6B", ToolForm::hermes},
      {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", ToolForm::hermes},
      {"meta-llama-Llama-3.1-8B-Instruct", ToolForm::llama},
      {"mistralai-Mistral-Nemo-Instruct-2407", ToolForm::mistral},
      {"google-gemma-2-2b-it", ToolForm::none},
  };
  for (const auto& [name, form] : known) {
    std::ifstream file(folder / (std::string(name) + ".jinja"));
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_EQ(tool_form_of(text.str()), form) << name;
  }
}

const Json& tools() {
  static const Json kTools = Json::parse(R"([
    {"type": "function", "function": {"name": "get_weather", "parameters":
      {"type": "object", "properties": {"city": {"type": "string",
       "maxLength": 4}, "days": {"type": "integer", "minimum": 1,
       "maximum": 14}}, "required": ["city"], "additionalProperties": false}}},
    {"type": "function", "function": {"name": "a"}}])");
  return kTools;
}

TEST(ToolCalls, TheGrammarDemandsACallThatIsRead) {
  const text::grammar::TestVocabulary vocabulary;
  std::mt19937 random(21);
  for (const ToolForm form :
       {ToolForm::hermes, ToolForm::llama, ToolForm::mistral}) {
    const auto demanded = grammar_of_tool_call(form, tools(), "get_weather");
    for (int round = 0; round < 12; ++round) {
      bool ended = false;
      const std::string answer =
          vocabulary.random_text(demanded, random, 400, ended);
      ASSERT_TRUE(ended) << answer;
      const ToolText read = read_tool_calls(answer, form, tool_names(tools()));
      ASSERT_EQ(read.calls.size(), 1U) << answer;
      EXPECT_EQ(read.text, "");
      EXPECT_EQ(read.calls[0].name, "get_weather");
      const Json arguments = Json::parse(read.calls[0].arguments);
      EXPECT_TRUE(arguments["city"].is_string());
      if (arguments.contains("days")) {
        EXPECT_LE(arguments["days"].get<int>(), 14);
      }
    }
    // Only the end may follow.
    text::GrammarState state(
        grammar_of_tool_call(form, tools(), "a"), vocabulary.made
    );
    const std::string begin = form == ToolForm::hermes    ? "<tool_call>\n"
                              : form == ToolForm::mistral ? "[TOOL_CALLS] ["
                                                          : "";
    const std::string key =
        form == ToolForm::llama ? "parameters" : "arguments";
    const std::string end = form == ToolForm::hermes    ? "\n</tool_call>"
                            : form == ToolForm::mistral ? "]"
                                                        : "";
    for (const char c :
         begin + R"({"name": "a", ")" + key + R"(": {}})" + end) {
      state.accept(static_cast<unsigned char>(c));
    }
    EXPECT_TRUE(state.must_end());
  }
}

// A schema that lists no property takes any; a tool that lists no parameter
// has none.
TEST(ToolCalls, AToolWithoutParametersIsCalledWithNone) {
  const auto reads = [](const char* function, const std::string& arguments) {
    const Json tools = {
        {{"type", "function"}, {"function", Json::parse(function)}}
    };
    return text::is_whole_text(
        *grammar_of_tool_call(ToolForm::llama, tools),
        R"({"name": "f", "parameters": )" + arguments + "}"
    );
  };
  for (const char* none :
       {R"({"name": "f"})", R"({"name": "f", "parameters": null})",
        R"({"name": "f", "parameters": {"type": "object", "properties": {}}})",
        R"({"name": "f", "parameters": {"properties": {}, "title": "F"}})"}) {
    EXPECT_TRUE(reads(none, "{}")) << none;
    EXPECT_FALSE(reads(none, R"({"x":1})")) << none;
  }
  for (const char* any :
       {R"({"name": "f", "parameters": {"type": "object"}})",
        R"({"name": "f", "parameters": {"properties": {},
            "additionalProperties": true}})"}) {
    EXPECT_TRUE(reads(any, "{}")) << any;
    EXPECT_TRUE(reads(any, R"({"x":1})")) << any;
  }
}

TEST(ToolCalls, StrictToolsAreHeldToTheirSchemasAfterTheMark) {
  const text::grammar::TestVocabulary vocabulary;
  Json both = tools();
  both[0]["function"]["strict"] = true;  // get_weather
  const std::string call =
      R"({"name": "get_weather", "arguments": {"city": "Oslo"}})";
  const auto reads = [&](ToolForm form, const std::string& text) {
    text::GrammarState state(
        grammar_after_tool_call_mark(form, both, true), vocabulary.made
    );
    try {
      state.accept_bytes(text);
      return state.may_end();
    } catch (const Error&) {
      return false;
    }
  };
  // A token may have had the blank after the mark, or there was none.
  for (const std::string blank : {"\n", ""}) {
    EXPECT_TRUE(reads(ToolForm::hermes, blank + call + "\n</tool_call>"));
    EXPECT_FALSE(reads(
        ToolForm::hermes,
        blank + R"({"name": "get_weather", "arguments": {"town": 1}})" +
            "\n</tool_call>"
    ));
    // One that is not strict takes any object.
    EXPECT_TRUE(reads(
        ToolForm::hermes,
        blank + R"({"name": "a", "arguments": {"town": 1}})" + "\n</tool_call>"
    ));
  }
  EXPECT_TRUE(reads(
      ToolForm::hermes,
      "\n" + call + "\n</tool_call>\n<tool_call>\n" + call + "\n</tool_call>"
  ));
  EXPECT_TRUE(reads(ToolForm::mistral, " [" + call + ", " + call + "]"));
  EXPECT_TRUE(reads(ToolForm::mistral, "[" + call + "]"));
  EXPECT_EQ(tool_call_mark(ToolForm::llama), "");
}

TEST(ToolCalls, ACallThatWasCutIsDropped) {
  struct Cut {
    ToolForm form;
    std::string answer, text;
    bool cut;
  };
  const std::string whole =
      R"(<tool_call>{"name": "a", "arguments": {}}</tool_call>)";
  for (const auto& [form, answer, text, cut] : {
           Cut{ToolForm::hermes, "Let me see.\n<tool_call>\n{\"name\": \"a",
               "Let me see.\n", true},
           Cut{ToolForm::hermes, "<tool_call>", "", true},
           Cut{ToolForm::hermes, whole + "\n<tool_call>\n{\"na", "", true},
           // All but its mark is there.
           Cut{ToolForm::hermes, whole.substr(0, whole.size() - 4), "", false},
           Cut{ToolForm::hermes, "a < b <tool", "a < b <tool", false},
           Cut{ToolForm::llama, "{\"name\": \"a\", \"param", "", true},
           Cut{ToolForm::llama, "{\"colour\": 1, ", "{\"colour\": 1, ", false},
           Cut{ToolForm::mistral, "[TOOL_CALLS] [{\"name\": \"a\", ", "", true},
       }) {
    ToolCallReader reader(form, {"a"});
    ToolText got = reader.feed(answer);
    const ToolText rest = reader.finish(true);
    EXPECT_EQ(got.text + rest.text, text) << answer;
    EXPECT_EQ(rest.cut, cut) << answer;
  }
}

TEST(ToolCalls, TheSameQuestionGetsTheSameGrammar) {
  const auto first = grammar_of_tool_call(ToolForm::llama, tools(), "a");
  EXPECT_EQ(first, grammar_of_tool_call(ToolForm::llama, tools(), "a"));
  EXPECT_NE(first, grammar_of_tool_call(ToolForm::llama, tools(), ""));
  EXPECT_NE(first, grammar_of_tool_call(ToolForm::hermes, tools(), "a"));
  for (const char* other : {"a", "b", "c", "d"}) text::grammar_of_regex(other);
  EXPECT_NE(first, grammar_of_tool_call(ToolForm::llama, tools(), "a"));
}

TEST(ToolCalls, SeveralCalls) {
  const text::grammar::TestVocabulary vocabulary;
  text::GrammarState state(
      grammar_of_tool_call(ToolForm::llama, tools(), "", true), vocabulary.made
  );
  for (const char c : std::string(
           R"({"name": "a", "parameters": {}}; {"name": "a", "parameters": {}})"
       )) {
    state.accept(static_cast<unsigned char>(c));
  }
  EXPECT_TRUE(state.may_end());
}

TEST(ToolCalls, RefusesWhatCannotBeCalled) {
  EXPECT_THROW(grammar_of_tool_call(ToolForm::none, tools()), UsageError);
  EXPECT_THROW(
      grammar_of_tool_call(ToolForm::hermes, tools(), "b"), UsageError
  );
  EXPECT_THROW(
      grammar_of_tool_call(ToolForm::hermes, Json::array()), UsageError
  );
  EXPECT_THROW(tool_names(Json::parse(R"([{"name": "x"}])")), UsageError);
  EXPECT_THROW(tool_names(Json::parse("{}")), UsageError);
  try {
    grammar_of_tool_call(
        ToolForm::hermes,
        Json::parse(R"([{"type": "function", "function": {"name": "f",
          "parameters": {"not": {}}}}])")
    );
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("tool 'f'"), std::string::npos);
  }
}

}  // namespace
}  // namespace hearth::infer
