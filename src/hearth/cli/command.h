#pragma once
// What a command is: a name, a line for `hearth help`, and a function. Each
// lives in its own cmd_*.cpp; main.cpp holds the table.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/cli/args.h"

namespace hearth::cli {

// What a running command has from main: flags after parsing, and its output.
struct Context {
  CommonFlags common;
  // The result that was printed is a no: the exit code is that of a check that
  // failed, and nothing more is said.
  bool said_no = false;

  // A result on stdout. With --json, use json() once instead.
  void print(std::string_view text) const;
  // The one JSON document of --json; schema is "hearth.<command>/1". What goes
  // wrong later is said on stderr, since a second document would be one too
  // many.
  void json(std::string_view schema, Json document) const;
  bool has_document() const { return has_document_; }
  // A note on stderr, unless --quiet.
  void note(std::string_view text) const;
  // Parses, then applies the common flags (threads, quiet, verbose) and finds
  // models named hf:ORG/NAME. False when help was printed and there is nothing
  // more to do.
  bool parse(Args& args, const std::vector<std::string>& words);

 private:
  mutable bool has_document_ = false;
};

// Throws IoError, and no advice, when a result did not arrive on stdout.
void check_arrived(bool arrived);

using CommandFunction =
    void (*)(Context& context, const std::vector<std::string>& words);

struct Command {
  std::string_view name;     // "data synth": subcommands are words of the name
  std::string_view summary;  // one line
  CommandFunction run;
};

// Every command that is built, in the order of `hearth help`.
std::span<const Command> commands();

// The command functions, one per cmd_*.cpp.
void cmd_doctor(Context& context, const std::vector<std::string>& words);
void cmd_train(Context& context, const std::vector<std::string>& words);
void cmd_sweep(Context& context, const std::vector<std::string>& words);
void cmd_plan(Context& context, const std::vector<std::string>& words);
void cmd_tune(Context& context, const std::vector<std::string>& words);
void cmd_bench(Context& context, const std::vector<std::string>& words);
void cmd_pull(Context& context, const std::vector<std::string>& words);
void cmd_inspect(Context& context, const std::vector<std::string>& words);
void cmd_tokenizer_template(
    Context& context,
    const std::vector<std::string>& words
);
void cmd_data_prepare(Context& context, const std::vector<std::string>& words);
void cmd_data_inspect(Context& context, const std::vector<std::string>& words);
void cmd_data_synth(Context& context, const std::vector<std::string>& words);
void cmd_generate(Context& context, const std::vector<std::string>& words);
void cmd_chat(Context& context, const std::vector<std::string>& words);
void cmd_serve(Context& context, const std::vector<std::string>& words);
void cmd_preload(Context& context, const std::vector<std::string>& words);
void cmd_profile_load(Context& context, const std::vector<std::string>& words);
void cmd_eval_ppl(Context& context, const std::vector<std::string>& words);
void cmd_export_hf(Context& context, const std::vector<std::string>& words);
void cmd_export_peft(Context& context, const std::vector<std::string>& words);
void cmd_completion(Context& context, const std::vector<std::string>& words);
void cmd_tokenizer_encode(
    Context& context,
    const std::vector<std::string>& words
);
void cmd_tokenizer_decode(
    Context& context,
    const std::vector<std::string>& words
);
void cmd_tokenizer_train(
    Context& context,
    const std::vector<std::string>& words
);
void cmd_tokenizer_inspect(
    Context& context,
    const std::vector<std::string>& words
);

}  // namespace hearth::cli
