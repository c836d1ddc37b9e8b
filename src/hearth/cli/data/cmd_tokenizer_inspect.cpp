// hearth tokenizer inspect.
#include <optional>

#include <fmt/format.h>

#include "hearth/cli/command.h"
#include "hearth/cli/inputs.h"
#include "hearth/text/tokenizer/tokenizer.h"

namespace hearth::cli {
namespace {

using text::Tokenizer;
using Ids = std::vector<std::int32_t>;

std::string optional_id(
    const Tokenizer& tokenizer,
    std::optional<std::int32_t> id
) {
  if (!id) return "none";
  return fmt::format("{} {:?}", *id, tokenizer.id_to_token(*id).value_or(""));
}

Json inspect_json(const Tokenizer& tokenizer) {
  const auto id = [](std::optional<std::int32_t> value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json specials = Json::object();
  for (const std::int32_t special : tokenizer.special_ids()) {
    specials[tokenizer.id_to_token(special).value_or("")] = special;
  }
  const text::TokenizerLimits limits = tokenizer.limits();
  return {
      {"format", tokenizer.format()},
      {"model", tokenizer.model_kind()},
      {"byte_level", tokenizer.is_byte_level()},
      {"vocab_size", tokenizer.vocab_size()},
      {"id_limit", tokenizer.id_limit()},
      {"bos", id(tokenizer.bos_id())},
      {"eos", id(tokenizer.eos_id())},
      {"pad", id(tokenizer.pad_id())},
      {"unk", id(tokenizer.unk_id())},
      {"prefix", tokenizer.prefix_ids()},
      {"suffix", tokenizer.suffix_ids()},
      {"truncate_to", limits.truncate_to},
      {"pad_to", limits.pad_to},
      {"special_tokens", specials}
  };
}

std::string inspect_text(const Tokenizer& t) {
  std::string out = fmt::format(
      "format      {}\nmodel       {}{}\nvocabulary  {} tokens, ids below {}\n",
      t.format(), t.is_byte_level() ? "byte-level " : "", t.model_kind(),
      t.vocab_size(), t.id_limit()
  );
  out += fmt::format(
      "bos         {}\neos         {}\npad         {}\nunk         {}\n",
      optional_id(t, t.bos_id()), optional_id(t, t.eos_id()),
      optional_id(t, t.pad_id()), optional_id(t, t.unk_id())
  );
  out += fmt::format(
      "adds        [{}] text [{}]\n", fmt::join(t.prefix_ids(), " "),
      fmt::join(t.suffix_ids(), " ")
  );
  const text::TokenizerLimits limits = t.limits();
  if (limits.truncate_to) {
    out += fmt::format("truncates   to {} tokens\n", limits.truncate_to);
  }
  if (limits.pad_to) {
    out += fmt::format("pads        to {} tokens\n", limits.pad_to);
  }
  const Ids specials = t.special_ids();
  out += fmt::format("special     {} tokens\n", specials.size());
  for (std::size_t i = 0; i < specials.size() && i < 32; ++i) {
    out += fmt::format("  {}\n", optional_id(t, specials[i]));
  }
  if (specials.size() > 32) {
    out += fmt::format("  and {} more\n", specials.size() - 32);
  }
  return out;
}

void show_tokens(
    const Context& context,
    const Tokenizer& tokenizer,
    const Ids& ids
) {
  for (const std::int32_t id : ids) {
    context.print(
        fmt::format(
            "{:>8}  {:?}{}\n", id, tokenizer.id_to_token(id).value_or(""),
            tokenizer.is_special(id) ? "  special" : ""
        )
    );
  }
}

}  // namespace

void cmd_tokenizer_inspect(
    Context& context,
    const std::vector<std::string>& words
) {
  std::string path;
  std::optional<std::string> text;
  Args args(
      "tokenizer inspect", "What a tokenizer is, and how it splits a text.",
      context.common
  );
  args.option(
      "-t,--tokenizer", path,
      "tokenizer.json, tokenizer.model, .gguf or a folder with one"
  );
  args.require("--tokenizer");
  args.option("--text", text, "Show the tokens of this text, one a line");
  args.example("hearth tokenizer inspect -t model/", "model, size, specials");
  args.example(
      "hearth tokenizer inspect -t model/ --text \"It's 1984\"",
      "one token a line"
  );
  if (!context.parse(args, words)) return;

  require_input(path, "tokenizer");
  const auto tokenizer = Tokenizer::load(path);
  if (context.common.json) {
    Json document = inspect_json(*tokenizer);
    if (text) document["ids"] = tokenizer->encode(*text);
    return context.json("hearth.tokenizer.inspect/1", document);
  }
  if (text) return show_tokens(context, *tokenizer, tokenizer->encode(*text));
  context.print(inspect_text(*tokenizer));
}

}  // namespace hearth::cli
