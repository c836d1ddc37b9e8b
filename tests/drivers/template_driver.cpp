// Renders templates for tools/check_templates.py: one JSON object per line in,
// one per line out, so that thousands of cases cost one process.
//   {"source", "variables"}                               a bare template
//   {"source", "messages", "tools", "options", "tokens"}  a chat
#include <cstdio>
#include <iostream>
#include <map>
#include <string>

#include "hearth/base/json.h"
#include "hearth/text/chat/chat.h"

namespace {

using hearth::Json;
using hearth::text::ChatOptions;
using hearth::text::ChatTemplate;
using hearth::text::Template;
using hearth::text::TemplateError;

// 2026-03-07 14:05:09, a Saturday; the script pins its oracle to the same.
std::tm fixed_now() {
  std::tm now{};
  now.tm_year = 126;
  now.tm_mon = 2;
  now.tm_mday = 7;
  now.tm_hour = 14;
  now.tm_min = 5;
  now.tm_sec = 9;
  now.tm_wday = 6;
  now.tm_yday = 65;
  return now;
}

Json bare(const Json& request) {
  const auto variables =
      hearth::text::jinja::Value::from_json(request["variables"]);
  const Template made(request["source"].get<std::string>());
  return {{"text", made.render(variables.dict(), fixed_now()).text}};
}

Json chat(const Json& request) {
  ChatOptions options;
  options.tools = request.value("tools", Json());
  options.documents = request.value("documents", Json());
  options.variables = request.value("variables", Json::object());
  options.add_generation_prompt = request.value("generation_prompt", false);
  options.continue_final_message = request.value("continue_final", false);
  options.now = fixed_now();
  static std::map<std::string, ChatTemplate> cache;
  const std::string source = request["source"].get<std::string>();
  const std::string key = source + request["tokens"].dump();
  auto found = cache.find(key);
  if (found == cache.end()) {
    found = cache.try_emplace(key, source, request["tokens"]).first;
  }
  Json answer;
  answer["text"] = found->second.render(request["messages"], options);
  if (request.value("spans", false)) {
    const auto rendering = found->second.render_for_training(
        request["messages"], options, hearth::text::TrainOn::kAllAssistant
    );
    Json turns = Json::array();
    for (const auto& turn : rendering.turns) {
      turns.push_back({turn.message, turn.span.begin, turn.span.end});
    }
    answer["turns"] = turns;
  }
  return answer;
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    Json answer;
    try {
      const Json request = Json::parse(line);
      answer = request.contains("messages") ? chat(request) : bare(request);
    } catch (const TemplateError& error) {
      answer = {
          {"error", error.message()},
          {"line", error.line()},
          {"column", error.column()},
          {"fault", static_cast<int>(error.fault())}
      };
    } catch (const std::exception& error) {
      answer = {{"error", error.what()}};
    }
    std::puts(answer.dump().c_str());
  }
}
