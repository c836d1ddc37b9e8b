#include "hearth/cli/infer/sampling_flags.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/cli/inputs.h"
#include "hearth/text/stop_text.h"

namespace hearth::cli {
namespace {

// "1234=-5", "1234=-inf".
std::pair<std::int32_t, float> parse_bias(const std::string& text) {
  const auto refuse = [&] {
    throw UsageError(
        fmt::format(
            "--logit-bias must be ID=VALUE such as 1234=-5 or 1234=-inf, got "
            "'{}'",
            text
        )
    );
  };
  const auto equals = text.find('=');
  if (equals == std::string::npos) refuse();
  std::int32_t id = 0;
  const char* begin = text.data();
  const auto first = std::from_chars(begin, begin + equals, id);
  if (first.ec != std::errc() || first.ptr != begin + equals) refuse();
  float value = 0;
  const char* end = begin + text.size();
  const auto second = std::from_chars(begin + equals + 1, end, value);
  if (second.ec != std::errc() || second.ptr != end) refuse();
  if (std::isnan(value) || value == INFINITY) refuse();
  return {id, value};
}

void check_by_flag(const infer::SamplerOptions& options) {
  const auto fault = options.fault();
  if (!fault) return;
  std::string flag = fault->option;
  std::ranges::replace(flag, '_', '-');
  if (flag == "temperature") flag = "temp";
  throw UsageError(
      fmt::format("--{} {}, got {}", flag, fault->must, fault->got)
  );
}

// Makes a grammar; its errors begin with the file or flag that it came from.
std::shared_ptr<const text::Grammar> of_flag(
    const std::string& name,
    const std::function<std::shared_ptr<const text::Grammar>()>& make
) {
  try {
    return make();
  } catch (const UsageError& e) {
    throw UsageError(
        fmt::format("{}: {}", name, plain_message(e.what())), e.hint()
    );
  }
}

}  // namespace

void check_bias_ids(const infer::Request& request, int vocabulary) {
  for (const auto& [id, bias] : request.logit_bias) {
    if (id >= 0 && id < vocabulary) continue;
    throw UsageError(
        fmt::format(
            "--logit-bias must name tokens from 0 to {}, got {}",
            vocabulary - 1, id
        )
    );
  }
}

int flag_number(std::int64_t value, const char* name, int least) {
  if (value < least || value > INT32_MAX) {
    throw UsageError(
        fmt::format(
            "{} must be from {} to {}, got {}", name, least, INT32_MAX, value
        )
    );
  }
  return static_cast<int>(value);
}

void SamplingFlags::declare(Args& args) {
  args.option("--max-tokens", max_tokens, "How many tokens at most");
  args.option(
      "--temp", temperature,
      fmt::format(
          "Temperature; 0 takes the most likely; {} unless given",
          usual_temperature
      )
  );
  args.option("--top-k", top_k, "Only the k most likely tokens; 0: all");
  args.option("--top-p", top_p, "Only the tokens that hold this probability");
  args.option(
      "--typical-p", typical_p,
      "Only tokens of usual surprise that hold this probability"
  );
  args.option(
      "--min-p", min_p, "Only tokens this likely beside the most likely"
  );
  args.option(
      "--repeat-penalty", repeat_penalty,
      "Above 1 makes tokens that came before less likely"
  );
  args.option(
      "--frequency-penalty", frequency_penalty,
      "Off a token's logit for each time it was made"
  );
  args.option(
      "--presence-penalty", presence_penalty,
      "Off a token's logit once it was made"
  );
  args.option(
      "--logit-bias", bias,
      "ID=VALUE is added to that token's logit (-inf forbids it); may be "
      "repeated"
  );
  args.option("--stop", stop, "End at this text; may be repeated");
}

infer::Request SamplingFlags::request(const Context& context) const {
  infer::Request out;
  out.max_tokens = flag_number(max_tokens, "--max-tokens", 1);
  out.sampling = {
      .temperature = temperature.value_or(usual_temperature),
      .top_k = flag_number(top_k, "--top-k"),
      .top_p = top_p,
      .typical_p = typical_p,
      .min_p = min_p,
      .repeat_penalty = repeat_penalty,
      .frequency_penalty = frequency_penalty,
      .presence_penalty = presence_penalty,
      .seed = context.common.seed_given ? context.common.seed
                                        : std::random_device()()
  };
  check_by_flag(out.sampling);
  for (const auto& b : bias) {
    const auto [id, value] = parse_bias(b);
    if (out.logit_bias.emplace(id, value).second) continue;
    throw UsageError(
        fmt::format("--logit-bias must name each token once, got {} twice", id)
    );
  }
  if (std::ranges::any_of(stop, &std::string::empty)) {
    throw UsageError("--stop must be some text, got none");
  }
  for (const std::string& text : stop) {
    if (text.size() <= text::kMaxStopBytes) continue;
    throw UsageError(
        fmt::format(
            "--stop must have at most {} bytes, got {}", text::kMaxStopBytes,
            text.size()
        )
    );
  }
  out.stop = stop;
  return out;
}

void SamplingFlags::note_idle(const Context& context) const {
  if (temperature || usual_temperature > 0) return;
  const std::pair<bool, const char*> flags[] = {
      {top_k != 0, "--top-k"},
      {top_p != 1, "--top-p"},
      {typical_p != 1, "--typical-p"},
      {min_p != 0, "--min-p"},
      {context.common.seed_given, "--seed"}
  };
  std::vector<const char*> idle;
  for (const auto& [given, name] : flags) {
    if (given) idle.push_back(name);
  }
  if (idle.empty()) return;
  context.note(
      fmt::format(
          "without --temp the most likely token is taken each time: {} {} "
          "nothing",
          fmt::join(idle, ", "), idle.size() == 1 ? "does" : "do"
      )
  );
}

void GrammarFlags::declare(Args& args) {
  args.option("--schema", schema, "JSON schema file that the text must keep");
  args.option("--regex", regex, "Pattern that the whole text must match");
  args.option("--grammar", gbnf, "GBNF grammar file that the text must keep");
}

GrammarFlags::Read GrammarFlags::read() const {
  const int given = (schema ? 1 : 0) + (regex ? 1 : 0) + (gbnf ? 1 : 0);
  if (given > 1) {
    throw UsageError("give one of --schema, --regex and --grammar");
  }
  if (schema) {
    const Json json = read_json(*schema, "schema");
    const auto made =
        of_flag(*schema, [&] { return text::grammar_of_schema(json); });
    return {made, to_json_line(json)};
  }
  if (regex) {
    const auto made =
        of_flag("--regex", [&] { return text::grammar_of_regex(*regex); });
    return {made, *regex};
  }
  if (gbnf) {
    require_input_file(*gbnf, "grammar");
    const std::string text = read_text(*gbnf);
    const auto made =
        of_flag(*gbnf, [&] { return text::grammar_of_gbnf(text); });
    return {made, text};
  }
  return {};
}

}  // namespace hearth::cli
