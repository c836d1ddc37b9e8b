// What the API refuses, and what it then says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hearth/serve/service_bench_test.h"

namespace hearth::serve {
namespace {

using std::chrono::milliseconds;

TEST(ServiceRefusals, ErrorsHaveOpenAisForm) {
  ServiceBench bench;
  const std::string answer = bench.post(kChatPath, chat_body(",\"wrong\":1"));
  EXPECT_EQ(status_of(answer), 400);
  const Json error = json_of(answer)["error"];
  EXPECT_EQ(error["type"], "invalid_request_error");
  EXPECT_EQ(error["param"], "wrong");
  EXPECT_EQ(status_of(bench.get("/nothing")), 404);
  EXPECT_EQ(status_of(bench.get("/../etc/passwd")), 404);
  EXPECT_EQ(status_of(bench.get("/v1/models/..%2f..%2fetc")), 404);
  const std::string wrong_method = bench.get(kChatPath);
  EXPECT_EQ(status_of(wrong_method), 405);
  EXPECT_NE(wrong_method.find("Allow: POST\r\n"), std::string::npos);
  EXPECT_EQ(status_of(bench.raw("nonsense\r\n\r\n")), 400);
  // All of them are counted.
  const std::string text = bench.get("/metrics");
  EXPECT_NE(
      text.find("answers_total{route=\"other\",status=\"400\"} 1\n"), text.npos
  ) << text;
}

TEST(ServiceRefusals, APromptThatDoesNotFitIsRefused) {
  ServiceBench bench;
  const std::string answer = bench.post(
      kTextPath, R"({"model":"base","prompt":")" + std::string(300, 'a') + "\"}"
  );
  EXPECT_EQ(status_of(answer), 400);
  EXPECT_EQ(json_of(answer)["error"]["code"], "context_length_exceeded");
  EXPECT_EQ(
      status_of(bench.post(kTextPath, R"({"model":"base","prompt":[99]})")), 400
  );
  EXPECT_EQ(
      status_of(bench.post(kTextPath, R"({"model":"base","prompt":""})")), 400
  );
}

TEST(ServiceRefusals, APromptAndItsAnswerFillTheContextTogether) {
  ServiceBench bench;  // a context of 256 tokens
  const auto ask = [&](std::size_t tokens, const char* more = "") {
    return bench.post(
        kTextPath, R"({"model":"base","max_tokens":5,"prompt":")" +
                       std::string(tokens, 'a') + "\"" + more + "}"
    );
  };
  const std::string last = ask(255);
  EXPECT_EQ(status_of(last), 200);
  EXPECT_EQ(json_of(last)["usage"]["completion_tokens"], 1);
  EXPECT_EQ(json_of(last)["usage"]["total_tokens"], 256);
  EXPECT_EQ(json_of(last)["choices"][0]["finish_reason"], "length");
  const auto says = [](const std::string& answer) {
    EXPECT_EQ(status_of(answer), 400);
    return json_of(answer)["error"]["message"].get<std::string>();
  };
  EXPECT_EQ(
      says(ask(256)),
      "the prompt has 256 tokens, which leaves no room for an answer in the "
      "256 tokens of this model's context"
  );
  EXPECT_EQ(
      says(ask(257)),
      "the prompt has 257 tokens, which is more than the 256 tokens of this "
      "model's context"
  );
}

TEST(ServiceRefusals, TextThatCannotFitIsRefusedBeforeItIsTokenised) {
  ServiceBench bench;
  // The longest of its tokens has five bytes, the context 256 tokens.
  const Json text = json_of(bench.post(
      kTextPath,
      R"({"model":"base","prompt":")" + std::string(2000, 'a') + "\"}"
  ))["error"];
  EXPECT_EQ(text["code"], "context_length_exceeded");
  EXPECT_EQ(text["param"], "prompt");
  EXPECT_NE(
      text["message"].get<std::string>().find("bytes"), std::string::npos
  );
  const Json chat = json_of(bench.post(
      kChatPath, R"({"model":"base","messages":[{"role":"user","content":")" +
                     std::string(2000, 'a') + "\"}]}"
  ))["error"];
  EXPECT_EQ(chat["code"], "context_length_exceeded");
  EXPECT_EQ(chat["param"], "messages");
}

TEST(ServiceRefusals, MessagesThatTheTemplateDropsAreNamed) {
  BenchOptions options;
  options.chat_template =
      "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}"
      "{% endif %}{% endfor %}";
  options.service.limits.strict = true;
  ServiceBench bench(options);
  const auto ask = [&](const std::string& messages) {
    return bench.post(
        kChatPath,
        R"({"model":"base","max_tokens":2,"messages":[)" + messages + "]}"
    );
  };
  const std::string user = R"({"role":"user","content":"x"})";
  EXPECT_EQ(status_of(ask(user)), 200);
  for (const char* role : {"system", "developer"}) {
    const std::string answer =
        ask(fmt::format(R"({{"role":"{}","content":"be brief"}},)", role) +
            user);
    EXPECT_EQ(status_of(answer), 400);
    EXPECT_EQ(json_of(answer)["error"]["param"], "messages[0].content");
  }
  const std::string tool =
      ask(user + R"(,{"role":"tool","tool_call_id":"1","content":"42"})");
  EXPECT_EQ(status_of(tool), 400);
  EXPECT_EQ(json_of(tool)["error"]["param"], "messages[1].content");
}

TEST(ServiceRefusals, ErrorsNameTheOptionAndNothingOfOurs) {
  ServiceBench bench;
  const auto error = [&](const char* path, const std::string& body) {
    const std::string answer = bench.post(path, body);
    EXPECT_EQ(status_of(answer), 400) << body;
    const Json out = json_of(answer)["error"];
    EXPECT_EQ(out["message"].get<std::string>().find('['), std::string::npos)
        << out["message"];
    return out["param"];
  };
  EXPECT_EQ(error(kTextPath, R"({"model":"base","prompt":[1,99]})"), "prompt");
  EXPECT_EQ(
      error(
          kTextPath, R"({"model":"base","prompt":"a","logit_bias":{"99":1}})"
      ),
      "logit_bias"
  );
  EXPECT_EQ(
      error(
          kTextPath,
          R"({"model":"base","prompt":")" + std::string(300, 'a') + "\"}"
      ),
      "prompt"
  );
  EXPECT_EQ(
      error(
          kChatPath,
          chat_body(
              R"(,"response_format":{"type":"json_schema","json_schema":)"
              R"({"name":"x","schema":{"type":"banana"}}})"
          )
      ),
      "response_format"
  );
}

TEST(ServiceRefusals, ATemplatesErrorDoesNotSayWhereItLies) {
  BenchOptions options;
  options.chat_template =
      "{{ raise_exception('turns must alternate') }}{{ messages }}";
  ServiceBench bench(options);
  const std::string answer = bench.post(kChatPath, chat_body());
  EXPECT_EQ(status_of(answer), 400);
  EXPECT_NE(answer.find("turns must alternate"), answer.npos);
  EXPECT_EQ(answer.find("jinja"), answer.npos) << answer;
}

TEST(ServiceRefusals, WhatTheTemplateDoesNotReadIsRefused) {
  BenchOptions options;
  options.service.limits.strict = true;
  ServiceBench bench(options);
  const auto param = [&](const std::string& messages, const char* more = "") {
    const std::string answer = bench.post(
        kChatPath, R"({"model":"base","max_tokens":2,"messages":[)" + messages +
                       "]" + more + "}"
    );
    const Json json = json_of(answer);
    return status_of(answer) == 200 ? Json("taken") : json["error"]["param"];
  };
  const std::string user = R"({"role":"user","content":"a"})";
  EXPECT_EQ(param(user), "taken");
  EXPECT_EQ(
      param(R"({"role":"user","content":"a","name":"bob"})"), "messages[].name"
  );
  EXPECT_EQ(
      param(
          R"({"role":"assistant","tool_calls":[{"id":"c","type":"function",)"
          R"("function":{"name":"f","arguments":"{}"}}]},)" +
          user
      ),
      "messages[].tool_calls"
  );
  EXPECT_EQ(
      param(
          R"({"role":"assistant","content":"b","reasoning_content":"c"},)" +
          user
      ),
      "messages[].reasoning_content"
  );
  EXPECT_EQ(
      param(user, R"(,"chat_template_kwargs":{"nonsense":1})"),
      "chat_template_kwargs.nonsense"
  );
  // These the template has without the client.
  for (const char* given :
       {"loop", "raise_exception", "bos_token", "eos_token", "range",
        "namespace", "add_generation_prompt", "strftime_now"}) {
    const std::string key(given);
    const std::string more =
        R"(,"chat_template_kwargs":{")" + key + R"(":"x"})";
    EXPECT_EQ(param(user, more.c_str()), "chat_template_kwargs." + key);
  }
  // Which call a result belongs to, only a few templates say.
  EXPECT_EQ(
      param(R"({"role":"tool","content":"a","tool_call_id":"c","name":"f"})"),
      "taken"
  );
  options.chat_template =
      "{% for m in messages %}{{ m.name }}{{ m.content }}{% endfor %}"
      "{% if polite %}please{% endif %}";
  ServiceBench reads(options);
  EXPECT_EQ(
      status_of(reads.post(
          kChatPath,
          R"({"model":"base","max_tokens":2,"messages":[{"role":"user",)"
          R"("content":"a","name":"bob"}],)"
          R"("chat_template_kwargs":{"polite":true}})"
      )),
      200
  );
}

TEST(ServiceRefusals, TheTextOfASpecialTokenIsTextUnlessAllowed) {
  const std::string body =
      R"({"model":"base","max_tokens":2,"messages":[{"role":"user",)"
      R"("content":"ab<end>cd<end>"}]})";
  const auto prompt_tokens = [&](SpecialText special) {
    BenchOptions options;
    options.chat_template =
        "{% for m in messages %}{{ m.content }}<end>{% endfor %}";
    options.special = special;
    ServiceBench bench(options);
    const std::string answer = bench.post(kChatPath, body);
    if (status_of(answer) != 200) return -status_of(answer);
    return json_of(answer)["usage"]["prompt_tokens"].get<int>();
  };
  // The tokenizer knows neither < nor >, so that "end" is left of them; the
  // last one is the template's own.
  EXPECT_EQ(prompt_tokens(SpecialText::plain), 4 + 2 * 3 + 1);
  EXPECT_EQ(prompt_tokens(SpecialText::allow), 4 + 2 + 1);
  EXPECT_EQ(prompt_tokens(SpecialText::refuse), -400);
}

TEST(ServiceRefusals, AModelWithoutTemplateSaysSo) {
  BenchOptions options;
  options.chat_template.clear();
  ServiceBench bench(options);
  const std::string answer = bench.post(kChatPath, chat_body());
  EXPECT_EQ(status_of(answer), 400);
  EXPECT_NE(answer.find("chat template"), std::string::npos);
  EXPECT_EQ(json_of(bench.get("/v1/models"))["data"][0]["chat"], false);
}

TEST(ServiceRefusals, MoreThanCanEverWaitIsNotWorthAnotherTry) {
  BenchOptions options;
  options.engine.max_batch = 1;
  options.engine.max_queue = 2;
  ServiceBench bench(options);
  const std::string answer = bench.post(
      kTextPath, R"({"model":"base","prompt":"a","n":4,"max_tokens":4})"
  );
  EXPECT_EQ(status_of(answer), 400);
  EXPECT_EQ(json_of(answer)["error"]["param"], "n");
  const std::string text = bench.get("/metrics");
  EXPECT_NE(text.find("hearth_requests_total 0\n"), text.npos);
  EXPECT_NE(text.find("hearth_sequences_total 0\n"), text.npos);
}

TEST(ServiceRefusals, AFullQueueIsA429AndNothingOfItRuns) {
  std::atomic<bool> open{false}, running{false};
  BenchOptions options;
  options.engine.max_batch = 1;
  options.engine.max_queue = 2;
  options.runner.before_step = [&](std::size_t) {
    running = true;
    while (!open) std::this_thread::sleep_for(milliseconds(1));
  };
  ServiceBench bench(options);
  TestClient first(bench.server->port());
  first.write(closing_request(
      "POST", kTextPath, R"({"model":"base","prompt":"a","max_tokens":4})"
  ));
  while (!running) std::this_thread::yield();
  // Three at once where two fit: none of them may stay.
  const std::string many = bench.post(
      kTextPath, R"({"model":"base","prompt":"a","n":3,"max_tokens":4})"
  );
  EXPECT_EQ(status_of(many), 429);
  EXPECT_NE(many.find("Retry-After: "), std::string::npos);
  EXPECT_EQ(json_of(many)["error"]["type"], "rate_limit_error");
  open = true;
  int status = 0;
  for (int i = 0; i < 500 && status != 200; ++i) {
    std::this_thread::sleep_for(milliseconds(2));
    status = status_of(
        bench.post(kTextPath, R"({"model":"base","prompt":"a","max_tokens":4})")
    );
  }
  EXPECT_EQ(status, 200);
  const std::string text = bench.get("/metrics");
  EXPECT_NE(text.find("hearth_requests_rejected_total 1\n"), text.npos);
  EXPECT_NE(text.find("hearth_sequences_total 2\n"), text.npos) << text;
}

TEST(ServiceRefusals, AnErrorIsShortWhateverTheRequestHas) {
  ServiceBench bench;
  const std::string name(1'000'000, 'x');
  const Json messages = Json::array({{{"role", "user"}, {"content", "hi"}}});
  const Json bodies[] = {
      {{"chat_template_kwargs", {{name, 1}}}},
      {{name, 1}},
      {{"response_format",
        {{"type", "json_schema"},
         {"json_schema",
          {{"name", "n"}, {"strict", true}, {"schema", {{name, 1}}}}}}}},
  };
  for (Json body : bodies) {
    body["model"] = "base";
    body["messages"] = messages;
    const std::string answer =
        bench.post("/v1/chat/completions", to_json_line(body));
    EXPECT_EQ(status_of(answer), 400);
    EXPECT_LT(answer.size(), 4'000U);
  }
}

}  // namespace
}  // namespace hearth::serve
