#pragma once
// The command line of one command, over CLI11, which only args.cpp includes.
// Every command gets the common flags; an unknown flag names the nearest known
// one; --help shows the examples.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hearth::cli {

// The flags every command takes (CLI.md).
struct CommonFlags {
  std::string device = "auto";
  int threads = 0;             // 0: as many as the machine has
  std::string threads_origin;  // the flag, or the variable of the environment
  std::uint64_t seed = 0;
  bool seed_given = false;
  bool quiet = false, verbose = false, json = false;
};

class Args {
 public:
  // name is what the user types after `hearth`, such as "data synth".
  Args(
      const std::string& name,
      const std::string& summary,
      CommonFlags& common
  );
  ~Args();

  void flag(const std::string& name, bool& value, const std::string& help);
  void option(
      const std::string& name,
      std::string& value,
      const std::string& help
  );
  void option(
      const std::string& name,
      std::optional<std::string>& value,
      const std::string& help
  );
  // One word each time it is given.
  void option(
      const std::string& name,
      std::vector<std::string>& value,
      const std::string& help
  );
  // All words up to the next flag.
  void list(
      const std::string& name,
      std::vector<std::string>& value,
      const std::string& help
  );
  void option(
      const std::string& name,
      std::int64_t& value,
      const std::string& help
  );
  void option(
      const std::string& name,
      std::optional<std::int64_t>& value,
      const std::string& help
  );
  void option(const std::string& name, double& value, const std::string& help);
  void option(
      const std::string& name,
      std::optional<double>& value,
      const std::string& help
  );
  // Only these words are accepted.
  void choice(
      const std::string& name,
      std::string& value,
      const std::vector<std::string>& words,
      const std::string& help
  );
  // A word without dashes. Required ones come first.
  void positional(
      const std::string& name,
      std::string& value,
      const std::string& help
  );
  void optional_positional(
      const std::string& name,
      std::string& value,
      const std::string& help
  );
  // All remaining words: files, or overrides such as optim.lr=3e-4.
  void rest(
      const std::string& name,
      std::vector<std::string>& words,
      const std::string& help
  );
  // Must be given; name as it was declared.
  void require(const std::string& name);
  void example(const std::string& command, const std::string& what_it_does);

  // False when help was asked for and printed. Throws UsageError.
  bool parse(const std::vector<std::string>& words);

  // The values that name a model (MODEL, --adapter, --draft): where they are
  // hf:ORG/NAME, Context::parse puts the model's path in their place.
  const std::vector<std::string*>& models() const;

  // Long flags, for shell completion.
  std::vector<std::string> flags() const;
  std::string help() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::cli
