#include "hearth/cli/args.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

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

// Decimal, and all of the word: CLI11 would read 010 as eight, -1 as the
// largest seed, and an empty word as 0.
template <class T>
T number_of(const std::string& flag, std::string_view text) {
  const auto refuse = [&](const std::string& what) {
    throw CLI::ConversionError(
        fmt::format("{} must be {}, got '{}'", flag, what, text)
    );
  };
  const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-';
  const char* end = text.data() + text.size();
  T out{};
  const auto [at, error] = std::from_chars(text.data() + plus, end, out);
  if constexpr (std::is_floating_point_v<T>) {
    if (at != end || error != std::errc() || !std::isfinite(out)) {
      refuse("a number");
    }
  } else {
    using Range = std::numeric_limits<T>;
    const bool negative = std::is_unsigned_v<T> && text.starts_with('-');
    if (error == std::errc::result_out_of_range || negative) {
      refuse(
          fmt::format(
              "a whole number from {} to {}", Range::min(), Range::max()
          )
      );
    }
    if (at != end || error != std::errc()) refuse("a whole number");
  }
  return out;
}

// The name that messages use: the longest, which comes last.
std::string long_name(const std::string& names) {
  return names.substr(names.rfind(',') + 1);
}

// T is what the value holds, or would hold where it is optional.
template <class T, class Value>
CLI::Option* add_number(
    CLI::App& app,
    const std::string& name,
    Value& value,
    const std::string& help
) {
  return app.add_option(
      name,
      [flag = long_name(name), &value](const CLI::results_t& words) {
        value = number_of<T>(flag, words.front());
        return true;
      },
      help
  );
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
  add_number<int>(app, "--threads", common.threads, "Threads to use (0: all)")
      ->type_name("N")
      ->group(group);
  add_number<std::uint64_t>(
      app, "--seed", common.seed, "Seed of every random choice"
  )
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
  // Otherwise CLI11 would take the next word too, which may be the model, and
  // "[a,b]" for two values.
  state_->app.add_option(name, value, help)
      ->type_name("TEXT")
      ->allow_extra_args(false);
}

void Args::list(
    const std::string& name,
    std::vector<std::string>& value,
    const std::string& help
) {
  constexpr int kMost = 1 << 20;
  state_->app.add_option(name, value, help)
      ->type_name("TEXT ...")
      ->allow_extra_args(false)
      ->expected(1, kMost);
}

void Args::option(
    const std::string& name,
    std::int64_t& value,
    const std::string& help
) {
  add_number<std::int64_t>(state_->app, name, value, help)->type_name("N");
}

void Args::option(
    const std::string& name,
    std::optional<std::int64_t>& value,
    const std::string& help
) {
  add_number<std::int64_t>(state_->app, name, value, help)->type_name("N");
}

void Args::option(
    const std::string& name,
    double& value,
    const std::string& help
) {
  add_number<double>(state_->app, name, value, help)->type_name("X");
}

void Args::option(
    const std::string& name,
    std::optional<double>& value,
    const std::string& help
) {
  add_number<double>(state_->app, name, value, help)->type_name("X");
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
        fmt::format("hearth {}: {}", s.name, e.what()),
        fmt::format("hearth {} --help shows how it is called", s.name)
    );
  }
  s.common.seed_given = s.app.get_option("--seed")->count() > 0;
  // A flag wins over the environment, the environment over a recipe.
  if (s.app.get_option("--device")->count() == 0) {
    s.common.device = env::get(env::kDevice).value_or(s.common.device);
  }
  s.common.threads_origin = "--threads";
  if (s.app.get_option("--threads")->count() == 0) {
    if (const auto n = env::get(env::kThreads)) {
      s.common.threads_origin = env::kThreads;
      try {
        s.common.threads = number_of<int>(env::kThreads, *n);
      } catch (const CLI::ConversionError& e) {
        throw UsageError(e.what());
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
