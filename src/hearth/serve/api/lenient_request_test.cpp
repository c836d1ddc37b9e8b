// What clients send that changes nothing, or that can be put another way, is
// taken; with strict requests it is refused.
#include <gtest/gtest.h>

#include "hearth/serve/api/api_error.h"
#include "hearth/serve/api/generation_request.h"

namespace hearth::serve {
namespace {

ChatRequest read(
    const std::string& messages,
    const std::string& more = {},
    const RequestLimits& limits = {}
) {
  return parse_chat_request(
      R"({"model":"m","messages":[)" + messages + "]" + more + "}", limits
  );
}

const std::string kUser = R"({"role":"user","content":"hi"})";

// Taken as it is; refused, by that name, where requests are strict.
void expect_only_strict_refuses(
    const std::string& messages,
    const std::string& more,
    const std::string& param
) {
  EXPECT_NO_THROW(read(messages, more)) << messages << more;
  try {
    read(messages, more, {.strict = true});
    ADD_FAILURE() << "taken: " << messages << more;
  } catch (const ApiError& e) {
    EXPECT_EQ(e.status(), 400);
    EXPECT_EQ(e.param(), param) << e.what();
  }
}

TEST(LenientRequest, OptionsThatChangeNothingAreTaken) {
  const std::pair<std::string, std::string> cases[] = {
      {R"("store":true)", "store"},
      {R"("service_tier":"flex")", "service_tier"},
      {R"("reasoning_effort":"high")", "reasoning_effort"},
      {R"("verbosity":"low")", "verbosity"},
      {R"("prediction":{"type":"content","content":"x"})", "prediction"},
      {R"("prompt_cache_retention":"24h")", "prompt_cache_retention"},
      {R"("stream_options":{"include_usage":true})", "stream_options"},
      {R"("tool_choice":"auto")", "tool_choice"},
      {R"("top_logprobs":0)", "top_logprobs"},
      {R"("max_tokens":999999)", "max_tokens"},
      {R"("max_completion_tokens":999999)", "max_completion_tokens"},
      {R"("top_p":0)", "top_p"},
      {R"("top_k":-1)", "top_k"},
      {R"("response_format":{"type":"json_schema","json_schema":)"
       R"({"name":"n"}})",
       "response_format.json_schema.schema"},
  };
  for (const auto& [more, param] : cases) {
    expect_only_strict_refuses(kUser, "," + more, param);
  }
}

TEST(LenientRequest, MessagesThatWereOnceReceivedAreTaken) {
  const auto assistant = [](const std::string& more) {
    return R"({"role":"assistant",)" + more + "}," + kUser;
  };
  const auto called = [&](const std::string& call) {
    return assistant(
        R"("content":null,"tool_calls":[{"id":"c","type":"function",)" + call +
        "}]"
    );
  };
  const std::string at = "messages[0].";
  const std::pair<std::string, std::string> cases[] = {
      {assistant(R"("content":null)"), at + "content"},
      {assistant(R"("content":"a","annotations":[])"), at + "annotations"},
      {assistant(R"("content":null,"refusal":"no")"), at + "refusal"},
      {assistant(R"("content":"a","reasoning":"b")"), at + "reasoning"},
      {assistant(R"("content":[{"type":"refusal","refusal":"no"}])"),
       at + "content[0].type"},
      {called(R"("index":0,"function":{"name":"f","arguments":"{}"})"),
       at + "tool_calls[0].index"},
      {called(R"("function":{"name":"f","arguments":"{\"a\": "})"),
       at + "tool_calls[0].function.arguments"},
      {called(R"("function":{"name":"f","arguments":"[1]"})"),
       at + "tool_calls[0].function.arguments"},
      {called(R"("function":{"name":"f","arguments":{"a":1}})"),
       at + "tool_calls[0].function.arguments"},
      {called(R"("function":{"name":"f"})"),
       at + "tool_calls[0].function.arguments"},
      {R"({"role":"tool","tool_call_id":"c","content":null})", at + "content"},
      {R"({"role":"user","content":[{"type":"text","text":"a",)"
       R"("cache_control":{"type":"ephemeral"}}]})",
       at + "content[0].cache_control"},
  };
  for (const auto& [messages, param] : cases) {
    expect_only_strict_refuses(messages, {}, param);
  }
}

TEST(LenientRequest, WhatIsTakenMeansSomething) {
  EXPECT_EQ(
      read(kUser, R"(,"top_p":0,"temperature":1)").sampling.temperature, 0
  );
  EXPECT_EQ(read(kUser, R"(,"top_k":-1)").sampling.top_k, 0);
  const auto long_one = read(kUser, R"(,"max_tokens":8192)");
  EXPECT_EQ(long_one.max_tokens, 4096);
  EXPECT_EQ(long_one.asked_tokens, 8192);
  const auto refusal =
      read(R"({"role":"assistant","content":null,"refusal":"no"})");
  EXPECT_EQ(refusal.messages[0]["content"], "no");
  const auto broken = read(
      R"({"role":"assistant","tool_calls":[{"id":"c","function":)"
      R"({"name":"f","arguments":"{\"a\": "}}]})"
  );
  EXPECT_EQ(
      broken.messages[0]["tool_calls"][0]["function"]["arguments"], "{\"a\": "
  );
}

TEST(LenientRequest, SomeOfTheToolsMayBeAllowed) {
  const auto tool = [](const std::string& name) {
    return R"({"type":"function","function":{"name":")" + name + "\"}}";
  };
  const auto with = [&](const std::string& mode, const std::string& tools) {
    return read(
        kUser, R"(,"tools":[)" + tool("f") + "," + tool("g") + "," + tool("h") +
                   R"(],"tool_choice":{"type":"allowed_tools",)"
                   R"("allowed_tools":{"mode":")" +
                   mode + R"(","tools":[)" + tools + "]}}"
    );
  };
  const auto two = with("auto", tool("h") + "," + tool("f"));
  EXPECT_EQ(two.tool_choice, ToolChoice::automatic);
  ASSERT_EQ(two.tools.size(), 2U);
  EXPECT_EQ(two.tools[0]["function"]["name"], "f");
  EXPECT_EQ(two.tools[1]["function"]["name"], "h");
  EXPECT_EQ(with("required", tool("g")).tool_choice, ToolChoice::required);
  EXPECT_THROW(with("never", tool("g")), ApiError);
  EXPECT_THROW(with("auto", tool("x")), ApiError);
  EXPECT_THROW(with("auto", ""), ApiError);
}

TEST(LenientRequest, WhatCannotBeDoneIsRefusedAllTheSame) {
  const auto refused = [](const std::string& messages,
                          const std::string& more = {}) {
    try {
      read(messages, more);
      return std::string("taken");
    } catch (const ApiError& e) {
      return e.param();
    }
  };
  EXPECT_EQ(refused(kUser, R"(,"temprature":1)"), "temprature");
  EXPECT_EQ(refused(kUser, R"(,"modalities":["audio"])"), "modalities");
  EXPECT_EQ(refused(kUser, R"(,"top_k":-2)"), "top_k");
  EXPECT_EQ(refused(kUser, R"(,"tool_choice":"required")"), "tool_choice");
  EXPECT_EQ(refused(kUser, R"(,"reasoning_effort":"x")"), "reasoning_effort");
  EXPECT_EQ(
      refused(R"({"role":"user","content":null})"), "messages[0].content"
  );
  EXPECT_EQ(
      refused(R"({"role":"user","content":[{"type":"image_url"}]})"),
      "messages[0].content[0].type"
  );
  // A grammar of one's own does not say where a call would begin.
  EXPECT_EQ(
      refused(
          kUser, R"(,"tools":[{"type":"function","function":{"name":"f"}}],)"
                 R"("response_format":{"type":"regex","pattern":"a"})"
      ),
      "response_format"
  );
}

}  // namespace
}  // namespace hearth::serve
