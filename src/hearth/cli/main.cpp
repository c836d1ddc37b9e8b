// The one executable: a constant table of commands, one try/catch, and the
// exit codes of the contract.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <new>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/spelling.h"
#include "hearth/base/terminal.h"
#include "hearth/cli/command.h"
#include "hearth/cli/version.h"

namespace hearth::cli {
namespace {

constexpr Command kCommands[] = {
    {"doctor", "this machine: what it is, what is safe, how fast it really is",
     cmd_doctor},
    {"plan", "predicted memory and time of a recipe, before anything runs",
     cmd_plan},
    {"tune", "the fastest way to run a recipe here, measured; presets",
     cmd_tune},
    {"train", "train a model from a recipe", cmd_train},
    {"sweep", "a grid of runs: resumable, with table and plot", cmd_sweep},
    {"bench", "measured tables with the share of this machine's peak",
     cmd_bench},
    {"generate", "text from a model, as it comes", cmd_generate},
    {"chat", "talk with a model, turn by turn", cmd_chat},
    {"serve", "an OpenAI-compatible server and a page to chat with", cmd_serve},
    {"preload", "check a model, pack it for this machine, keep it, try it",
     cmd_preload},
    {"profile load", "where the time and memory of a load go, and why",
     cmd_profile_load},
    {"eval ppl", "perplexity of a model on a text, with its standard error",
     cmd_eval_ppl},
    {"export hf", "a Hugging Face folder of any model, adapters merged",
     cmd_export_hf},
    {"export peft", "the adapters of a run as PEFT has them", cmd_export_peft},
    {"tokenizer encode", "text on stdin to token ids", cmd_tokenizer_encode},
    {"tokenizer decode", "token ids on stdin to text", cmd_tokenizer_decode},
    {"tokenizer train", "a byte-level BPE tokenizer from text files",
     cmd_tokenizer_train},
    {"tokenizer inspect", "what a tokenizer is, and how it splits a text",
     cmd_tokenizer_inspect},
    {"tokenizer template", "a chat template applied to messages, byte for byte",
     cmd_tokenizer_template},
    {"pull", "a model from a Hugging Face hub into the shared cache", cmd_pull},
    {"inspect", "a model: architecture, sizes, tokenizer, whatever is odd",
     cmd_inspect},
    {"data prepare", "tokenise data into a cache of memory-mapped shards",
     cmd_data_prepare},
    {"data inspect", "tokens, masks, packing, truncation before the first step",
     cmd_data_inspect},
    {"data synth", "stories, arithmetic and tool dialogues as JSONL, seeded",
     cmd_data_synth},
    {"completion", "completion for bash or zsh", cmd_completion},
};

enum ExitCode {
  kDone = 0,
  kFailed = 1,
  kUsage = 2,
  kSaidNo = 3,
  kInterrupted = 130
};

void print_help() {
  std::string text =
      "hearth: train, distil, quantise, export, serve and measure language "
      "models on your own machine\n\nusage: hearth COMMAND [ARGS] [--flags]\n\n"
      "commands:\n";
  for (const Command& c : kCommands) {
    text += fmt::format("  {:<18} {}\n", c.name, c.summary);
  }
  text +=
      "\nhearth COMMAND --help shows a command's flags with examples; "
      "hearth --version says what this binary is.\n";
  std::fputs(text.c_str(), stdout);
}

// The command with the most words that the line starts with.
const Command* find_command(const std::vector<std::string>& words) {
  const Command* best = nullptr;
  for (const Command& c : kCommands) {
    std::string line;
    for (std::size_t i = 0; i < words.size() && line.size() < c.name.size();
         ++i) {
      line += (i > 0 ? " " : "") + words[i];
    }
    if (line == c.name && (!best || c.name.size() > best->name.size())) {
      best = &c;
    }
  }
  return best;
}

// The commands below a group's word, such as "data": none for other words.
std::vector<const Command*> group_of(std::string_view word) {
  std::vector<const Command*> found;
  for (const Command& c : kCommands) {
    if (c.name.size() > word.size() && c.name.starts_with(word) &&
        c.name[word.size()] == ' ') {
      found.push_back(&c);
    }
  }
  return found;
}

std::string group_help(const std::vector<const Command*>& group) {
  const std::string_view first = group[0]->name;
  const std::string_view word = first.substr(0, first.find(' '));
  std::string text = fmt::format(
      "usage: hearth {} COMMAND [ARGS] [--flags]\n\ncommands:\n", word
  );
  for (const Command* c : group) {
    text += fmt::format("  {:<18} {}\n", c->name, c->summary);
  }
  return text + fmt::format(
                    "\nhearth {} --help shows a command's flags with "
                    "examples.\n",
                    first
                );
}

[[noreturn]] void unknown_command(const std::vector<std::string>& words) {
  std::vector<std::string> known, below;
  for (const Command& c : kCommands) known.emplace_back(c.name);
  for (const Command* c : group_of(words[0])) below.emplace_back(c->name);
  if (!below.empty()) {
    throw UsageError(
        fmt::format(
            "hearth {} must be followed by a command, one of: {}", words[0],
            fmt::join(below, ", ")
        )
    );
  }
  // Even a word that is like none gets the likest: it shows what commands are.
  const auto likest = std::ranges::min_element(known, {}, [&](const auto& k) {
    return edit_distance(words[0], k);
  });
  const std::string meant = did_you_mean(words[0], known);
  throw UsageError(
      fmt::format(
          "there is no command '{}'{}", words[0],
          meant.empty() ? fmt::format("; the nearest is '{}'", *likest) : meant
      ),
      "hearth help lists the commands"
  );
}

void run(Context& context, std::vector<std::string> words) {
  const std::string first = words.empty() ? "help" : words[0];
  if (first == "help" && words.size() > 1) {
    words.erase(words.begin());
    words.emplace_back("--help");
  } else if (first == "help" || first == "--help" || first == "-h") {
    return print_help();
  }
  if (first == "--version" || first == "version") {
    return context.print(version_text());
  }
  const Command* command = find_command(words);
  if (command == nullptr) {
    const auto group = group_of(words[0]);
    const bool asked =
        words.size() == 2 && (words[1] == "--help" || words[1] == "-h");
    if (asked && !group.empty()) return context.print(group_help(group));
    unknown_command(words);
  }
  const auto depth =
      1 + std::count(command->name.begin(), command->name.end(), ' ');
  words.erase(words.begin(), words.begin() + depth);
  command->run(context, words);
}

// Reports an error as a JSON document, or on stderr where stdout takes none.
int report(
    ExitCode code,
    const std::string& what,
    const std::string& hint,
    bool as_document
) {
  if (as_document) {
    Json document = {{"schema", "hearth.error/1"}, {"error", what}};
    document["hint"] = hint;
    std::puts(to_json_text(document).c_str());
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  }
  const char* color = color_on_stderr() ? "\x1b[31m" : "";
  const char* plain = color_on_stderr() ? "\x1b[0m" : "";
  fmt::print(stderr, "{}error:{} {}\n", color, plain, what);
  if (!hint.empty()) fmt::print(stderr, "  {}\n", hint);
  return code;
}

int main_with_codes(const std::vector<std::string>& words) {
  // Errors can happen before flags are parsed, so --json is looked for here.
  const bool json =
      std::find(words.begin(), words.end(), "--json") != words.end();
  Context context;
  const auto say = [&](ExitCode code, const std::string& what,
                       const std::string& hint = {}) {
    return report(code, what, hint, json && !context.has_document());
  };
  try {
    run(context, words);
    check_arrived(std::fflush(stdout) == 0 && std::ferror(stdout) == 0);
    return context.said_no ? kSaidNo : kDone;
  } catch (const UsageError& e) {
    return say(kUsage, e.what(), e.hint());
  } catch (const CheckFailed& e) {
    return say(kSaidNo, e.what(), e.hint());
  } catch (const Interrupted& e) {
    return say(kInterrupted, e.what(), e.hint());
  } catch (const Error& e) {
    return say(kFailed, e.what(), e.hint());
  } catch (const std::bad_alloc&) {
    return say(
        kFailed, "the system has no more memory for this process",
        "use a smaller model, batch or length"
    );
  } catch (const std::filesystem::filesystem_error& e) {
    return say(
        kFailed,
        fmt::format(
            "cannot get at {}: {}", e.path1().string(), e.code().message()
        )
    );
  } catch (const std::exception& e) {
    return say(kFailed, e.what());
  }
}

}  // namespace

std::span<const Command> commands() {
  return kCommands;
}

}  // namespace hearth::cli

int main(int argc, char** argv) {
  // A file beyond the size that is allowed is an error of the write.
  std::signal(SIGXFSZ, SIG_IGN);
  return hearth::cli::main_with_codes({argv + 1, argv + argc});
}
