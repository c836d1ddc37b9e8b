// hearth chat: a conversation with a model, turn by turn.
#include <cstdio>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/terminal.h"
#include "hearth/cli/answer_stream.h"
#include "hearth/cli/chat_history.h"
#include "hearth/cli/chat_input.h"
#include "hearth/cli/engine_flags.h"

namespace hearth::cli {
namespace {

constexpr const char* kHelp =
    "/system TEXT  what the model is told first; without TEXT, shows it\n"
    "/clear        forget the conversation\n"
    "/save FILE    keep it as JSON\n"
    "/load FILE    go on with a kept one\n"
    "/help         this\n"
    "/quit         leave, as Ctrl-D does\n"
    "A \\ at the end of a line goes on in the next. Ctrl-C stops an answer.\n";

struct ChatFlags {
  ModelFlags model;
  SamplingFlags sampling;
  GrammarFlags grammar;
  EngineFlags engine;
  std::optional<std::string> system, load;
  bool raw = false;
};

void declare(Args& args, ChatFlags& f) {
  f.model.declare(args);
  args.option("--system", f.system, "What the model is told first");
  args.option("--load", f.load, "Go on with a conversation that /save kept");
  args.flag("--raw", f.raw, "No chat template: both continue one text");
  f.sampling.max_tokens = 1024, f.sampling.temperature = 0.7;
  f.sampling.declare(args);
  f.grammar.declare(args);
  f.engine.declare(args);
  args.example("hearth chat model/", "talk; /help lists the commands");
  args.example(
      "hearth chat model.gguf --system 'Answer in one sentence.' --temp 0",
      "with a system message, the most likely answers"
  );
  args.example(
      "printf 'Hello\\nAnd you?\\n' | hearth chat model/ --quiet",
      "two turns from a script, answers on stdout"
  );
}

class Chat {
 public:
  Chat(const Context& context, const ChatFlags& flags, ModelEngine& live)
      : context_(context),
        live_(live),
        request_(flags.sampling.request(context)),
        history_(live.model, flags.raw) {
    request_.stop_ids = live.model.stop_ids;
    request_.grammar = flags.grammar.grammar();
    request_.continues_prompt = history_.raw();
    if (flags.system) history_.set_system(*flags.system);
    if (flags.load) load(*flags.load);
  }

  void run();

 private:
  const Context& context_;
  ModelEngine& live_;
  infer::Request request_;
  ChatHistory history_;
  ChatInput input_;
  std::set<std::string> files_;  // that hold this conversation
  std::size_t left_out_ = 0;

  void greet() const;
  bool command(const std::string& line);
  void answer(const std::string& text);
  void after(const Answer& made) const;
  void save(const std::string& file);
  void load(const std::string& file);
  void show(std::string_view text) const {
    if (context_.common.json) return;
    context_.print(text);
    std::fflush(stdout);
  }
};

void Chat::greet() const {
  if (history_.raw()) {
    context_.note(
        "no chat template is used: what you type is continued as it is"
    );
  }
  if (ChatInput::is_terminal()) {
    context_.note("/help lists the commands, Ctrl-D leaves");
  }
}

void Chat::save(const std::string& file) {
  if (std::filesystem::exists(file) && !files_.contains(file)) {
    throw UsageError(file + " is there already: choose another name");
  }
  write_file_atomically(file, to_json_text(history_.save()) + "\n");
  files_.insert(file);
  context_.note(fmt::format("{} messages are in {}", history_.turns(), file));
}

void Chat::load(const std::string& file) {
  history_.load(read_json(file, "conversation"), file);
  files_.insert(file);
  left_out_ = 0;
  context_.note(fmt::format("{} messages from {}", history_.turns(), file));
}

// False when the conversation is over.
bool Chat::command(const std::string& line) {
  const auto space = line.find(' ');
  const std::string name = line.substr(0, space);
  std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
  rest.erase(0, rest.find_first_not_of(' '));
  if (name == "/quit" || name == "/exit") return false;
  if (name == "/help") {
    show(kHelp);
  } else if (name == "/clear") {
    history_.clear();
    left_out_ = 0;
    context_.note("the conversation is forgotten");
  } else if (name == "/system") {
    if (!rest.empty()) history_.set_system(rest);
    context_.note(
        history_.system().empty() ? "there is no system message"
                                  : "system: " + history_.system()
    );
  } else if (name == "/save" || name == "/load") {
    if (rest.empty()) throw UsageError(name + " needs a file");
    name == "/save" ? save(rest) : load(rest);
  } else {
    throw UsageError(name + " is no command: /help lists them");
  }
  return true;
}

void Chat::after(const Answer& made) const {
  const bool cut = made.finish == infer::Finish::cancelled;
  std::string line = fmt::format(
      "{} tokens, {:.1f} tokens/s, {} of {} prompt tokens were kept",
      made.tokens.size(), made.tokens_per_s, made.cached_tokens,
      made.prompt_tokens
  );
  if (cut) line = "stopped after " + line;
  if (made.finish == infer::Finish::length) {
    line += "; ended by length (--max-tokens, or the context is full)";
  }
  context_.note(line);
}

void Chat::answer(const std::string& text) {
  // A turn wants room for an answer, but a short context is used to its end.
  const int limit = live_.engine->limit();
  const int room = std::min(request_.max_tokens, std::max(limit / 4, 1));
  const auto prompt = history_.prompt_for(text, limit, room);
  if (prompt.left_out > left_out_) {
    context_.note(
        fmt::format(
            "the conversation is longer than the context of {} tokens: its "
            "first {} messages are left out from here on",
            limit, prompt.left_out
        )
    );
  }
  left_out_ = prompt.left_out;
  infer::Request request = request_;
  request.prompt = prompt.ids;
  CtrlC::forget();
  const auto made = stream_answer(
      *live_.engine, std::move(request),
      [&](const infer::GeneratedToken& token) { show(token.text); },
      [] { return !CtrlC::pressed(); }
  );
  CtrlC::forget();
  show("\n");
  history_.add(text, made.text);
  after(made);
}

void Chat::run() {
  const CtrlC ctrl_c;
  greet();
  const bool terminal = ChatInput::is_terminal();
  for (;;) {
    if (terminal) show("> ");
    const auto line = input_.next();
    if (!line) break;
    if (line->dropped) {
      show("\n");
      context_.note("Ctrl-D or /quit leaves");
      continue;
    }
    const bool blank = line->text.find_first_not_of(" \t") == std::string::npos;
    if (blank && (!history_.raw() || terminal)) continue;
    // What goes wrong in a turn does not end the conversation.
    try {
      if (line->text.starts_with('/')) {
        if (!command(line->text)) break;
      } else {
        answer(line->text);
      }
    } catch (const UsageError& e) {
      fmt::print(stderr, "error: {}\n", e.what());
    } catch (const IoError& e) {
      fmt::print(stderr, "error: {}\n", e.what());
    }
  }
  if (terminal) show("\n");
  if (context_.common.json) {
    context_.json("hearth.chat/1", history_.save());
  }
}

}  // namespace

void cmd_chat(Context& context, const std::vector<std::string>& words) {
  ChatFlags flags;
  Args args("chat", "Talk with a model, turn by turn.", context.common);
  declare(args, flags);
  if (!context.parse(args, words)) return;
  infer::EngineOptions options;
  options.max_batch = 1, options.prefill_chunk = 512;
  const auto live = flags.engine.start(context, flags.model, options);
  Chat(context, flags, *live).run();
}

}  // namespace hearth::cli
