// /v1/responses: what is read, and the answer whole and as events.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hearth/serve/api/response_answer.h"
#include "hearth/serve/api/response_request.h"
#include "hearth/serve/service_bench_test.h"

namespace hearth::serve {
namespace {

const char* const kPath = "/v1/responses";

ResponseRequest read(const std::string& more) {
  return parse_response_request(R"({"model":"m",)" + more + "}", {});
}

TEST(ResponseRequest, ATextIsWhatTheUserSays) {
  const auto r = read(R"("input":"hi","instructions":"be brief")");
  EXPECT_EQ(
      r.messages, Json::parse(
                      R"([{"role":"system","content":"be brief"},)"
                      R"({"role":"user","content":"hi"}])"
                  )
  );
  EXPECT_EQ(r.sampling.temperature, 1);
  EXPECT_FALSE(r.stream || r.max_tokens || r.log_probs);
}

TEST(ResponseRequest, ItemsAreMessages) {
  const auto r = read(
      R"("input":[{"role":"developer","content":"d"},
      {"type":"message","role":"user","content":[
        {"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]},
      {"type":"reasoning","id":"rs_1","summary":[]},
      {"type":"message","id":"msg_1","status":"completed","role":"assistant",
        "content":[{"type":"output_text","text":"c","annotations":[],
        "logprobs":[]}]},
      {"type":"function_call","id":"fc_1","call_id":"c1","name":"f",
        "arguments":"{\"x\":1}","status":"completed"},
      {"type":"function_call","call_id":"c2","name":"g","arguments":"{\"x\""},
      {"type":"function_call_output","call_id":"c1","output":"3"},
      {"type":"function_call_output","call_id":"c2","output":[
        {"type":"input_text","text":"4"}]}])"
  );
  ASSERT_EQ(r.messages.size(), 5U);
  EXPECT_EQ(r.messages[0]["role"], "system");
  EXPECT_EQ(r.messages[1]["content"], "ab");
  EXPECT_EQ(r.messages[2]["content"], "c");
  const Json& calls = r.messages[2]["tool_calls"];
  EXPECT_EQ(calls[0]["function"]["arguments"]["x"], 1);
  EXPECT_EQ(calls[1]["id"], "c2");
  EXPECT_EQ(calls[1]["function"]["arguments"], "{\"x\"");
  EXPECT_EQ(r.messages[3]["tool_call_id"], "c1");
  EXPECT_EQ(r.messages[4]["content"], "4");
}

TEST(ResponseRequest, ReadsEveryOption) {
  const auto r = read(
      R"("input":"x","stream":true,"max_output_tokens":99999,"temperature":0.5,
      "top_p":0.9,"parallel_tool_calls":false,"tool_choice":
      {"type":"function","name":"f"},"tools":[{"type":"function","name":"f",
      "description":"d","parameters":{"type":"object"},"strict":true}],
      "store":true,"metadata":{"a":"b"},"user":"u","truncation":"auto",
      "include":["reasoning.encrypted_content","message.output_text.logprobs"],
      "top_logprobs":3,"reasoning":{"effort":"low","summary":"auto"},
      "service_tier":"auto","previous_response_id":null,"background":false)"
  );
  EXPECT_TRUE(r.stream);
  EXPECT_EQ(r.max_tokens, 4096);
  EXPECT_EQ(r.asked_tokens, 99999);
  EXPECT_EQ(r.sampling.temperature, 0.5);
  EXPECT_EQ(r.tools[0]["function"]["name"], "f");
  EXPECT_EQ(r.tools[0]["function"]["strict"], true);
  EXPECT_EQ(r.tool_choice, ToolChoice::named);
  EXPECT_EQ(r.tool_name, "f");
  EXPECT_FALSE(r.parallel_tool_calls);
  EXPECT_EQ(r.log_probs, 3);
  EXPECT_EQ(r.reasoning_effort, "low");
  EXPECT_EQ(r.echo["store"], false);
  EXPECT_EQ(r.echo["metadata"]["a"], "b");
  EXPECT_EQ(r.echo["tools"][0]["name"], "f");
}

TEST(ResponseRequest, SomeOfTheToolsMayBeAllowed) {
  const auto r = read(
      R"("input":"x","tools":[{"type":"function","name":"f"},
      {"type":"function","name":"g"}],"tool_choice":{"type":"allowed_tools",
      "mode":"required","tools":[{"type":"function","name":"g"}]})"
  );
  EXPECT_EQ(r.tool_choice, ToolChoice::required);
  ASSERT_EQ(r.tools.size(), 1U);
  EXPECT_EQ(r.tools[0]["function"]["name"], "g");
  EXPECT_EQ(r.echo["tools"].size(), 2U);
  EXPECT_EQ(r.echo["tool_choice"]["type"], "allowed_tools");
}

TEST(ResponseRequest, WhatIsRepeatedHasALength) {
  const auto param_of = [](const Json& more) {
    Json body = {{"model", "m"}, {"input", "x"}};
    body.update(more);
    try {
      parse_response_request(to_json_line(body), {});
    } catch (const ApiError& e) {
      EXPECT_EQ(e.status(), 400);
      EXPECT_LT(std::string_view(e.what()).size(), 200U);
      return e.param();
    }
    return std::string();
  };
  const auto text = [](std::size_t size) { return std::string(size, 'x'); };
  Json pairs = Json::object();
  for (int i = 0; i < 16; ++i) pairs[std::to_string(i)] = "a";
  EXPECT_EQ(param_of({{"metadata", pairs}}), "");
  pairs["another"] = "a";
  EXPECT_EQ(param_of({{"metadata", pairs}}), "metadata");
  EXPECT_EQ(param_of({{"metadata", {{text(64), text(512)}}}}), "");
  EXPECT_EQ(param_of({{"metadata", {{text(65), "a"}}}}), "metadata");
  EXPECT_EQ(param_of({{"metadata", {{"a", text(513)}}}}), "metadata");
  EXPECT_EQ(param_of({{"metadata", {{"a", {{"b", text(513)}}}}}}), "metadata");
  std::string wide;
  for (int i = 0; i < 512; ++i) wide += "\xC3\xA4";
  EXPECT_EQ(param_of({{"user", wide}}), "") << "characters, not bytes";
  EXPECT_EQ(param_of({{"user", text(513)}}), "user");
  EXPECT_EQ(param_of({{"service_tier", text(513)}}), "service_tier");
}

TEST(ResponseRequest, WhatIsLongIsNotRepeated) {
  const std::string much(100'000, 'x');
  const Json body = {
      {"model", "m"},
      {"input", "x"},
      {"instructions", much},
      {"reasoning", {{"effort", "low"}, {"summary", much}}},
      {"tools",
       Json::array(
           {{{"type", "function"}, {"name", "f"}, {"description", much}}}
       )},
      {"text",
       {{"format",
         {{"type", "json_schema"},
          {"name", "n"},
          {"schema", {{"type", "object"}, {"description", much}}}}}}}
  };
  const auto r = parse_response_request(to_json_line(body), {});
  EXPECT_LT(to_json_line(r.echo).size(), 1'000U);
  EXPECT_EQ(r.echo["text"]["format"]["type"], "json_schema");
  EXPECT_EQ(r.messages[0]["content"], much) << "the model reads it";
  EXPECT_EQ(r.tools[0]["function"]["description"], much);
}

TEST(ResponseRequest, ReadsForms) {
  using Kind = FormatRequest::Kind;
  const auto format = [](const std::string& text) {
    return read(R"("input":"x","text":{"format":)" + text + "}").format;
  };
  EXPECT_EQ(format(R"({"type":"text"})").kind, Kind::text);
  EXPECT_EQ(format(R"({"type":"json_object"})").kind, Kind::json);
  const auto schema = format(
      R"({"type":"json_schema","name":"n","strict":true,)"
      R"("schema":{"type":"object"}})"
  );
  EXPECT_EQ(schema.kind, Kind::schema);
  EXPECT_TRUE(schema.strict);
  EXPECT_EQ(schema.schema["type"], "object");
}

TEST(ResponseRequest, WhatCannotBeIsNamed) {
  const std::pair<std::string, std::string> cases[] = {
      {R"("x":1)", "input"},
      {R"("input":5)", "input"},
      {R"("input":[])", "input"},
      {R"("input":[{"type":"reasoning","summary":[]}])", "input"},
      {R"("input":[{"type":"item_reference","id":"x"}])", "input[0].type"},
      {R"("input":[{"type":"web_search_call"}])", "input[0].type"},
      {R"("input":[{"role":"king","content":"x"}])", "input[0].role"},
      {R"("input":[{"role":"user","content":[{"type":"input_image"}]}])",
       "input[0].content[0].type"},
      {R"("input":[{"type":"function_call","name":"f","arguments":"{}"}])",
       "input[0].call_id"},
      {R"("input":"x","previous_response_id":"resp_1")",
       "previous_response_id"},
      {R"("input":"x","conversation":"c")", "conversation"},
      {R"("input":"x","background":true)", "background"},
      {R"("input":"x","prompt":{"id":"p"})", "prompt"},
      {R"("input":"x","tools":[{"type":"web_search"}])", "tools[0].type"},
      {R"("input":"x","tool_choice":"required")", "tool_choice"},
      {R"("input":"x","text":{"format":{"type":"xml"}})", "text.format.type"},
      {R"("input":"x","max_tokens":5)", "max_tokens"},
      {R"("input":"x","truncation":"never")", "truncation"},
      {R"("input":"x","reasoning":{"effort":"huge"})", "reasoning.effort"},
  };
  for (const auto& [more, param] : cases) {
    try {
      read(more);
      ADD_FAILURE() << "taken: " << more;
    } catch (const ApiError& e) {
      EXPECT_EQ(e.status(), 400);
      EXPECT_EQ(e.param(), param) << e.what();
    }
  }
}

std::string body(const std::string& more = {}) {
  return R"({"model":"base","input":"hello","temperature":0,)"
         R"("max_output_tokens":8)" +
         more + "}";
}

TEST(Responses, AnswersAsAChatDoes) {
  ServiceBench bench;
  const Json chat = json_of(bench.post(kChatPath, chat_body()));
  const Json answer = json_of(bench.post(kPath, body()));
  EXPECT_EQ(answer["object"], "response");
  EXPECT_TRUE(answer["id"].get<std::string>().starts_with("resp_"));
  const Json& item = answer["output"][0];
  EXPECT_EQ(item["type"], "message");
  EXPECT_EQ(item["role"], "assistant");
  EXPECT_EQ(
      item["content"][0]["text"], chat["choices"][0]["message"]["content"]
  );
  // Eight tokens were too few.
  EXPECT_EQ(answer["status"], "incomplete");
  EXPECT_EQ(answer["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(answer["usage"]["input_tokens"], 6);
  EXPECT_EQ(answer["usage"]["output_tokens"], 8);
  EXPECT_EQ(answer["usage"]["total_tokens"], 14);
  EXPECT_EQ(answer["store"], false);
  EXPECT_EQ(answer["max_output_tokens"], 8);
  EXPECT_EQ(answer["tool_choice"], "auto");
}

// The events of a stream; each has its type in both places and its number.
std::vector<Json> events_in(const std::string& answer) {
  std::vector<Json> out;
  for (const auto& text : events_of(answer)) {
    out.push_back(Json::parse(text));
    const Json& event = out.back();
    EXPECT_EQ(event["sequence_number"], out.size() - 1);
    const std::string line =
        "event: " + event["type"].get<std::string>() + "\ndata: " + text;
    EXPECT_NE(answer.find(line), answer.npos) << text;
  }
  return out;
}

std::vector<std::string> types_of(const std::vector<Json>& events) {
  std::vector<std::string> out;
  for (const Json& event : events) {
    const std::string type = event["type"];
    if (out.empty() || out.back() != type) out.push_back(type);
  }
  return out;
}

TEST(Responses, StreamsWhatItAnswersWhole) {
  ServiceBench bench;
  const Json whole = json_of(bench.post(kPath, body()));
  const auto events = events_in(bench.post(kPath, body(R"(,"stream":true)")));
  EXPECT_EQ(
      types_of(events),
      (std::vector<std::string>{
          "response.created", "response.in_progress",
          "response.output_item.added", "response.content_part.added",
          "response.output_text.delta", "response.output_text.done",
          "response.content_part.done", "response.output_item.done",
          "response.incomplete"
      })
  );
  std::string text;
  for (const Json& event : events) text += event.value("delta", "");
  EXPECT_EQ(text, whole["output"][0]["content"][0]["text"].get<std::string>());
  const Json& last = events.back()["response"];
  EXPECT_EQ(last["output"][0]["content"], whole["output"][0]["content"]);
  EXPECT_EQ(last["usage"]["total_tokens"], whole["usage"]["total_tokens"]);
  EXPECT_EQ(events[0]["response"]["status"], "in_progress");
  EXPECT_EQ(events[0]["response"]["id"], last["id"]);
}

TEST(Responses, LogProbabilitiesStandBesideTheText) {
  ServiceBench bench;
  const Json answer = json_of(bench.post(kPath, body(R"(,"top_logprobs":2)")));
  const Json& probs = answer["output"][0]["content"][0]["logprobs"];
  ASSERT_EQ(probs.size(), 8U);
  EXPECT_EQ(probs[0]["top_logprobs"].size(), 2U);
}

TEST(Responses, ErrorsAreAboutTheInput) {
  ServiceBench bench;
  const std::string answer = bench.post(
      kPath, R"({"model":"base","input":")" + std::string(300, 'a') + "\"}"
  );
  EXPECT_EQ(status_of(answer), 400);
  EXPECT_EQ(json_of(answer)["error"]["param"], "input");
  EXPECT_EQ(json_of(answer)["error"]["code"], "context_length_exceeded");
  EXPECT_EQ(status_of(bench.post(kPath, R"({"model":"x","input":"a"})")), 404);
}

TEST(Responses, AStreamThatFailsSaysSoInAnEvent) {
  BenchOptions options;
  options.runner.before_step = [](std::size_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  };
  options.service.timeout = std::chrono::milliseconds(100);
  ServiceBench bench(options);
  const auto events = events_in(bench.post(
      kPath, R"({"model":"base","input":"a","stream":true,"seed":1})"
  ));
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back()["type"], "error");
  EXPECT_EQ(events.back()["error"]["code"], "timeout");
  EXPECT_EQ(events.back()["code"], "timeout");
}

infer::ToolCallPiece begins(const char* name) {
  return {.begins = true, .name = name};
}

TEST(ResponseWriter, CallsAreItems) {
  ResponseWriter writer({.id = "resp_1", .created = 1, .echo = Json::object()});
  std::string all = writer.begin();
  all += writer.text("well", {});
  all += writer.piece(begins("f"), "c1");
  all += writer.piece({.arguments = "{\"a\":"}, "no");
  all += writer.piece({.arguments = "1}"}, "no");
  all += writer.piece({.ends = true}, "no");
  all += writer.piece(begins("g"), "c2");
  all += writer.end(true, {});
  const auto events = events_in(all);
  EXPECT_EQ(
      types_of(events),
      (std::vector<std::string>{
          "response.created", "response.in_progress",
          "response.output_item.added", "response.content_part.added",
          "response.output_text.delta", "response.output_text.done",
          "response.content_part.done", "response.output_item.done",
          "response.output_item.added",
          "response.function_call_arguments.delta",
          "response.function_call_arguments.done", "response.output_item.done",
          "response.output_item.added", "response.function_call_arguments.done",
          "response.output_item.done", "response.incomplete"
      })
  );
  const Json& output = writer.whole()["output"];
  ASSERT_EQ(output.size(), 3U);
  EXPECT_EQ(output[1]["type"], "function_call");
  EXPECT_EQ(output[1]["call_id"], "c1");
  EXPECT_EQ(output[1]["arguments"], "{\"a\":1}");
  EXPECT_EQ(output[1]["status"], "completed");
  EXPECT_EQ(output[2]["status"], "incomplete");
  EXPECT_EQ(events[9]["output_index"], 1);
  EXPECT_EQ(events[9]["item_id"], output[1]["id"]);
}

TEST(ResponseWriter, AnEmptyAnswerIsAMessage) {
  ResponseWriter writer({.id = "resp_1", .created = 1, .echo = Json::object()});
  writer.end(false, {});
  EXPECT_EQ(writer.whole()["status"], "completed");
  EXPECT_EQ(writer.whole()["output"][0]["content"][0]["text"], "");
}

}  // namespace
}  // namespace hearth::serve
