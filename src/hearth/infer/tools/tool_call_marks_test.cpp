// The marks of tool calls as the special tokens that some tokenizers have.
#include <gtest/gtest.h>

#include "hearth/infer/tools/tool_calls.h"

namespace hearth::infer {
namespace {

// Ids 0 and 1 are text, 2 to 6 special.
std::shared_ptr<const text::Tokenizer> with_special_tokens() {
  Json added = Json::array(), vocabulary = Json::object();
  int id = 0;
  for (const char* text : {"x", "{\"name\":\"a\",\"arguments\":{}}"}) {
    vocabulary[text] = id++;
  }
  for (const char* text :
       {"<s>", "<tool_call>", "</tool_call>", "[ARGS]", "<|eom|>"}) {
    added.push_back({{"id", id++}, {"content", text}, {"special", true}});
  }
  const Json file = {
      {"version", "1.0"},
      {"added_tokens", added},
      {"decoder", {{"type", "Fuse"}}},
      {"model",
       {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}}
  };
  return text::Tokenizer::from_json(to_json_line(file), "special");
}

TEST(ToolCalls, TextThatWasHeldBackStandsBeforeTheMark) {
  const auto tokenizer = with_special_tokens();
  ToolCallReader reader(ToolForm::hermes, {"a"});
  GeneratedToken mark;
  mark.id = 3;
  mark.text = "x";
  EXPECT_EQ(reader.feed(mark, *tokenizer, {}).text, "x");
  const std::string call = "{\"name\":\"a\",\"arguments\":{}}";
  EXPECT_EQ(reader.feed(call + "</tool_call>").calls.size(), 1u);
}

TEST(ToolCalls, OnlyMarksOfSpecialTokensAreRead) {
  const auto tokenizer = with_special_tokens();
  const auto read = [&](ToolForm form, const std::vector<std::int32_t>& ids) {
    ToolCallReader reader(form, {"a"});
    const std::int32_t stops[] = {6};
    ToolText out;
    const auto add = [&](const ToolText& part) {
      out.text += part.text;
      for (const auto& call : part.calls) out.calls.push_back(call);
    };
    for (const std::int32_t id : ids) {
      GeneratedToken token;
      token.id = id;
      token.text = tokenizer->decode({&id, 1}, true);
      add(reader.feed(token, *tokenizer, stops));
    }
    add(reader.finish());
    return out;
  };
  EXPECT_EQ(read(ToolForm::hermes, {2, 2, 0, 5, 0, 6}).text, "xx");
  EXPECT_EQ(read(ToolForm::mistral, {2, 0, 3, 0}).text, "xx");
  const ToolText call = read(ToolForm::hermes, {2, 0, 3, 2, 1, 4, 6});
  EXPECT_EQ(call.text, "x");
  EXPECT_EQ(call.calls, std::vector<ToolCall>({{"a", "{}", ""}}));
  // A mark that begins no call, or ends none, is shown to nobody.
  EXPECT_EQ(read(ToolForm::hermes, {0, 3, 0, 4, 0}).text, "xxx");
  EXPECT_EQ(read(ToolForm::hermes, {0, 3, 3}).text, "x");
  EXPECT_EQ(read(ToolForm::mistral, {0, 5, 0}).text, "xx");
}

}  // namespace
}  // namespace hearth::infer
