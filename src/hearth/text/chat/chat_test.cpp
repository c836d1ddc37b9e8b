#include "hearth/text/chat/chat.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/base/temp_folder_test.h"

namespace hearth::text {
namespace {

namespace fs = std::filesystem;

std::tm fixed_now() {
  std::tm now{};
  now.tm_year = 126, now.tm_mon = 2, now.tm_mday = 7;
  now.tm_hour = 14, now.tm_min = 5, now.tm_sec = 9;
  now.tm_wday = 6, now.tm_yday = 65;
  return now;
}

fs::path shared_data() {
  const char* given = std::getenv("HEARTH_SHARED_DIR");
  return fs::path(given ? given : HEARTH_SOURCE_DIR "/../shared") / "data";
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string digest(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325ull;
  for (const char c : text) {
    value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  }
  char out[17];
  std::snprintf(
      out, sizeof out, "%016llx", static_cast<unsigned long long>(value)
  );
  return out;
}

// The template's text, from next door; empty when it is not there.
std::string template_source(const std::string& name) {
  const std::string folder = "tokenizer ";
  if (!name.starts_with(folder)) {
    return read(shared_data() / "fixtures/templates" / (name + ".jinja"));
  }
  const fs::path path =
      shared_data() / "tokenizers" / name.substr(folder.size());
  if (fs::exists(path / "chat_template.jinja")) {
    return read(path / "chat_template.jinja");
  }
  const std::string config = read(path / "tokenizer_config.json");
  if (config.empty()) return {};
  return Json::parse(config)["chat_template"].get<std::string>();
}

std::string answer(
    const ChatTemplate& made,
    const Json& messages,
    const ChatOptions& options
) {
  try {
    return made.render(messages, options);
  } catch (const TemplateError& error) {
    // Python stops such a template by its own limit.
    if (error.fault() == TemplateFault::kLimit) return "error: recursion";
    return "error: " + error.message();
  }
}

// Digests of what transformers answers, made by tools/check_templates.py.
TEST(Chat, AgreesWithTransformersOnRealTemplates) {
  const Json chats =
      Json::parse(read(HEARTH_SOURCE_DIR "/tests/golden/chats.json"));
  std::ifstream file(HEARTH_SOURCE_DIR "/tests/golden/chat_answers.jsonl");
  ASSERT_TRUE(file);
  std::string line;
  int checked = 0;
  while (std::getline(file, line)) {
    const Json golden = Json::parse(line);
    const std::string name = golden["template"];
    const std::string source = template_source(name);
    if (source.empty() || golden["source"].get<std::string>() != digest(source))
      continue;
    const ChatTemplate made(source, golden["tokens"]);
    std::size_t at = 0;
    for (const auto& [chat, messages] : chats["conversations"].items()) {
      for (const char* tools : {"none", "many"}) {
        for (const bool prompt : {false, true}) {
          ChatOptions options;
          options.tools = chats["tools"][tools];
          options.add_generation_prompt = prompt;
          options.now = fixed_now();
          EXPECT_EQ(
              digest(answer(made, messages, options)),
              golden["answers"][at++].get<std::string>()
          ) << name
            << ", " << chat << ", tools " << tools;
          ++checked;
        }
      }
    }
    EXPECT_EQ(at, golden["answers"].size());
  }
  if (checked == 0) GTEST_SKIP() << "no templates in " << shared_data();
  EXPECT_GT(checked, 2000);
}

const char* kChatMl =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

Json dialogue() {
  return Json::parse(R"([
    {"role": "system", "content": "S"},
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": "first"},
    {"role": "user", "content": "two"},
    {"role": "assistant", "content": "second"}])");
}

std::vector<std::string> learned(
    const ChatTemplate& made,
    const Json& messages,
    TrainOn train_on = TrainOn::kAllAssistant,
    ChatOptions options = {}
) {
  options.now = fixed_now();
  const auto rendering = made.render_for_training(messages, options, train_on);
  std::vector<std::string> parts;
  for (const ChatTurn& turn : rendering.turns) {
    parts.push_back(
        rendering.text.substr(turn.span.begin, turn.span.end - turn.span.begin)
    );
  }
  return parts;
}

using Parts = std::vector<std::string>;

TEST(Chat, LearnsAssistantTurnsWithTheirEndMark) {
  const ChatTemplate made(kChatMl);
  EXPECT_EQ(
      learned(made, dialogue()),
      (Parts{"first<|im_end|>\n", "second<|im_end|>\n"})
  );
  EXPECT_EQ(
      learned(made, dialogue(), TrainOn::kLastAssistant),
      Parts{"second<|im_end|>\n"}
  );
}

TEST(Chat, TrainFalseLeavesATurnOutAndIsNotShownToTheTemplate) {
  Json messages = dialogue();
  messages[2]["train"] = false;
  EXPECT_EQ(
      learned(ChatTemplate(kChatMl), messages), Parts{"second<|im_end|>\n"}
  );
  messages[4]["train"] = false;
  EXPECT_TRUE(
      learned(ChatTemplate(kChatMl), messages, TrainOn::kLastAssistant).empty()
  );
  const ChatTemplate shows("{{ messages }}");
  EXPECT_EQ(shows.render(messages, {}).find("train"), std::string::npos);
  messages[2]["train"] = "no";
  EXPECT_THROW(learned(ChatTemplate(kChatMl), messages), FormatError);
}

TEST(Chat, FindsTurnsThatAreWrittenDifferentlyOnceOthersFollow) {
  // The last turn gets a thought, earlier ones lose it, and the end of the
  // conversation has a mark of its own.
  const ChatTemplate made(
      "{% for m in messages %}<|{{ m.role }}|>"
      "{% if m.role == 'assistant' and loop.last %}<think></think>{% endif %}"
      "{{ m.content.split('</think>')[-1] }}<|end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|assistant|>{% else %}<|eos|>{% endif %}"
  );
  Json messages = dialogue();
  messages[2]["content"] = "<think>hm</think>first";
  // The next turn starts with "<|" as the final mark does; it is not learned.
  EXPECT_EQ(
      learned(made, messages),
      (Parts{"first<|end|>\n", "<think></think>second<|end|>\n<|eos|>"})
  );
}

TEST(Chat, FindsThoughtsThatAreAlwaysWritten) {
  const ChatTemplate made(
      "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}"
      "{% set parts = m.content.split('</think>') %}<think>"
      "{{ parts[0].split('<think>')[-1] if parts|length > 1 }}</think>"
      "{{ parts[-1] }}{% else %}{{ m.content }}{% endif %}</s>{% endfor %}"
      "{% if add_generation_prompt %}<assistant><think></think>{% endif %}"
  );
  Json messages = dialogue();
  messages[2]["content"] = "<think>\nhm</think>first";
  EXPECT_EQ(
      learned(made, messages), (Parts{"hm</think>first</s>", "second</s>"})
  );
}

TEST(Chat, FindsToolCalls) {
  const ChatTemplate made(
      "{% for m in messages %}[{{ m.role }}]{% if m.tool_calls %}"
      "{% for c in m.tool_calls %}{{ c.function|tojson }}{% endfor %}"
      "{% else %}{{ m.content }}{% endif %}</s>{% if loop.last %}!{% endif %}"
      "{% endfor %}"
  );
  const Json messages = Json::parse(R"([
    {"role": "user", "content": "x"},
    {"role": "assistant", "content": "", "tool_calls":
      [{"function": {"name": "f", "arguments": {"a": 1}}}]},
    {"role": "tool", "content": "9"},
    {"role": "assistant", "content": "nine"}])");
  EXPECT_EQ(
      learned(made, messages),
      (Parts{"{\"name\": \"f\", \"arguments\": {\"a\": 1}}</s>", "nine</s>!"})
  );
}

TEST(Chat, GenerationBlocksDecideWhereThereAreAny) {
  const ChatTemplate made(
      "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}"
      "{% generation %}{{ m.content }}{% endgeneration %}<e>"
      "{% else %}{{ m.content }}{% endif %}{% endfor %}"
  );
  EXPECT_EQ(learned(made, dialogue()), (Parts{"first", "second"}));
  EXPECT_EQ(
      learned(made, dialogue(), TrainOn::kLastAssistant), Parts{"second"}
  );
}

TEST(Chat, SaysSoWhenATurnCannotBeFound) {
  const ChatTemplate made(
      "{{ messages|map(attribute='content')|join|length }}"
  );
  try {
    learned(made, dialogue());
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_NE(std::string(error.what()).find("message 2"), std::string::npos);
    EXPECT_NE(error.hint().find("generation"), std::string::npos);
  }
}

// On real templates: what is learned contains the answer, starts after the
// header and ends before the next turn.
TEST(Chat, LearnsTheRightBytesOfRealTemplates) {
  Json messages = dialogue();
  messages.erase(0);
  messages.push_back({{"role", "user"}, {"content", "three"}});
  messages.push_back({{"role", "assistant"}, {"content", "third"}});
  int checked = 0;
  const fs::path folder = shared_data() / "fixtures/templates";
  if (!fs::exists(folder)) GTEST_SKIP() << "no templates in " << folder;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const ChatTemplate made(
        read(entry.path()), {{"bos_token", "<s>"}, {"eos_token", "</s>"}}
    );
    SCOPED_TRACE(entry.path().filename());
    ChatOptions options;
    if (entry.path().filename().string().find("tool_use") !=
        std::string::npos) {
      options.tools = Json::array();
    }
    const Parts parts =
        learned(made, messages, TrainOn::kAllAssistant, options);
    ASSERT_EQ(parts.size(), 3u);
    const char* wanted[] = {"first", "second", "third"};
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t at = parts[i].find(wanted[i]);
      ASSERT_NE(at, std::string::npos) << parts[i];
      // Nothing before the answer but an empty thought.
      EXPECT_TRUE(at == 0 || parts[i].starts_with("<think>")) << parts[i];
      const std::string end =
          parts[i].substr(at + std::string(wanted[i]).size());
      EXPECT_FALSE(end.empty()) << parts[i];
      for (const char* other : {"two", "three", "user", "User", "INST"}) {
        EXPECT_EQ(end.find(other), std::string::npos) << parts[i];
      }
    }
    ++checked;
  }
  EXPECT_EQ(checked, 10);
}

TEST(Chat, EndsInsideAMessageThatGoesOn) {
  const Json chat = Json::array(
      {{{"role", "user"}, {"content", "Count."}},
       {{"role", "assistant"}, {"content", "One,  "}}}
  );
  const ChatOptions options{.continue_final_message = true};
  const char* const kLoop =
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}[/]{% endfor %}";
  EXPECT_EQ(
      ChatTemplate(kLoop).render(chat, options),
      "[user]Count.[/][assistant]One,  "
  );
  const ChatTemplate trims(
      "{% for m in messages %}<{{ m.content | trim }}>{% endfor %}"
  );
  EXPECT_EQ(trims.render(chat, options), "<Count.><One,");
  Json parts = chat;
  parts[1]["content"] = Json::array(
      {{{"type", "text"}, {"text", "a"}}, {{"type", "text"}, {"text", "b "}}}
  );
  const ChatTemplate blocks(
      "{% for b in messages[1].content %}({{ b.text }}){% endfor %}."
  );
  EXPECT_EQ(blocks.render(parts, options), "(a)(b ");
  EXPECT_THROW(ChatTemplate("nothing").render(chat, options), FormatError);
  Json empty = chat;
  empty[1].erase("content");
  EXPECT_THROW(ChatTemplate(kLoop).render(empty, options), UsageError);
  ChatOptions both = options;
  both.add_generation_prompt = true;
  EXPECT_THROW(ChatTemplate(kLoop).render(chat, both), UsageError);
}

TEST(Chat, MaskCoversTokensThatStartInATurn) {
  const std::vector<TextSpan> tokens = {
      {0, 3}, {3, 5}, {5, 8}, {8, 9}, {9, 12}
  };
  const std::vector<ChatTurn> turns = {{{3, 8}, 1}, {{9, 10}, 3}};
  EXPECT_EQ(
      loss_mask(tokens, turns), (std::vector<std::uint8_t>{0, 1, 1, 0, 1})
  );
  EXPECT_EQ(loss_mask(tokens, {}), std::vector<std::uint8_t>(5, 0));
}

TEST(Chat, RefusesWhatIsNotAConversation) {
  const ChatTemplate made(kChatMl);
  EXPECT_THROW(made.render(Json::array(), {}), UsageError);
  EXPECT_THROW(made.render(Json("hi"), {}), FormatError);
  EXPECT_THROW(made.render(Json::parse(R"([1])"), {}), FormatError);
  ChatOptions options;
  options.tools = Json::parse(R"({"a": 1})");
  EXPECT_THROW(made.render(dialogue(), options), FormatError);
  options.tools = nullptr;
  options.variables["messages"] = 1;
  EXPECT_THROW(made.render(dialogue(), options), UsageError);
  Json big = dialogue();
  big[0]["content"] = 18446744073709551615ull;
  EXPECT_THROW(made.render(big, {}), FormatError);
}

TEST(ChatTemplates, LoadsFoldersFilesAndNamedTemplates) {
  const TempFolder temp;
  const fs::path folder = temp / "model";
  fs::create_directories(folder);
  std::ofstream(folder / "tokenizer_config.json")
      << R"({"bos_token": {"content": "<b>"}, "eos_token": "<e>",
             "add_bos_token": true, "pad_token": null, "chat_template": [
             {"name": "default", "template": "D{{ bos_token }}{{ pad_token }}"},
             {"name": "tool_use", "template": "T{{ eos_token }}"}]})";
  auto loaded = ChatTemplates::load(folder.string());
  EXPECT_EQ(loaded.choose(false).render(dialogue(), {}), "D<b>");
  EXPECT_EQ(loaded.choose(true).render(dialogue(), {}), "T<e>");
  EXPECT_EQ(loaded.choose(true, "default").render(dialogue(), {}), "D<b>");
  EXPECT_THROW(loaded.choose(false, "none"), UsageError);
  std::ofstream(folder / "chat_template.jinja") << "J{{ eos_token }}\n";
  loaded = ChatTemplates::load((folder / "tokenizer_config.json").string());
  EXPECT_EQ(loaded.choose(false).render(dialogue(), {}), "J<e>");
  const auto single =
      ChatTemplates::load((folder / "chat_template.jinja").string());
  EXPECT_EQ(single.choose(true).render(dialogue(), {}), "J<e>");
  // A template from elsewhere, with this model's tokens.
  const fs::path own = temp / "own.jinja";
  std::ofstream(own) << "O{{ bos_token }}{{ eos_token }}";
  const auto rendered = [&](const std::string& tokens_from) {
    return ChatTemplates::load(own.string(), {}, tokens_from)
        .choose(false)
        .render(dialogue(), {});
  };
  EXPECT_EQ(rendered({}), "O");
  EXPECT_EQ(rendered(folder.string()), "O<b><e>");
  EXPECT_EQ(rendered((folder / "tokenizer_config.json").string()), "O<b><e>");
  EXPECT_THROW(ChatTemplates::load(TempFolder().path()), FormatError);
}

// A GGUF file of metadata alone, written by hand from the format's description.
class GgufWriter {
 public:
  void text(const std::string& key, const std::string& value) {
    begin(key, 8);
    put(value);
  }
  void number(const std::string& key, std::uint32_t value) {
    begin(key, 4);
    raw(value);
  }
  void texts(const std::string& key, const std::vector<std::string>& values) {
    begin(key, 9);
    raw(std::uint32_t{8});
    raw(std::uint64_t{values.size()});
    for (const auto& v : values) put(v);
  }
  void write(const fs::path& path) {
    const std::string pairs = std::exchange(out_, "GGUF");
    raw(std::uint32_t{3});
    raw(std::uint64_t{0});
    raw(count_);
    std::ofstream(path, std::ios::binary) << out_ << pairs;
  }

 private:
  std::string out_;
  std::uint64_t count_ = 0;

  template <class T>
  void raw(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put(const std::string& value) {
    raw(std::uint64_t{value.size()});
    out_ += value;
  }
  void begin(const std::string& key, std::uint32_t type) {
    put(key);
    raw(type);
    ++count_;
  }
};

TEST(ChatTemplates, AreReadFromGgufMetadata) {
  const TempFolder temp;
  const fs::path file = temp / "model.gguf";
  GgufWriter gguf;
  gguf.texts("tokenizer.ggml.tokens", {"<b>", "<e>", "x"});
  gguf.number("tokenizer.ggml.bos_token_id", 0);
  gguf.number("tokenizer.ggml.eos_token_id", 1);
  gguf.text("tokenizer.chat_template", "D{{ bos_token }}{{ eos_token }}");
  gguf.text("tokenizer.chat_template.tool_use", "T{{ eos_token }}");
  gguf.write(file);
  const auto loaded = ChatTemplates::load(file.string());
  EXPECT_EQ(loaded.choose(false).render(dialogue(), {}), "D<b><e>");
  EXPECT_EQ(loaded.choose(true).render(dialogue(), {}), "T<e>");
  GgufWriter none;
  none.texts("tokenizer.ggml.tokens", {"<b>"});
  none.write(file);
  EXPECT_FALSE(ChatTemplates::find(file.string()));
  EXPECT_THROW(ChatTemplates::load(file.string()), FormatError);
}

// Expected text by jinja2 with transformers' settings.
TEST(ChatTemplates, LoadsFromGgufMetadata) {
  const fs::path file =
      shared_data() / "fixtures/gguf-vocab/ggml-vocab-phi-3.gguf";
  if (!fs::exists(file)) GTEST_SKIP() << file << " is not here";
  const Json messages = {
      {{"role", "user"}, {"content", "Hi"}},
      {{"role", "assistant"}, {"content", "Yo"}}
  };
  const auto loaded = ChatTemplates::load(file.string());
  EXPECT_EQ(
      loaded.choose(false).render(messages, {}),
      "<s><|user|>\nHi<|end|>\n<|assistant|>\nYo<|end|>\n"
  );
}

}  // namespace
}  // namespace hearth::text
