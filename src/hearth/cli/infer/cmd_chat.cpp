// hearth chat: a conversation with a model, turn by turn.
#include <cstdio>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/cli/infer/answer_stream.h"
#include "hearth/cli/infer/chat_files.h"
#include "hearth/cli/infer/chat_history.h"
#include "hearth/cli/infer/chat_input.h"
#include "hearth/cli/infer/engine_flags.h"
#include "hearth/cli/infer/sampling_flags.h"

namespace hearth::cli {
namespace {

constexpr const char* kHelp =
    "/system TEXT  what the model is told first; - for nothing; without TEXT, "
    "shows it\n"
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
  f.sampling.max_tokens = 1024, f.sampling.usual_temperature = 0.7;
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

// What the flags ask for, checked as far as it can be without the model.
struct ChatSetup {
  infer::Request request;
  bool raw = false;
  std::optional<std::string> system, file;  // file: --load's
  std::string kept;                         // what it holds

  ChatSetup(const Context& context, const ChatFlags& flags);
  // Throws UsageError where the model does not fit it.
  ChatHistory history(const infer::TextModel& model) const;
};

ChatSetup::ChatSetup(const Context& context, const ChatFlags& flags)
    : request(flags.sampling.request(context)),
      raw(flags.raw),
      system(flags.system),
      file(flags.load) {
  request.grammar = flags.grammar.read().grammar;
  if (raw && system) {
    throw UsageError("--system needs a chat template, which --raw leaves out");
  }
  if (file == "-") {
    throw UsageError("--load needs a file: what is said comes from stdin");
  }
  if (file) kept = ChatFiles::read(*file);
}

ChatHistory ChatSetup::history(const infer::TextModel& model) const {
  ChatHistory out(model, raw);
  if (file) out.load(parse_json(kept, *file), *file);
  if (system) out.set_system(*system);
  return out;
}

class Chat {
 public:
  Chat(const Context& context, const ChatSetup& setup, ModelEngine& live)
      : context_(context),
        live_(live),
        request_(setup.request),
        history_(setup.history(live.model)) {
    request_.stop_ids = live.model.stop_ids;
    request_.continues_prompt = history_.raw();
    if (setup.file) took(*setup.file, setup.kept);
  }

  void run();

 private:
  const Context& context_;
  ModelEngine& live_;
  infer::Request request_;
  ChatHistory history_;
  ChatInput input_;
  ChatFiles files_;
  Guesses guesses_;         // up to the last answer
  bool line_open_ = false;  // text was shown, and not yet its end

  void greet() const;
  void turn(const std::string& line, bool& over);
  bool command(const std::string& line);
  void set_system(const std::string& text);
  void answer(const std::string& text);
  void after(const Answer& made);
  void save(const std::string& file);
  void load(const std::string& file);
  void took(const std::string& file, const std::string& text);
  void show(std::string_view text);
  Json document() const;
};

void Chat::show(std::string_view text) {
  if (context_.common.json || text.empty()) return;
  context_.print(text);
  std::fflush(stdout);
  line_open_ = !text.ends_with('\n');
}

void Chat::greet() const {
  if (history_.raw()) {
    context_.note(
        "no chat template is used: what you type is continued as it is"
    );
  }
  if (ChatInput::is_terminal()) {
    context_.note("/help lists the commands, Ctrl-D leaves");
  }
  if (request_.sampling.temperature > 0 && context_.common.verbose) {
    context_.note(fmt::format("seed: {}", request_.sampling.seed));
  }
}

void Chat::save(const std::string& file) {
  files_.save(file, to_json_text(history_.save()) + "\n");
  context_.note(fmt::format("{} messages are in {}", history_.turns(), file));
}

void Chat::load(const std::string& file) {
  const std::string text = ChatFiles::read(file);
  history_.load(parse_json(text, file), file);
  took(file, text);
}

void Chat::took(const std::string& file, const std::string& text) {
  files_.loaded(file, text);
  context_.note(fmt::format("{} messages from {}", history_.turns(), file));
}

void Chat::set_system(const std::string& text) {
  if (!text.empty()) history_.set_system(text == "-" ? "" : text);
  context_.note(
      history_.system().empty() ? "there is no system message"
                                : "system: " + history_.system()
  );
}

// False when the conversation is over.
bool Chat::command(const std::string& line) {
  const auto space = line.find(' ');
  const std::string name = line.substr(0, space);
  std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
  rest.erase(0, rest.find_first_not_of(' '));
  if (name == "/quit" || name == "/exit") return false;
  if (name == "/help") {
    fmt::print(stderr, "{}", kHelp);
  } else if (name == "/clear") {
    history_.clear();
    files_.forget();
    context_.note("the conversation is forgotten");
  } else if (name == "/system") {
    set_system(rest);
  } else if (name == "/save" || name == "/load") {
    if (rest.empty() || rest == "-") throw UsageError(name + " needs a file");
    name == "/save" ? save(with_home(rest)) : load(with_home(rest));
  } else {
    throw UsageError(name + " is no command: /help lists them");
  }
  return true;
}

void Chat::after(const Answer& made) {
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
  const Guesses all = live_.guesses();
  if (live_.guessing && context_.common.verbose) {
    context_.note(all.since(guesses_).text());
  }
  guesses_ = all;
}

void Chat::answer(const std::string& text) {
  // A turn wants room for an answer, but a short context is used to its end.
  const int limit = live_.engine->limit();
  const int room = std::min(request_.max_tokens, std::max(limit / 4, 1));
  const std::size_t left_out = history_.left_out();
  infer::Request request = request_;
  request.prompt = history_.prompt_for(text, limit, room);
  if (history_.left_out() > left_out) {
    context_.note(
        fmt::format(
            "the conversation is longer than the context of {} tokens: its "
            "first {} messages are left out from here on",
            limit, history_.left_out()
        )
    );
  }
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

// An error in a turn does not end the conversation.
void Chat::turn(const std::string& line, bool& over) {
  std::string error, hint;
  try {
    if (line.starts_with('/')) {
      over = !command(line);
    } else {
      answer(line);
    }
    return;
  } catch (const Error& e) {
    error = e.what(), hint = e.hint();
  } catch (const std::bad_alloc&) {
    error = "the system has no more memory for this process";
  } catch (const std::exception& e) {
    error = e.what();
  }
  if (line_open_) show("\n");
  fmt::print(stderr, "error: {}\n", error);
  if (!hint.empty()) fmt::print(stderr, "  {}\n", hint);
}

Json Chat::document() const {
  Json out = history_.save();
  if (request_.sampling.temperature > 0) out["seed"] = request_.sampling.seed;
  if (live_.guessing) out["guesses"] = live_.guesses().json();
  return out;
}

void Chat::run() {
  const CtrlC ctrl_c;
  greet();
  const bool terminal = ChatInput::is_terminal();
  for (bool over = false; !over;) {
    if (terminal) show("> ");
    const auto line = input_.next();
    if (!line) break;
    if (line->dropped) {
      show("\n");
      context_.note("Ctrl-D or /quit leaves");
      continue;
    }
    line_open_ = false;
    const bool blank = line->text.find_first_not_of(" \t") == std::string::npos;
    if (!blank || (history_.raw() && !terminal)) turn(line->text, over);
  }
  if (terminal) show("\n");
  if (context_.common.json) context_.json("hearth.chat/1", document());
}

}  // namespace

void cmd_chat(Context& context, const std::vector<std::string>& words) {
  ChatFlags flags;
  Args args("chat", "Talk with a model, turn by turn.", context.common);
  declare(args, flags);
  if (!context.parse(args, words)) return;
  const ChatSetup setup(context, flags);
  infer::EngineOptions options;
  options.max_batch = 1, options.prefill_chunk = 512;
  const auto live = flags.engine.start(
      context, flags.model, options,
      [&](const infer::TextModel& model, const models::DecoderConfig& config) {
        check_bias_ids(setup.request, config.vocab);
        setup.history(model);
      }
  );
  Chat(context, setup, *live).run();
}

}  // namespace hearth::cli
