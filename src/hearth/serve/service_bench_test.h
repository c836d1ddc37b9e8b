#pragma once
// A whole server over a runner that is arithmetic, for tests: one base, one
// adapter, a tokenizer of 32 characters, a template.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "hearth/base/temp_folder_test.h"
#include "hearth/infer/engine/fake_runner_test.h"
#include "hearth/serve/http/test_client_test.h"
#include "hearth/serve/serving.h"

namespace hearth::serve {

// Ids 0 to 25 are a to z, 26 to 30 are . , ! ? and space, 31 ends a text.
inline std::shared_ptr<const text::Tokenizer> letters_tokenizer() {
  Json vocab = Json::object();
  const std::string letters = "abcdefghijklmnopqrstuvwxyz.,!? ";
  for (std::size_t i = 0; i < letters.size(); ++i) {
    vocab[letters.substr(i, 1)] = i;
  }
  vocab["<end>"] = 31;
  const Json file = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", Json::array(
                           {{{"id", 31},
                             {"content", "<end>"},
                             {"single_word", false},
                             {"lstrip", false},
                             {"rstrip", false},
                             {"normalized", false},
                             {"special", true}}}
                       )},
      {"normalizer", nullptr},
      {"pre_tokenizer", nullptr},
      {"post_processor", nullptr},
      {"decoder", {{"type", "Fuse"}}},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"vocab", vocab},
        {"merges", Json::array()}}}
  };
  return text::Tokenizer::from_json(to_json_line(file), "letters");
}

inline const char* const kPlainTemplate =
    "{% for m in messages %}{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}!{% endif %}";

inline text::ChatTemplates template_of(const std::string& source) {
  const TempFolder folder;
  return text::ChatTemplates::load(folder.write("chat.jinja", source));
}

struct BenchOptions {
  infer::FakeRunner::Options runner;
  infer::EngineOptions engine;
  ServiceOptions service;
  HttpServerOptions http;
  std::string chat_template = kPlainTemplate;  // empty: none
  SpecialText special = SpecialText::plain;
};

struct ServiceBench {
  explicit ServiceBench(BenchOptions o = {})
      : engine(
            std::make_shared<infer::Engine>(
                [r = o.runner] {
                  return std::make_unique<infer::FakeRunner>(r);
                },
                letters_tokenizer(),
                o.engine
            )
        ) {
    std::optional<text::ChatTemplates> templates;
    if (!o.chat_template.empty()) templates = template_of(o.chat_template);
    const auto shared = std::make_shared<const ServedText>(
        letters_tokenizer(), std::move(templates), std::vector<std::int32_t>{},
        o.special
    );
    o.service.workers = [this] {
      return server ? server->workers() : HttpServer::Workers{};
    };
    service = std::make_unique<Service>(
        o.service,
        std::vector<ServedModel>{
            {"base", engine, -1, shared, 7}, {"tuned", engine, 0, shared, 7}
        }
    );
    server = make_server(o.http, [this]() -> Service& { return *service; });
    server->start();
  }

  // The whole answer to one request.
  std::string raw(const std::string& request) {
    TestClient client(server->port());
    client.write(request);
    return client.read_all();
  }
  std::string post(
      std::string_view path,
      std::string_view body,
      std::string_view headers = {}
  ) {
    return raw(closing_request("POST", path, body, headers));
  }
  std::string get(std::string_view path, std::string_view headers = {}) {
    return raw(closing_request("GET", path, {}, headers));
  }

  std::shared_ptr<infer::Engine> engine;
  std::unique_ptr<Service> service;
  std::unique_ptr<HttpServer> server;
};

inline const char* const kChatPath = "/v1/chat/completions";
inline const char* const kTextPath = "/v1/completions";

inline std::string chat_body(const std::string& more = {}) {
  return R"({"model":"base","messages":[{"role":"user","content":"hello"}],)"
         R"("temperature":0,"max_tokens":8)" +
         more + "}";
}

inline int status_of(const std::string& answer) {
  return answer.size() > 12 ? std::stoi(answer.substr(9, 3)) : 0;
}
inline Json json_of(const std::string& answer) {
  return Json::parse(answer.substr(answer.find("\r\n\r\n") + 4));
}

// The events of a streamed answer whose chunks hold one or more of them.
inline std::vector<std::string> events_of(const std::string& answer) {
  std::vector<std::string> out;
  for (std::size_t at = 0; (at = answer.find("data: ", at)) != answer.npos;) {
    const auto end = answer.find("\n\n", at);
    out.push_back(answer.substr(at + 6, end - at - 6));
    at = end;
  }
  return out;
}

}  // namespace hearth::serve
