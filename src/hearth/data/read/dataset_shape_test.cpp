#include "hearth/data/read/dataset_shape.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/data/read/dataset_record.h"

namespace hearth::data {
namespace {

Record parse(std::string_view line, const RecordFields& fields = {}) {
  ReadSettings settings;
  settings.fields = fields;
  Record record;
  RecordParser(settings).parse(line, FileFormat::kJsonl, record);
  return record;
}

std::string refusal(std::string_view line, const RecordFields& fields = {}) {
  try {
    parse(line, fields);
  } catch (const FormatError& e) {
    return e.what();
  }
  return "";
}

// How a record was recognised, in one line, and what of it is not used.
std::string told(const Record& r) {
  std::string out = record_shapes({}).at(r.shape).line(r.present);
  for (const auto& field : r.unused) out += " -" + field;
  return out;
}

// A chat as "role: content" lines; '!' marks messages without loss.
std::string shown(const Json& messages) {
  std::string out;
  for (const Json& m : messages) {
    const bool quiet = m.contains("train") && !m["train"].get<bool>();
    out += (quiet ? "!" : "") + m["role"].get<std::string>() + ": ";
    out += m["content"].is_string() ? m["content"].get<std::string>() : "-";
    if (m.contains("tool_calls")) out += to_json_line(m["tool_calls"]);
    out += '|';
  }
  return out;
}

struct PromptCase {
  const char* line;
  const char* told;
  const char* prompt;
  const char* completion;
  const char* system = "";
};

TEST(RecordShapes, PromptsByTheirOtherNames) {
  const PromptCase cases[] = {
      {R"({"instruction":"Do.","input":"it","output":"done","text":"### Do."})",
       "Alpaca: instruction + input → prompt, output → completion -text",
       "Do.\n\nit", "done"},
      {R"({"instruction":"Do.","output":"done","id":"7","n":3,"tags":[]})",
       "Alpaca: instruction → prompt, output → completion -id", "Do.", "done"},
      {R"({"instruction":"Do.","context":"","response":"done"})",
       "Dolly: instruction + context → prompt, response → completion", "Do.",
       "done"},
      {R"({"question":"1+1?","answer":"2"})",
       "questions and answers: question → prompt, answer → completion", "1+1?",
       "2"},
      {R"({"id":"f","system_prompt":"Be.","question":"q","response":"r"})",
       "OpenOrca: question → prompt, response → completion, system_prompt → "
       "system -id",
       "q", "r", "Be."},
      {R"({"query":"q","response":"r"})",
       "queries and responses: query → prompt, response → completion", "q",
       "r"},
      {R"({"problem":"p","solution":"s"})",
       "problems and solutions: problem → prompt, solution → completion", "p",
       "s"},
      {R"({"prompt":"p","response":"r","system":"s"})",
       "prompts and responses: response → completion", "p", "r", "s"},
      {R"({"prompt":"p","output":"o"})",
       "prompts and outputs: output → completion", "p", "o"},
      {R"({"instruction":"i","completion":"c"})",
       "instructions and completions: instruction → prompt", "i", "c"},
      {R"({"input":"i","output":"o"})",
       "inputs and outputs: input → prompt, output → completion", "i", "o"},
      {R"({"prompt":"p","completion":"c","input":"i"})", " -input", "p", "c"},
  };
  for (const auto& c : cases) {
    const Record r = parse(c.line);
    EXPECT_EQ(r.kind, Record::Kind::kCompletion) << c.line;
    EXPECT_EQ(told(r), c.told);
    EXPECT_EQ(r.prompt, c.prompt);
    EXPECT_EQ(r.completion, c.completion);
    EXPECT_EQ(r.system, c.system);
  }
}

TEST(RecordShapes, ChatsInEveryForm) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"conversations":[{"from":"human","value":"q"},)"
       R"({"from":"gpt","value":"a"}]})",
       "user: q|assistant: a|"},
      {R"({"system":"s","conversations":[{"role":"user","content":"q"},)"
       R"({"role":"assistant","content":"a"}]})",
       "system: s|user: q|assistant: a|"},
      {R"({"conversations":["q","a","r","b"]})",
       "user: q|assistant: a|user: r|assistant: b|"},
      {R"({"messages":[{"role":"developer","content":[{"type":"text",)"
       R"("text":"be "},{"type":"text","text":"brief"}]},)"
       R"({"role":"user","content":"q"},{"role":"assistant","content":"a",)"
       R"("weight":0},{"role":"assistant","content":"b","weight":1}]})",
       "system: be brief|user: q|!assistant: a|assistant: b|"},
      {R"({"messages":[{"role":"assistant","content":null,"tool_calls":[)"
       R"({"id":"c","type":"function","function":{"name":"f","arguments":)"
       R"("{\"x\": 1}"}}]},{"role":"tool","content":"2"}]})",
       R"(assistant: -[{"id":"c","type":"function","function":{"name":"f",)"
       R"("arguments":{"x":1}}}]|tool: 2|)"},
      {R"({"conversations":[{"from":"function_call","value":)"
       R"("{\"name\": \"f\", \"arguments\": {}}"},)"
       R"({"from":"observation","value":"2"}]})",
       R"(assistant: [{"type":"function","function":{"name":"f",)"
       R"("arguments":{}}}]|tool: 2|)"},
      {R"({"messages":[{"role":"assistant","content":null,)"
       R"("function_call":{"name":"f","arguments":"not json"}}]})",
       R"(assistant: -[{"type":"function","function":{"name":"f",)"
       R"("arguments":"not json"}}]|)"},
      {R"({"prompt":[{"role":"user","content":"q"},{"role":"assistant",)"
       R"("content":"a"},{"role":"user","content":"r"}],)"
       R"("completion":[{"role":"assistant","content":"b"}]})",
       "user: q|!assistant: a|user: r|assistant: b|"},
      {R"({"prompt":"q","completion":{"role":"assistant","content":"a"}})",
       "user: q|assistant: a|"},
      {R"({"prompt":"q","completion":"a","tools":[{"name":"f"}]})",
       "user: q|assistant: a|"},
      {R"({"messages":"[{\"role\": \"user\", \"content\": \"q\"}]"})",
       "user: q|"},
  };
  for (const auto& [line, chat] : cases) {
    const Record r = parse(line);
    EXPECT_EQ(r.kind, Record::Kind::kChat) << line;
    EXPECT_EQ(shown(r.messages), chat) << line;
    EXPECT_TRUE(r.unused.empty()) << line;
  }
  EXPECT_EQ(
      told(parse(R"({"conversations":["q"],"id":"x"})")),
      "ShareGPT: conversations → messages -id"
  );
  const auto tools = R"({"messages":["q"],"tools":"[{\"name\": \"f\"}]"})";
  EXPECT_EQ(parse(tools).tools, Json::array({{{"name", "f"}}}));
}

struct PairCase {
  const char* line;
  const char* told;
  const char* prompt;
  const char* chosen;
  const char* rejected;
};

TEST(RecordShapes, PreferencesAsTexts) {
  const PairCase cases[] = {
      {R"({"prompt":"p","chosen":"a","rejected":"b"})", "", "p", "a", "b"},
      {R"({"instruction":"i","input":"x","output":"a","chosen":"a",)"
       R"("rejected":"b"})",
       "Alpaca preferences: instruction + input → prompt -output", "i\n\nx",
       "a", "b"},
      {R"({"question":"q","chosen":"a","rejected":"b"})",
       "question preferences: question → prompt", "q", "a", "b"},
      {R"({"chosen":"Ask: why? Since it is.","rejected":"Ask: why? Silence."})",
       "", "Ask: why?", " Since it is.", " Silence."},
      {R"({"chosen":"same words","rejected":"same words more"})", "", "same",
       " words", " words more"},
      {R"({"chosen":"good","rejected":"bad"})", "", "", "good", "bad"},
  };
  for (const auto& c : cases) {
    const Record r = parse(c.line);
    EXPECT_EQ(r.kind, Record::Kind::kPreference) << c.line;
    EXPECT_EQ(told(r), c.told);
    EXPECT_EQ(r.prompt, c.prompt);
    EXPECT_EQ(r.chosen, c.chosen);
    EXPECT_EQ(r.rejected, c.rejected);
    EXPECT_EQ(r.empty_prompt(), *c.prompt == '\0');
  }
}

TEST(RecordShapes, PreferencesAsMessages) {
  const char* const cases[] = {
      R"({"prompt":"q","chosen":[{"role":"assistant","content":"a"}],)"
      R"("rejected":[{"role":"assistant","content":"b"}]})",
      R"({"prompt":"q","chosen":[{"role":"user","content":"q"},)"
      R"({"role":"assistant","content":"a"}],"rejected":[{"role":"user",)"
      R"("content":"q"},{"role":"assistant","content":"b"}]})",
      R"({"chosen":[{"role":"user","content":"q"},{"role":"assistant",)"
      R"("content":"a"}],"rejected":[{"role":"user","content":"q"},)"
      R"({"role":"assistant","content":"b"}]})",
      R"({"conversations":[{"from":"human","value":"q"}],)"
      R"("chosen":{"from":"gpt","value":"a"},)"
      R"("rejected":{"from":"gpt","value":"b"}})",
      R"({"prompt":[{"role":"user","content":"q"}],"chosen":"a",)"
      R"("rejected":"b"})",
      R"({"input":{"messages":[{"role":"user","content":"q"}],"tools":[]},)"
      R"("preferred_output":[{"role":"assistant","content":"a"}],)"
      R"("non_preferred_output":[{"role":"assistant","content":"b"}]})",
  };
  for (const char* line : cases) {
    const Record r = parse(line);
    EXPECT_EQ(r.kind, Record::Kind::kPreference) << line;
    EXPECT_EQ(shown(r.chosen_messages), "user: q|assistant: a|") << line;
    EXPECT_EQ(shown(r.rejected_messages), "user: q|assistant: b|") << line;
    EXPECT_TRUE(r.unused.empty()) << line;
  }
}

TEST(RecordShapes, FieldsThatAreNamedGoFirst) {
  RecordFields fields;
  fields.text = "story";
  const auto line = R"({"instruction":"i","output":"o","story":"s"})";
  EXPECT_EQ(parse(line, fields).text, "s");
  fields = {};
  fields.prompt = "output", fields.completion = "instruction";
  EXPECT_EQ(parse(line, fields).prompt, "o");
  // An empty name switches a field off.
  const auto both = R"({"messages":["q"],"chosen":"a x","rejected":"a y"})";
  EXPECT_EQ(parse(both).kind, Record::Kind::kChat);
  EXPECT_EQ(
      parse(both).unused, (std::vector<std::string>{"chosen", "rejected"})
  );
  fields = {};
  fields.messages = "";
  EXPECT_EQ(parse(both, fields).kind, Record::Kind::kPreference);
  fields = {};
  fields.roles = {{"narrator", "system"}};
  const auto play = R"({"messages":[{"role":"narrator","content":"n"}]})";
  EXPECT_EQ(shown(parse(play, fields).messages), "system: n|");
}

TEST(RecordShapes, WhatIsWrongSaysTheCure) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"ask":"q","answer":"a"})",
       "it has \"ask\", \"answer\": data.fields={prompt: ask, completion: "
       "answer}"},
      {R"({"body":"t","n":1})",
       "it has \"body\", \"n\": data.fields={text: body}"},
      {"{}", "it has none"},
      {R"({"a":"1","b":"2","c":"3"})", "it has \"a\", \"b\", \"c\""},
      {R"({"prompt":"p","completion":"c","label":true})", "(KTO)"},
      {R"({"messages":[{"role":"narrator","content":"n"}]})",
       "message 1 has \"narrator\": data.fields={roles: {\"narrator\": user}}"},
      {R"({"messages":[{"role":"user","text":"n"}]})",
       "must have a content, message 1 has none"},
      {R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})",
       "must have parts that are text, got image_url"},
      {R"({"messages":[{"role":"user","content":5}]})",
       "a text as its content"},
      {R"({"conversations":7,"id":"x"})",
       "\"conversations\" must be a list of messages"},
      {R"({"input":{"x":1},"preferred_output":"a","non_preferred_output":"b"})",
       "must be an object with messages"},
      {R"({"messages":["q"],"tools":"{}"})", "must be a list of functions"},
  };
  for (const auto& [line, part] : cases) {
    EXPECT_NE(refusal(line).find(part), std::string::npos)
        << line << " gives " << refusal(line);
  }
  EXPECT_EQ(guess_fields({"x", "answer"}).find("{prompt: x, completion"), 12u);
}

}  // namespace
}  // namespace hearth::data
