// hearth tokenizer encode, hearth tokenizer decode.
#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/cli/command.h"
#include "hearth/cli/inputs.h"
#include "hearth/text/tokenizer/tokenizer.h"

namespace hearth::cli {
namespace {

using text::Tokenizer;
using Ids = std::vector<std::int32_t>;

[[noreturn]] void bad_line(long number, std::string_view what) {
  throw FormatError::at("<stdin>", number, what);
}

// The line's own number stands where the parser would say "1".
Json parse_line(std::string_view line, long number) {
  try {
    return parse_json(line, "");
  } catch (const FormatError& e) {
    std::string_view what = e.what();
    const bool placed = what.starts_with(":1:");
    if (placed) what.remove_prefix(3);
    bad_line(number, fmt::format("{}{}", placed ? "column " : "", what));
  }
}

std::string spelled(const Ids& ids, const char* separator) {
  return fmt::format("{}", fmt::join(ids, separator));
}

Ids ids_of(const Json& json, long number) {
  if (!json.is_array()) bad_line(number, "must be a JSON array of ids");
  Ids out;
  for (const Json& item : json) {
    const bool id = item.is_number_integer() && item.get<std::int64_t>() >= 0 &&
                    item.get<std::int64_t>() <= INT32_MAX;
    if (!id) bad_line(number, "must be a JSON array of ids");
    out.push_back(item.get<std::int32_t>());
  }
  return out;
}

// Numbers apart by anything that a list of ids may be written with.
Ids ids_in_text(std::string_view text) {
  Ids out;
  std::int64_t value = -1;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      value = std::max<std::int64_t>(value, 0) * 10 + (c - '0');
      if (value > INT32_MAX) throw UsageError("<stdin>: an id is too large");
      continue;
    }
    if (std::string_view(" \t\r\n,[]").find(c) == std::string_view::npos) {
      throw UsageError(
          fmt::format(
              "<stdin> must be ids with spaces between them, got '{}'", c
          )
      );
    }
    if (value >= 0) out.push_back(static_cast<std::int32_t>(value));
    value = -1;
  }
  if (value >= 0) out.push_back(static_cast<std::int32_t>(value));
  return out;
}

void note_limits(
    const Context& context,
    const Tokenizer& tokenizer,
    const text::EncodeOptions& options
) {
  const text::TokenizerLimits limits = tokenizer.limits();
  if (options.truncate && limits.truncate_to) {
    context.note(
        fmt::format(
            "the tokenizer file truncates to {} tokens: --no-truncation gives "
            "all",
            limits.truncate_to
        )
    );
  }
  if (options.pad && limits.pad_to) {
    context.note(
        fmt::format(
            "the tokenizer file pads to {} tokens: --no-padding leaves that "
            "off",
            limits.pad_to
        )
    );
  }
}

// Ids that stand for nothing decode to nothing, as the reference has it; that
// text is missing should not go unsaid.
void note_unknown(
    const Context& context,
    const Tokenizer& tokenizer,
    const Ids& ids
) {
  const auto unknown = std::ranges::count_if(ids, [&](std::int32_t id) {
    return !tokenizer.id_to_token(id).has_value();
  });
  if (unknown == 0) return;
  context.note(
      fmt::format(
          "{} of {} ids are not in the vocabulary of {} and were left out",
          unknown, ids.size(), tokenizer.vocab_size()
      )
  );
}

}  // namespace

void cmd_tokenizer_encode(
    Context& context,
    const std::vector<std::string>& words
) {
  std::string path;
  bool jsonl = false, no_special = false, plain_special = false;
  bool no_truncation = false, no_padding = false;
  Args args("tokenizer encode", "Text to token ids.", context.common);
  args.option(
      "-t,--tokenizer", path,
      "tokenizer.json, tokenizer.model, .gguf or a folder with one"
  );
  args.require("--tokenizer");
  args.flag(
      "--jsonl", jsonl,
      "Each line is a JSON string; answers with a JSON array of ids"
  );
  args.flag("--no-special", no_special, "Leave BOS and EOS off");
  args.flag(
      "--plain-special", plain_special,
      "Special tokens spelled out in the text are plain text"
  );
  args.flag(
      "--no-truncation", no_truncation,
      "Do not follow the file's truncation block"
  );
  args.flag(
      "--no-padding", no_padding, "Do not follow the file's padding block"
  );
  args.example(
      "echo Hello | hearth tokenizer encode -t model/",
      "ids of the whole input on one line"
  );
  args.example(
      "hearth tokenizer encode -t tokenizer.json --jsonl < texts.jsonl",
      "one text a line"
  );
  if (!context.parse(args, words)) return;

  require_input(path, "tokenizer");
  const auto tokenizer = Tokenizer::load(path);
  text::EncodeOptions options;
  options.add_special = !no_special;
  options.parse_special = !plain_special;
  options.truncate = !no_truncation;
  options.pad = !no_padding;
  note_limits(context, *tokenizer, options);
  if (!jsonl) {
    const Ids ids = tokenizer->encode(read_text("-"), options);
    if (context.common.json) {
      return context.json("hearth.tokenizer.encode/1", {{"ids", ids}});
    }
    return context.print(spelled(ids, " ") + "\n");
  }
  Json all = Json::array();
  each_stdin_line([&](std::string_view line, long number) {
    const Json text = parse_line(line, number);
    if (!text.is_string()) bad_line(number, "must be a JSON string");
    const Ids ids =
        tokenizer->encode(text.get_ref<const std::string&>(), options);
    if (context.common.json) {
      all.push_back(ids);
    } else {
      context.print("[" + spelled(ids, ",") + "]\n");
    }
  });
  if (context.common.json) {
    context.json("hearth.tokenizer.encode/1", {{"ids", all}});
  }
}

void cmd_tokenizer_decode(
    Context& context,
    const std::vector<std::string>& words
) {
  std::string path;
  bool jsonl = false, skip = false;
  Args args("tokenizer decode", "Token ids to text.", context.common);
  args.option(
      "-t,--tokenizer", path,
      "tokenizer.json, tokenizer.model, .gguf or a folder with one"
  );
  args.require("--tokenizer");
  args.flag(
      "--jsonl", jsonl,
      "Each line is a JSON array of ids; answers with a JSON string"
  );
  args.flag("--skip-special", skip, "Leave special tokens out of the text");
  args.example(
      "echo 9906 | hearth tokenizer decode -t model/",
      "the text of the ids on stdin"
  );
  if (!context.parse(args, words)) return;

  require_input(path, "tokenizer");
  const auto tokenizer = Tokenizer::load(path);
  if (!jsonl) {
    const Ids ids = ids_in_text(read_text("-"));
    const std::string text = tokenizer->decode(ids, skip);
    note_unknown(context, *tokenizer, ids);
    if (context.common.json) {
      return context.json("hearth.tokenizer.decode/1", {{"text", text}});
    }
    return context.print(text);
  }
  Json all = Json::array();
  each_stdin_line([&](std::string_view line, long number) {
    const Ids ids = ids_of(parse_line(line, number), number);
    Json text = tokenizer->decode(ids, skip);
    note_unknown(context, *tokenizer, ids);
    if (context.common.json) {
      all.push_back(std::move(text));
    } else {
      context.print(to_json_line(text) + "\n");
    }
  });
  if (context.common.json) {
    context.json("hearth.tokenizer.decode/1", {{"text", all}});
  }
}

}  // namespace hearth::cli
