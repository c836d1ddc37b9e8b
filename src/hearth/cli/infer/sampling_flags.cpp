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
  throw UsageError(
      fmt::format(
          "{} {}, got {}", fault->field->flag, fault->field->range.must,
          fault->got
      )
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
  // The parser keeps the places of these.
  const auto fields = infer::sampling_fields();
  numbers.resize(fields.size());
  whole_numbers.resize(fields.size());
  infer::SamplerOptions usual;
  usual.temperature = usual_temperature;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const infer::SamplingField& field = fields[i];
    const auto help =
        fmt::format("{}; {} unless given", field.help, field.get(usual));
    if (field.whole()) {
      args.option(field.flag, whole_numbers[i], help);
    } else {
      args.option(field.flag, numbers[i], help);
    }
  }
  args.option(
      "--logit-bias", bias,
      "ID=VALUE is added to that token's logit (-inf forbids it); may be "
      "repeated"
  );
  args.option("--stop", stop, "End at this text; may be repeated");
}

infer::GivenSampling SamplingFlags::given() const {
  infer::GivenSampling out;
  const auto fields = infer::sampling_fields();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    out.give(i, numbers[i]);
    if (whole_numbers[i]) {
      out.give(i, flag_number(*whole_numbers[i], fields[i].flag));
    }
  }
  return out;
}

infer::Request SamplingFlags::request(const Context& context) const {
  infer::Request out;
  out.max_tokens = flag_number(max_tokens, "--max-tokens", 1);
  out.sampling.temperature = usual_temperature;
  given().apply(out.sampling);
  out.sampling.seed =
      context.common.seed_given ? context.common.seed : std::random_device()();
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
  const infer::GivenSampling flags = given();
  if (flags.gave("temperature") || usual_temperature > 0) return;
  std::vector<const char*> idle;
  for (const infer::SamplingField& field : infer::sampling_fields()) {
    if (field.narrows && flags.gave(field.name)) idle.push_back(field.flag);
  }
  if (context.common.seed_given) idle.push_back("--seed");
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
