#include "hearth/cli/args.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "hearth/base/env.h"
#include "hearth/base/error.h"
#include "hearth/base/spelling.h"

namespace hearth::cli {

namespace {

// What CLI.md calls MODEL, wherever a command takes one.
bool names_a_model(const std::string& name) {
  return name == "MODEL" || name == "--adapter" || name == "--draft";
}

}  // namespace

struct Args::State {
  CLI::App app;
  std::string name;
  std::string examples;
  std::vector<std::string*> models;
  CommonFlags& common;

  State(const std::string& command, const std::string& summary, CommonFlags& c)
      : app(summary, "hearth " + command), name(command), common(c) {}
};

Args::Args(
    const std::string& name,
    const std::string& summary,
    CommonFlags& common
)
    : state_(std::make_unique<State>(name, summary, common)) {
  CLI::App& app = state_->app;
  app.set_help_flag("-h,--help", "Print this help");
  app.get_formatter()->column_width(34);
  const std::string group = "Common flags";
  app.add_option("--device", common.device, "auto, metal, cuda or cpu")
      ->type_name("D")
      ->group(group);
  app.add_option("--threads", common.threads, "Threads to use (0: all)")
      ->type_name("N")
      ->group(group);
  app.add_option("--seed", common.seed, "Seed of every random choice")
      ->type_name("N")
      ->group(group);
  app.add_flag("--quiet", common.quiet, "No progress, no notes")->group(group);
  app.add_flag("--verbose", common.verbose, "Say more")->group(group);
  app.add_flag("--json", common.json, "One JSON document on stdout")
      ->group(group);
}

Args::~Args() = default;

void Args::flag(const std::string& name, bool& value, const std::string& help) {
  state_->app.add_flag(name, value, help);
}

void Args::option(
    const std::string& name,
    std::string& value,
    const std::string& help
) {
  state_->app.add_option(name, value, help)->type_name("TEXT");
  if (names_a_model(name)) state_->models.push_back(&value);
}

void Args::option(
    const std::string& name,
    std::optional<std::string>& value,
    const std::string& help
) {
  state_->app.add_option(name, value, help)->type_name("TEXT");
}

void Args::option(
    const std::string& name,
    std::vector<std::string>& value,
    const std::string& help
) {
  // One word each time for these: the next may be the model.
  const bool several = name != "--include" && name != "--exclude";
  state_->app.add_option(name, value, help)
      ->type_name("TEXT")
      ->allow_extra_args(several);
}

void Args::option(
    const std::string& name,
    std::int64_t& value,
    const std::string& help
) {
  state_->app.add_option(name, value, help)->type_name("N");
}

void Args::option(
    const std::string& name,
    double& value,
    const std::string& help
) {
  state_->app.add_option(name, value, help)->type_name("X");
}

void Args::choice(
    const std::string& name,
    std::string& value,
    const std::vector<std::string>& words,
    const std::string& help
) {
  auto check = [words](std::string& given) -> std::string {
    for (const auto& w : words) {
      if (w == given) return "";
    }
    return fmt::format(
        "must be one of {}, got '{}'{}", CLI::detail::join(words, ", "), given,
        did_you_mean(given, words)
    );
  };
  state_->app
      .add_option(
          name, value,
          fmt::format("{} ({})", help, CLI::detail::join(words, ", "))
      )
      ->type_name("WORD")
      ->check(CLI::Validator(check, ""));
}

void Args::positional(
    const std::string& name,
    std::string& value,
    const std::string& help
) {
  state_->app.add_option(name, value, help)->required()->type_name("");
  if (names_a_model(name)) state_->models.push_back(&value);
}

void Args::optional_positional(
    const std::string& name,
    std::string& value,
    const std::string& help
) {
  state_->app.add_option(name, value, help)->type_name("");
  if (names_a_model(name)) state_->models.push_back(&value);
}

void Args::rest(
    const std::string& name,
    std::vector<std::string>& words,
    const std::string& help
) {
  state_->app.add_option(name, words, help)->type_name("");
}

void Args::require(const std::string& name) {
  state_->app.get_option(name)->required();
}

void Args::example(const std::string& command, const std::string& what) {
  state_->examples += fmt::format("  {}\n      {}\n", command, what);
}

const std::vector<std::string*>& Args::models() const {
  return state_->models;
}

std::vector<std::string> Args::flags() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : state_->app.get_options()) {
    for (const auto& n : option->get_lnames()) names.push_back("--" + n);
    for (const auto& n : option->get_snames()) names.push_back("-" + n);
  }
  return names;
}

std::string Args::help() const {
  std::string text = state_->app.help();
  if (!state_->examples.empty()) text += "\nExamples:\n" + state_->examples;
  return text;
}

namespace {

void reject_unknown_flags(
    const std::vector<std::string>& words,
    const std::vector<std::string>& known,
    const std::string& command
) {
  for (const std::string& word : words) {
    const std::string flag = word.substr(0, word.find('='));
    const bool is_flag = flag.size() > 1 && flag[0] == '-' &&
                         (flag[1] == '-' || std::isalpha(flag[1]) != 0);
    if (word == "--") return;
    const bool found =
        std::find(known.begin(), known.end(), flag) != known.end();
    if (!is_flag || found) continue;
    throw UsageError(
        fmt::format(
            "hearth {}: the flag '{}' is not known{}", command, flag,
            did_you_mean(flag, known)
        )
    );
  }
}

// CLI11 says "Could not convert: --n = abc"; the rest of Hearth says what must
// hold.
std::string plain_reason(const CLI::ParseError& e) {
  std::string what = e.what();
  constexpr std::string_view kConvert = "Could not convert: ";
  const std::size_t equals = what.find(" = ");
  if (!what.starts_with(kConvert) || equals == what.npos) return what;
  return fmt::format(
      "{} must be a number, got '{}'",
      what.substr(kConvert.size(), equals - kConvert.size()),
      what.substr(equals + 3)
  );
}

}  // namespace

bool Args::parse(const std::vector<std::string>& words) {
  State& s = *state_;
  try {
    s.app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::CallForHelp&) {
    std::fputs(help().c_str(), stdout);
    return false;
  } catch (const CLI::ParseError& e) {
    // A mistyped flag explains the rest, so it is named first.
    reject_unknown_flags(words, flags(), s.name);
    if (!s.app.remaining().empty()) {
      throw UsageError(
          fmt::format(
              "hearth {}: the word '{}' is one too many", s.name,
              s.app.remaining().front()
          )
      );
    }
    throw UsageError(
        fmt::format("hearth {}: {}", s.name, plain_reason(e)),
        fmt::format("hearth {} --help shows how it is called", s.name)
    );
  }
  s.common.seed_given = s.app.get_option("--seed")->count() > 0;
  // A flag wins over the environment, the environment over a recipe.
  if (s.app.get_option("--device")->count() == 0) {
    s.common.device = env::get(env::kDevice).value_or(s.common.device);
  }
  if (s.app.get_option("--threads")->count() == 0) {
    if (const auto n = env::get(env::kThreads)) {
      char* end = nullptr;
      s.common.threads = static_cast<int>(std::strtol(n->c_str(), &end, 10));
      if (*end != '\0') {
        throw UsageError(
            fmt::format("{} must be a number, got '{}'", env::kThreads, *n)
        );
      }
    }
  }
  if (s.common.threads < 0 || s.common.threads > 4096) {
    throw UsageError(
        fmt::format(
            "--threads must be from 0 to 4096, got {}", s.common.threads
        )
    );
  }
  return true;
}

}  // namespace hearth::cli
