// Completion scripts for bash and zsh, made from the command table. The flags
// of a command are read from its own --help, so no second list can go stale.
#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/cli/command.h"

namespace hearth::cli {
namespace {

std::string command_words() {
  std::string words;
  for (const Command& c : commands()) {
    if (!words.empty()) words += ' ';
    words += c.name.substr(0, c.name.find(' '));
  }
  return words;
}

constexpr std::string_view kBody = R"(_hearth() {
  local word=${COMP_WORDS[COMP_CWORD]}
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "help %s" -- "$word"))
    return
  fi
  case $word in
    -*)
      local flags
      flags=$("${COMP_WORDS[0]}" "${COMP_WORDS[1]}" --help 2>/dev/null |
        grep -oE -- '(^|[ ,])--[a-z][a-z-]*' | tr -d ' ,' | sort -u)
      COMPREPLY=($(compgen -W "$flags" -- "$word"))
      ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}
complete -o filenames -F _hearth hearth
)";

std::string bash_script() {
  std::string text(kBody);
  return text.replace(text.find("%s"), 2, command_words());
}

}  // namespace

void cmd_completion(Context& context, const std::vector<std::string>& words) {
  std::string shell;
  Args args("completion", "Print a completion script", context.common);
  args.positional("SHELL", shell, "bash or zsh");
  args.example(
      "hearth completion bash > "
      "~/.local/share/bash-completion/completions/hearth",
      "completion in every new bash"
  );
  args.example(
      "echo 'source <(hearth completion zsh)' >> ~/.zshrc",
      "completion in every new zsh"
  );
  if (!context.parse(args, words)) return;
  if (shell == "bash") {
    context.print(bash_script());
  } else if (shell == "zsh") {
    context.print(
        "autoload -U +X bashcompinit && bashcompinit\n" + bash_script()
    );
  } else {
    throw UsageError(
        fmt::format("the shell must be bash or zsh, got '{}'", shell)
    );
  }
}

}  // namespace hearth::cli
