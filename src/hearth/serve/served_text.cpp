#include "hearth/serve/served_text.h"

#include <algorithm>
#include <exception>
#include <optional>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/serve/api/api_error.h"
#include "hearth/serve/api/message_turns.h"
#include "hearth/serve/api/tool_text.h"
#include "hearth/text/chat/prompt_ids.h"

namespace hearth::serve {
namespace {

std::size_t longest_token(const text::Tokenizer& tokenizer) {
  std::size_t longest = 1;
  const auto limit = static_cast<std::int32_t>(tokenizer.id_limit());
  for (std::int32_t id = 0; id < limit; ++id) {
    std::size_t size = tokenizer.token_bytes(id).size();
    if (size == 0) size = tokenizer.id_to_token(id).value_or("").size();
    longest = std::max(longest, size);
  }
  return longest;
}

// A template's error is about what the client sent; the path of the template's
// file is not told to the client.
template <class Body>
auto in_template(Body body) {
  try {
    return body();
  } catch (const EffortError&) {
    throw;
  } catch (const text::TemplateError& e) {
    throw ApiError(
        400,
        fmt::format(
            "the chat template says: {} (line {}, column {})", e.message(),
            e.line(), e.column()
        ),
        "messages"
    );
  } catch (const UsageError& e) {
    throw ApiError(400, plain_message(e.what()), "messages");
  }
}

// Something of a request that the template may pass over: what it is called,
// whether the template's code has its name, and the request without it.
struct Suspect {
  std::string name;
  bool mentioned;
  std::function<void(ChatRequest&)> leave_out;
};

bool any_message_has(const ChatRequest& request, const char* key) {
  return std::ranges::any_of(request.messages, [&](const Json& m) {
    return m.contains(key) && m["role"] != "tool";
  });
}

std::vector<Suspect> suspects_of(
    const ChatRequest& request,
    const text::ChatTemplate& chat
) {
  const auto mentions_one = [&](std::initializer_list<const char*> words) {
    return std::ranges::any_of(words, [&](const char* word) {
      return chat.mentions(word);
    });
  };
  std::vector<Suspect> out;
  for (const auto& [key, value] : request.template_variables.items()) {
    out.push_back(
        {"chat_template_kwargs." + key, chat.mentions(key),
         [key = key](ChatRequest& r) { r.template_variables.erase(key); }}
    );
  }
  const auto add_key = [&](const char* key, bool mentioned) {
    if (!any_message_has(request, key)) return;
    out.push_back(
        {fmt::format("messages[].{}", key), mentioned, [key](ChatRequest& r) {
           for (Json& m : r.messages) {
             if (m["role"] != "tool") m.erase(key);
           }
         }}
    );
  };
  add_key("tool_calls", chat.mentions("tool_calls"));
  // Many templates leave out names and earlier reasoning on purpose.
  if (!request.strict) return out;
  // Tools have names too, so that the word alone says nothing.
  add_key("name", false);
  add_key(
      "reasoning_content",
      mentions_one({"reasoning_content", "thinking", "reasoning"})
  );
  return out;
}

text::ChatOptions options_of(
    const ChatRequest& request,
    const text::ChatTemplate& chat
) {
  const bool tools = request.tool_choice != ToolChoice::none;
  text::ChatOptions out;
  out.add_generation_prompt = !request.continue_final_message;
  out.continue_final_message = request.continue_final_message;
  if (tools) {
    out.tools = request.tools;
  } else if (request.empty_tools) {
    out.tools = Json::array();
  }
  out.variables = request.template_variables;
  out.effort = request.effort;
  if (!request.reasoning_effort.empty() && chat.mentions("reasoning_effort") &&
      !out.variables.contains("reasoning_effort")) {
    out.variables["reasoning_effort"] = request.reasoning_effort;
  }
  return out;
}

std::string rendered(
    const ChatRequest& request,
    const text::ChatTemplate& chat
) {
  return chat.render(request.messages, options_of(request, chat));
}

[[noreturn]] void refuse_unread(const std::string& name) {
  throw ApiError(
      400,
      fmt::format("'{}' is not read by the chat template of this model", name),
      name, "unsupported_parameter"
  );
}

// What the template is given anyway is no client's to say.
void check_variables(
    const ChatRequest& request,
    const text::ChatTemplate& chat
) {
  for (const auto& [key, value] : request.template_variables.items()) {
    if (!chat.gives_itself(key)) continue;
    const std::string name = "chat_template_kwargs." + key;
    throw ApiError(
        400,
        fmt::format("'{}' is given to the chat template by the server", name),
        name, "unsupported_parameter"
    );
  }
}

// Something whose removal leaves the rendered text unchanged would never have
// reached the model.
void check_all_is_read(
    const ChatRequest& request,
    const text::ChatTemplate& chat,
    const std::string& text
) {
  for (const Suspect& suspect : suspects_of(request, chat)) {
    if (suspect.mentioned) continue;
    ChatRequest without = request;
    suspect.leave_out(without);
    if (rendered(without, chat) == text) refuse_unread(suspect.name);
  }
  try {
    text::check_messages_are_read(
        chat, request.messages, options_of(request, chat), text
    );
  } catch (const text::UnreadMessage& e) {
    refuse_unread(fmt::format("messages[{}].content", e.index()));
  }
}

// The rendered text of a request whose parts were all read.
std::string read_text(
    const ChatRequest& request,
    const text::ChatTemplate& chat
) {
  check_variables(request, chat);
  return in_template([&] {
    std::string text = rendered(request, chat);
    check_all_is_read(request, chat, text);
    return text;
  });
}

// Ways to put a chat, the client's own first: others are tried where a template
// cannot say that one.
struct Way {
  TurnForm form;
  bool calls_as_text;
};

std::vector<Way> all_ways() {
  using enum TurnForm;
  std::vector<Way> out;
  for (const TurnForm form : {own, joined, one_system, no_system, user_first}) {
    for (const bool calls_as_text : {false, true}) {
      out.push_back({form, calls_as_text});
    }
  }
  return out;
}

// What some templates take for granted: a list of tools, and of each what it
// does and takes.
void fill_tools(ChatRequest& request) {
  request.empty_tools = true;
  if (!request.tools.is_array()) return;
  for (Json& tool : request.tools) {
    Json& function = tool["function"];
    if (!function.contains("description")) function["description"] = "";
    if (!function.contains("parameters")) {
      function["parameters"] = {
          {"type", "object"}, {"properties", Json::object()}
      };
    }
  }
}

// Nothing where this way changes no more than the one before it did.
std::optional<ChatRequest> put(const ChatRequest& request, const Way& way) {
  // Each way goes through all messages.
  if (request.effort != nullptr) request.effort->spend(request.messages.size());
  ChatRequest out = request;
  if (way.calls_as_text && !write_calls_as_text(out.messages)) return {};
  if (way.form == TurnForm::own) return out;
  const auto before = static_cast<TurnForm>(static_cast<int>(way.form) - 1);
  Json made = in_turns(out.messages, way.form);
  if (made == in_turns(out.messages, before)) return {};
  out.messages = std::move(made);
  return out;
}

}  // namespace

ServedText::ServedText(
    std::shared_ptr<const text::Tokenizer> tokenizer,
    std::optional<text::ChatTemplates> templates,
    std::vector<std::int32_t> stop_ids,
    SpecialText special
)
    : tokenizer_(std::move(tokenizer)),
      templates_(std::move(templates)),
      stop_ids_(std::move(stop_ids)),
      special_(special),
      marks_(*tokenizer_),
      longest_token_(longest_token(*tokenizer_)) {}

infer::ToolForm ServedText::tool_form() const {
  if (!templates_) return infer::ToolForm::none;
  return infer::tool_form_of(templates_->choose(true).source());
}

void ServedText::check_size(
    const std::string& text,
    int most_tokens,
    const std::string& param
) const {
  const std::size_t most =
      static_cast<std::size_t>(most_tokens) * longest_token_;
  if (text.size() <= most) return;
  throw ApiError(
      400,
      fmt::format(
          "the prompt has {} bytes, but the {} tokens of this model's context "
          "hold at most {}",
          text.size(), most_tokens, most
      ),
      param, "context_length_exceeded"
  );
}

// Text in which special texts were marked. That none of them became a token is
// seen by counting: those of the template are there with the marks, too.
TokenIds ServedText::encoded(
    std::string text,
    const std::string& mark,
    int most_tokens
) const {
  check_size(text, most_tokens, "messages");
  text::EncodeOptions options{.add_special = false};
  if (mark.empty()) return tokenizer_->encode(text, options);
  const auto specials = [&](const TokenIds& ids) {
    return std::ranges::count_if(ids, [&](std::int32_t id) {
      return tokenizer_->is_special(id);
    });
  };
  const auto own = specials(tokenizer_->encode(text, options));
  const auto plain_at = take_marks(text, mark);
  options.plain_at = plain_at;
  TokenIds ids = tokenizer_->encode(text, options);
  if (specials(ids) == own) return ids;
  throw ApiError(
      400,
      "'messages' hold the text of a special token, which this tokenizer "
      "cannot take for text",
      "messages"
  );
}

TokenIds ServedText::chat_ids(
    const ChatRequest& request,
    int most_tokens
) const {
  if (!templates_) {
    throw ApiError(
        400,
        "this model has no chat template: use /v1/completions, or start the "
        "server with --chat-template",
        "messages"
    );
  }
  ChatRequest marked = request;
  std::string mark;
  if (special_ != SpecialText::allow) {
    mark = marks_.mark(
        {&marked.messages, &marked.tools, &marked.template_variables}
    );
  }
  if (special_ == SpecialText::refuse && !mark.empty()) {
    throw ApiError(
        400, "the text of a special token must not stand in a message",
        "messages"
    );
  }
  return encoded(chat_text(marked), mark, most_tokens);
}

std::string ServedText::chat_text(const ChatRequest& request) const {
  ChatRequest asked = request;
  const bool tools = request.tool_choice != ToolChoice::none;
  const bool own = tool_form() != infer::ToolForm::none;
  if (tools && !own && !request.strict) {
    add_tools_as_text(asked.messages, asked.tools);
    write_calls_as_text(asked.messages);
    asked.tool_choice = ToolChoice::none;
  }
  const text::ChatTemplate* chat =
      in_template([&] { return &templates_->choose(tools && own); });
  std::exception_ptr first;
  for (const bool filled : {false, true}) {
    if (filled) fill_tools(asked);
    for (const Way& way : all_ways()) {
      const auto put_so = put(asked, way);
      if (!put_so) continue;
      try {
        return read_text(*put_so, *chat);
      } catch (const ApiError&) {
        // The first way's error is about what the client sent.
        if (!first) first = std::current_exception();
      }
      if (request.strict) std::rethrow_exception(first);
    }
  }
  std::rethrow_exception(first);
}

TokenIds ServedText::raw_ids(const std::string& prompt, int most_tokens) const {
  check_size(prompt, most_tokens, "prompt");
  return text::raw_ids(*tokenizer_, prompt);
}

TokenIds ServedText::whole_ids(
    const std::string& text,
    int most_tokens,
    const std::string& where
) const {
  check_size(text, most_tokens, where);
  return tokenizer_->encode(text);
}

}  // namespace hearth::serve
