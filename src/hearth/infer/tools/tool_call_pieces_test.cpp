// Calls that are told while they come: joined again they are the calls that
// are read whole, however the text was cut.
#include "hearth/infer/tools/tool_call_pieces.h"

#include <random>

#include <gtest/gtest.h>

#include "hearth/base/json.h"

namespace hearth::infer {
namespace {

struct Joined {
  std::string text;
  std::vector<ToolCall> calls;
  int open = 0;  // begun and not ended
  bool cut = false;
  std::size_t most = 0;  // pieces of arguments that one call came in
};

void join(const ToolText& part, Joined& out, std::size_t& pieces) {
  out.text += part.text;
  out.cut = out.cut || part.cut;
  EXPECT_TRUE(part.calls.empty());
  for (const auto& piece : part.pieces) {
    if (piece.begins) {
      out.calls.push_back({piece.name, {}, piece.id});
      ++out.open;
      pieces = 0;
    }
    if (!piece.arguments.empty()) {
      ASSERT_FALSE(out.calls.empty());
      out.calls.back().arguments += piece.arguments;
      out.most = std::max(out.most, ++pieces);
    }
    out.open -= piece.ends;
  }
}

// In pieces of so many bytes at most.
Joined told(
    ToolForm form,
    std::string_view text,
    std::size_t most,
    bool cut = false
) {
  ToolCallReader reader(form, {"add", "say"}, true);
  std::mt19937 random(static_cast<unsigned>(most));
  Joined out;
  std::size_t pieces = 0;
  while (!text.empty()) {
    const std::size_t size = std::min(text.size(), 1 + random() % most);
    join(reader.feed(text.substr(0, size)), out, pieces);
    text.remove_prefix(size);
  }
  join(reader.finish(cut), out, pieces);
  return out;
}

struct Case {
  ToolForm form;
  const char* text;
};

const Case kCases[] = {
    {ToolForm::hermes, "only text, {\"name\": \"add\"} too"},
    {ToolForm::hermes,
     "I will.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": [1, "
     "{\"b\": \"}\\\"\"}]}}\n</tool_call>\n<tool_call>\n{\"name\": \"say\", "
     "\"arguments\": {}}\n</tool_call>"},
    // Written in another order: told once it is whole.
    {ToolForm::hermes,
     "<tool_call>{\"arguments\": {\"a\": 1}, \"name\": \"add\"}</tool_call>"},
    {ToolForm::hermes,
     "<tool_call>{\"name\": \"add\", \"arguments\": \"{}\"}</tool_call>"},
    {ToolForm::hermes,
     "<tool_call>{\"name\": \"other\", \"arguments\": {}}"
     "</tool_call>done"},
    {ToolForm::hermes, "<tool_call>no object</tool_call>"},
    {ToolForm::hermes,
     "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1}}"},
    {ToolForm::llama,
     "{\"name\": \"add\", \"parameters\": {\"a\": 1}}; {\"name\": \"say\", "
     "\"parameters\": {\"b\": \"x\"}}"},
    {ToolForm::llama, "{\"name\": \"other\", \"parameters\": {\"a\": 1}}"},
    {ToolForm::llama, "{\"city\": \"Rome\"}"},
    {ToolForm::llama, "<|python_tag|>add.call(a=1)"},
    {ToolForm::mistral,
     "[TOOL_CALLS] [{\"name\": \"add\", \"arguments\": {\"a\": 1}}, "
     "{\"name\": \"say\", \"arguments\": {\"b\": [2]}, \"id\": \"abc\"}]"},
    {ToolForm::mistral, "[TOOL_CALLS]add[CALL_ID]abc[ARGS]{\"a\": {\"b\": 1}}"},
};

TEST(ToolCallPieces, JoinedTheyAreTheCallsReadWhole) {
  for (const Case& c : kCases) {
    const ToolText whole = read_tool_calls(c.text, c.form, {"add", "say"});
    for (const std::size_t most : {1, 2, 5, 17, 1000}) {
      const Joined got = told(c.form, c.text, most);
      EXPECT_EQ(got.text, whole.text) << c.text << most;
      EXPECT_EQ(got.open, 0) << c.text << most;
      ASSERT_EQ(got.calls.size(), whole.calls.size()) << c.text << most;
      for (std::size_t i = 0; i < got.calls.size(); ++i) {
        EXPECT_EQ(got.calls[i].name, whole.calls[i].name);
        EXPECT_EQ(
            Json::parse(got.calls[i].arguments),
            Json::parse(whole.calls[i].arguments)
        ) << c.text;
      }
    }
  }
}

TEST(ToolCallPieces, ArgumentsComeAsTheyAreWritten) {
  const Joined got = told(
      ToolForm::hermes,
      "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"text\": \"a long "
      "one\"}}\n</tool_call>",
      1
  );
  EXPECT_EQ(got.calls[0].arguments, "{\"text\": \"a long one\"}");
  EXPECT_GT(got.most, 20U);
}

TEST(ToolCallPieces, WhatIsCutStaysWithoutAnEnd) {
  const Joined got = told(
      ToolForm::hermes,
      "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": ", 3, true
  );
  EXPECT_TRUE(got.cut);
  EXPECT_EQ(got.text, "");
  EXPECT_EQ(got.open, 1);
  EXPECT_EQ(got.calls[0].arguments, "{\"a\": ");
}

// It was told already: neither is it taken back nor shown twice.
TEST(ToolCallPieces, ABrokenCallThatWasToldStaysACall) {
  const Joined broken = told(
      ToolForm::hermes,
      "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": nonsense}}"
      "</tool_call> after",
      4
  );
  ASSERT_EQ(broken.calls.size(), 1U);
  EXPECT_EQ(broken.calls[0].arguments, "{\"a\": nonsense}");
  EXPECT_EQ(broken.open, 0);
  const Joined ended = told(
      ToolForm::hermes, "<tool_call>{\"name\": \"add\", \"arguments\": {\"a", 4
  );
  EXPECT_EQ(ended.open, 0);
  EXPECT_EQ(ended.calls[0].arguments, "{\"a");
  EXPECT_EQ(ended.text, "");
}

}  // namespace
}  // namespace hearth::infer
