// Requests to the API: what is read, and that nothing is ever ignored.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hearth/serve/api/api_error.h"
#include "hearth/serve/api/generation_request.h"

namespace hearth::serve {
namespace {

const std::string kChat =
    R"("model":"m","messages":[{"role":"user","content":"hi"}])";

ChatRequest chat(const std::string& more = {}) {
  return parse_chat_request(
      "{" + kChat + (more.empty() ? "" : ",") + more + "}", {}
  );
}

// The status, parameter and message of a refusal.
struct Refusal {
  int status = 0;
  std::string param, what;
};
template <class Parse>
Refusal refusal(Parse parse) {
  try {
    parse();
  } catch (const ApiError& e) {
    return {e.status(), e.param(), e.what()};
  }
  return {};
}
Refusal refused_chat(const std::string& more) {
  return refusal([&] { chat(more); });
}
Refusal refused_body(
    const std::string& body,
    const RequestLimits& limits = {}
) {
  return refusal([&] { parse_chat_request(body, limits); });
}
// As --strict-requests has it.
constexpr RequestLimits kStrict{.strict = true};
Refusal strictly_refused(const std::string& more) {
  return refused_body("{" + kChat + "," + more + "}", kStrict);
}
Refusal refused_completion(const std::string& body) {
  return refusal([&] { parse_completion_request(body, {}); });
}

TEST(ChatRequestTest, DefaultsAreOpenAis) {
  const auto r = chat();
  EXPECT_EQ(r.model, "m");
  EXPECT_FALSE(r.stream);
  EXPECT_EQ(r.sampling.temperature, 1);
  EXPECT_EQ(r.sampling.top_p, 1);
  EXPECT_EQ(r.choices, 1);
  EXPECT_FALSE(r.max_tokens || r.seed || r.log_probs);
  EXPECT_EQ(r.tool_choice, ToolChoice::none);
  EXPECT_EQ(r.messages[0]["content"], "hi");
}

TEST(ChatRequestTest, ReadsEveryOption) {
  const auto r = chat(
      R"("stream":true,"stream_options":{"include_usage":true},)"
      R"("temperature":0.5,"top_p":0.9,"top_k":40,"min_p":0.1,"typical_p":0.8,)"
      R"("n":3,"seed":-7,"stop":["a","b"],"logit_bias":{"5":-100,"7":1.5},)"
      R"("frequency_penalty":0.5,"presence_penalty":-1,)"
      R"("repetition_penalty":1.1,"logprobs":true,"top_logprobs":4,)"
      R"("max_completion_tokens":9,"user":"u","return_token_ids":true,)"
      R"("chat_template_kwargs":{"enable_thinking":false})"
  );
  EXPECT_TRUE(r.stream && r.include_usage && r.token_ids);
  EXPECT_EQ(r.sampling.temperature, 0.5);
  EXPECT_EQ(r.sampling.top_p, 0.9);
  EXPECT_EQ(r.sampling.top_k, 40);
  EXPECT_EQ(r.sampling.min_p, 0.1);
  EXPECT_EQ(r.sampling.typical_p, 0.8);
  EXPECT_EQ(r.choices, 3);
  EXPECT_EQ(r.seed, static_cast<std::uint64_t>(-7));
  EXPECT_EQ(r.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(r.logit_bias.at(5), -100.0f);
  EXPECT_EQ(r.logit_bias.at(7), 1.5f);
  EXPECT_EQ(r.sampling.frequency_penalty, 0.5);
  EXPECT_EQ(r.sampling.presence_penalty, -1);
  EXPECT_EQ(r.sampling.repeat_penalty, 1.1);
  EXPECT_EQ(r.log_probs, 4);
  EXPECT_EQ(r.max_tokens, 9);
  EXPECT_EQ(r.template_variables["enable_thinking"], false);
}

TEST(ChatRequestTest, EverySamplingOptionHasItsKeyAndItsBounds) {
  for (const auto& field : infer::sampling_fields()) {
    const auto with = [&](double value) {
      return field.whole() ? fmt::format("\"{}\":{:.0f}", field.key, value)
                           : fmt::format("\"{}\":{}", field.key, value);
    };
    const double most = std::min(field.request_most, 64.0);
    const double inside = field.whole() ? 3 : (field.request_least + most) / 2;
    const auto sampling = chat(with(inside)).sampling;
    EXPECT_EQ(field.get(sampling), inside) << field.key;
    for (const auto& other : infer::sampling_fields()) {
      if (&other == &field) continue;
      EXPECT_EQ(other.get(sampling), other.get({.temperature = 1}))
          << field.key << " sets " << other.key;
    }
    EXPECT_EQ(refused_chat(with(field.request_least - 2)).param, field.key);
    if (!field.whole()) {
      EXPECT_EQ(refused_chat(with(field.request_most + 1)).param, field.key);
    }
  }
}

TEST(ChatRequestTest, ANullIsAsGoodAsNothing) {
  const auto r = chat(
      R"("stop":null,"seed":null,"tools":null,"logit_bias":null,)"
      R"("response_format":null,"stream":null,"n":null)"
  );
  EXPECT_TRUE(r.stop.empty());
  EXPECT_EQ(r.choices, 1);
}

TEST(ChatRequestTest, ANullOptionThatIsNotOfferedIsAbsent) {
  chat(R"("prediction":null,"audio":null,"functions":null)");
  parse_chat_request(
      R"({"model":"m","messages":[{"role":"user","content":"x",)"
      R"("annotations":null}]})",
      {}
  );
}

TEST(ChatRequestTest, WhatChangesNoAnswerIsTaken) {
  chat(
      R"("metadata":{"a":"b"},"safety_identifier":"s","prompt_cache_key":"k",)"
      R"("modalities":["text"],"service_tier":"default","store":false,)"
      R"("user":"u")"
  );
  EXPECT_EQ(chat(R"("service_tier":"auto")").choices, 1);
  EXPECT_EQ(refused_chat(R"("metadata":5)").param, "metadata");
}

TEST(ChatRequestTest, TokenIdsNeedAPlaceToStand) {
  EXPECT_EQ(
      refused_chat(R"("return_token_ids":true)").param, "return_token_ids"
  );
  EXPECT_EQ(
      refused_completion(
          R"({"model":"m","prompt":"a","return_token_ids":true})"
      )
          .param,
      "return_token_ids"
  );
}

TEST(ChatRequestTest, MessagesBecomeWhatTemplatesRead) {
  const auto r = parse_chat_request(
      R"({"model":"m","messages":[{"role":"developer","content":"d"},
      {"role":"user","content":[{"type":"text","text":"a"},
        {"type":"text","text":"b"}],"name":"bob"},
      {"role":"assistant","content":null,"tool_calls":[{"id":"c1",
        "type":"function","function":{"name":"f",
        "arguments":"{\"x\": [1, 2]}"}}]},
      {"role":"tool","tool_call_id":"c1","content":"3"}]})",
      {}
  );
  EXPECT_EQ(r.messages[0]["role"], "system");
  EXPECT_EQ(r.messages[1]["content"], "ab");
  EXPECT_EQ(r.messages[1]["name"], "bob");
  EXPECT_EQ(r.messages[2]["content"], "");
  EXPECT_EQ(r.messages[2]["tool_calls"][0]["function"]["arguments"]["x"][1], 2);
  EXPECT_EQ(r.messages[3]["tool_call_id"], "c1");
}

TEST(ChatRequestTest, AnUnknownKeyIsNamedWithTheNearest) {
  const auto r = refused_chat(R"("temprature":1)");
  EXPECT_EQ(r.status, 400);
  EXPECT_EQ(r.param, "temprature");
  EXPECT_NE(r.what.find("temperature"), std::string::npos) << r.what;
  EXPECT_EQ(
      refused_body(
          R"({"model":"m","messages":[{"role":"user","content":"x","a":1}]})"
      )
          .param,
      "messages[0].a"
  );
}

TEST(ChatRequestTest, WhatIsNotOfferedIsNamed) {
  const std::pair<std::string, std::string> cases[] = {
      {R"("store":true)", "store"},
      {R"("functions":[])", "functions"},
      {R"("function_call":"auto")", "function_call"},
      {R"("modalities":["audio"])", "modalities"},
      {R"("prediction":{})", "prediction"},
      {R"("reasoning_effort":"high")", "reasoning_effort"},
      {R"("service_tier":"flex")", "service_tier"},
      {R"("web_search_options":{})", "web_search_options"},
  };
  for (const auto& [more, param] : cases) {
    const auto r = strictly_refused(more);
    EXPECT_EQ(r.status, 400) << more;
    EXPECT_EQ(r.param, param);
  }
}

TEST(ChatRequestTest, WrongTypesAndRangesAreNamed) {
  const std::pair<std::string, std::string> cases[] = {
      {R"("temperature":"hot")", "temperature"},
      {R"("temperature":2.1)", "temperature"},
      {R"("temperature":-1)", "temperature"},
      {R"("top_p":0)", "top_p"},
      {R"("n":0)", "n"},
      {R"("n":1.5)", "n"},
      {R"("n":1000)", "n"},
      {R"("max_tokens":0)", "max_tokens"},
      {R"("max_tokens":999999999)", "max_tokens"},
      {R"("max_tokens":3,"max_completion_tokens":4)", "max_tokens"},
      {R"("seed":"x")", "seed"},
      {R"("seed":18446744073709551615)", "seed"},
      {R"("stop":[1])", "stop"},
      {R"("stop":"")", "stop"},
      {R"("logit_bias":{"x":1})", "logit_bias"},
      {R"("logit_bias":{"1":101})", "logit_bias"},
      {R"("logit_bias":{"-1":1})", "logit_bias"},
      {R"("logit_bias":{"5":1,"05":-50})", "logit_bias"},
      {R"("stream":1)", "stream"},
      {R"("stream_options":{"include_usage":true})", "stream_options"},
      {R"("top_logprobs":2)", "top_logprobs"},
      {R"("logprobs":true,"top_logprobs":99999)", "top_logprobs"},
      {R"("response_format":{"type":"xml"})", "response_format.type"},
      {R"("response_format":{"type":"json_schema"})",
       "response_format.json_schema"},
      {R"("tools":[{"type":"web"}])", "tools[0].type"},
      {R"("tools":[{"type":"function","function":{}}])",
       "tools[0].function.name"},
      {R"("tool_choice":"auto")", "tool_choice"},
      {R"("chat_template_kwargs":{"messages":[]})",
       "chat_template_kwargs.messages"},
  };
  for (const auto& [more, param] : cases) {
    const auto r = strictly_refused(more);
    EXPECT_EQ(r.status, 400) << more;
    EXPECT_EQ(r.param, param) << r.what;
  }
}

TEST(ChatRequestTest, WrongMessagesAreNamed) {
  const std::pair<std::string, std::string> cases[] = {
      {"[]", "messages"},
      {"{}", "messages"},
      {"[1]", "messages[0]"},
      {R"([{"content":"x"}])", "messages[0].role"},
      {R"([{"role":"king","content":"x"}])", "messages[0].role"},
      {R"([{"role":"user"}])", "messages[0].content"},
      {R"([{"role":"user","content":5}])", "messages[0].content"},
      {R"([{"role":"user","content":[{"type":"image_url"}]}])",
       "messages[0].content[0].type"},
      {R"([{"role":"tool","content":"x"}])", "messages[0].tool_call_id"},
      {R"([{"role":"assistant","tool_calls":[{"id":"a","function":)"
       R"({"name":"f","arguments":"[1"}}]}])",
       "messages[0].tool_calls[0].function.arguments"},
  };
  for (const auto& [messages, param] : cases) {
    const auto r =
        refused_body(R"({"model":"m","messages":)" + messages + "}", kStrict);
    EXPECT_EQ(r.status, 400) << messages;
    EXPECT_EQ(r.param, param) << r.what;
  }
}

TEST(ChatRequestTest, ReadsToolChoices) {
  const std::string tools =
      R"("tools":[{"type":"function","function":{"name":"f"}}])";
  EXPECT_EQ(chat(tools).tool_choice, ToolChoice::automatic);
  EXPECT_EQ(
      chat(tools + R"(,"tool_choice":"none")").tool_choice, ToolChoice::none
  );
  EXPECT_EQ(
      chat(tools + R"(,"tool_choice":"required")").tool_choice,
      ToolChoice::required
  );
  const auto named = chat(
      tools + R"(,"tool_choice":{"type":"function","function":{"name":"f"}})"
  );
  EXPECT_EQ(named.tool_choice, ToolChoice::named);
  EXPECT_EQ(named.tool_name, "f");
  EXPECT_EQ(
      refused_chat(
          tools +
          R"(,"tool_choice":{"type":"function","function":{"name":"g"}})"
      )
          .param,
      "tool_choice"
  );
}

TEST(ChatRequestTest, ReadsResponseFormats) {
  using Kind = FormatRequest::Kind;
  const auto format = [](const std::string& text) {
    return chat(R"("response_format":)" + text).format;
  };
  EXPECT_EQ(format(R"({"type":"text"})").kind, Kind::text);
  EXPECT_EQ(format(R"({"type":"json_object"})").kind, Kind::json);
  const auto schema = format(
      R"({"type":"json_schema","json_schema":{"name":"n","strict":true,)"
      R"("schema":{"type":"object"}}})"
  );
  EXPECT_EQ(schema.kind, Kind::schema);
  EXPECT_EQ(schema.schema["type"], "object");
  EXPECT_EQ(format(R"({"type":"regex","pattern":"a+"})").source, "a+");
  EXPECT_EQ(format(R"({"type":"gbnf","grammar":"root"})").kind, Kind::gbnf);
}

TEST(CompletionRequestTest, ReadsPromptsOfEveryForm) {
  const auto read = [](const std::string& prompt) {
    return parse_completion_request(
               R"({"model":"m","prompt":)" + prompt + "}", {}
    )
        .prompts;
  };
  EXPECT_EQ(std::get<std::string>(read(R"("a")")[0]), "a");
  EXPECT_EQ(read(R"(["a","b"])").size(), 2U);
  EXPECT_EQ(std::get<TokenIds>(read("[1,2]")[0]), (TokenIds{1, 2}));
  EXPECT_EQ(std::get<TokenIds>(read("[[1],[2,3]]")[1]), (TokenIds{2, 3}));
  for (const char* wrong :
       {"5", "[-1]", "[1.5]", R"([["a"]])", "[4294967296]"}) {
    EXPECT_EQ(
        refused_completion(
            std::string(R"({"model":"m","prompt":)") + wrong + "}"
        )
            .param,
        "prompt"
    ) << wrong;
  }
}

TEST(CompletionRequestTest, ATeacherAsksForThePromptAlone) {
  const auto r = parse_completion_request(
      R"({"model":"m","prompt":"a","echo":true,"logprobs":8,"max_tokens":0})",
      {}
  );
  EXPECT_TRUE(r.echo);
  EXPECT_EQ(r.log_probs, 8);
  EXPECT_EQ(r.max_tokens, 0);
  EXPECT_EQ(
      refused_completion(R"({"model":"m","prompt":"a","max_tokens":0})").param,
      "max_tokens"
  );
}

TEST(CompletionRequestTest, WhatIsNotOfferedIsNamed) {
  const std::string start = R"({"model":"m","prompt":"a",)";
  EXPECT_EQ(refused_completion(start + R"("suffix":"b"})").param, "suffix");
  EXPECT_EQ(refused_completion(start + R"("best_of":4})").param, "best_of");
  EXPECT_EQ(refused_completion(start + R"("messages":[]})").param, "messages");
  EXPECT_EQ(
      refused_completion(R"({"model":"m","prompt":["a","b","c"],"n":9})").param,
      "prompt"
  );
}

TEST(RequestJson, RefusesWhatIsNotOneObject) {
  for (const std::string body :
       {"", "x", "[]", "5", "{", R"({"a":1}{"b":2})", R"({"a":1,"a":2})",
        "{\"a\":\"\xff\"}"}) {
    EXPECT_EQ(refused_body(body).status, 400) << body;
  }
  EXPECT_EQ(refused_body(std::string("{}\0x", 4)).status, 400);
  EXPECT_EQ(refused_body(std::string(100'000, '[')).status, 400);
}

TEST(RequestJson, ManyValuesAndListsAreRefused) {
  const auto refused = [](const std::string& one, int times) {
    std::string body = "{" + kChat + ",\"x\":[" + one;
    for (int i = 1; i < times; ++i) body += "," + one;
    return refused_body(body + "]}").what;
  };
  EXPECT_NE(refused("0", 1'000'001).find("too many values"), std::string::npos);
  EXPECT_NE(refused("[]", 100'001).find("too many lists"), std::string::npos);
  EXPECT_NE(refused("{}", 100'001).find("too many lists"), std::string::npos);
  // As many as a prompt of ids may have are read, and then refused as unknown.
  EXPECT_NE(refused("0", 900'000).find("not supported"), std::string::npos);
}

TEST(RequestJson, KeepsWhatWasWritten) {
  const std::string text =
      R"({"z":[1,-2,3.5,"\u00e9",null,true,{"b":{},"a":[[]]}],"a":"x"})";
  EXPECT_EQ(parse_request_json(text), Json::parse(text));
  EXPECT_EQ(
      to_json_line(parse_request_json(text)), to_json_line(Json::parse(text))
  );
}

TEST(RequestJson, ManyKeysAreRefusedQuickly) {
  std::string body = "{";
  for (int i = 0; i < 200'000; ++i) {
    body += "\"k" + std::to_string(i) + "\":0,";
  }
  body += "\"z\":0}";
  EXPECT_EQ(refused_body(body).status, 400);
}

}  // namespace
}  // namespace hearth::serve
