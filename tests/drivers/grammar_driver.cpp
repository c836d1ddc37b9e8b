// Masks at work for tools/check_grammar.py: one JSON object per line in, one
// per line out.
//   {"kind": "schema"|"regex"|"gbnf"|"json", "source", "seed", "count",
//    "tokens"}   texts by random choice among the allowed tokens
//   {"kind", "source", "texts"}   which of these the grammar takes
//   {"kind", "source", "time": text}   what a mask costs along this text
//   {"kind", "source", "seed", "walk": tokens}   and along a random one
// Each answer says how long the grammar took, and how many units of effort.
// With a tokenizer as its argument its vocabulary is used; without, every byte
// and some pieces of JSON.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "hearth/base/effort.h"
#include "hearth/base/error.h"
#include "hearth/base/json.h"
#include "hearth/text/grammar/grammar.h"
#include "hearth/text/tokenizer/tokenizer.h"

namespace {

using hearth::Json;
using hearth::text::Grammar;
using hearth::text::GrammarState;

struct Vocabulary {
  std::vector<std::string> bytes;
  std::vector<std::int32_t> of_byte = std::vector<std::int32_t>(256, -1);
  std::int32_t stop = 0;
  std::shared_ptr<const hearth::text::GrammarVocabulary> made;
  std::shared_ptr<const hearth::text::Tokenizer> tokenizer;

  explicit Vocabulary(const char* path) {
    if (path) {
      tokenizer = hearth::text::Tokenizer::load(path);
      for (std::size_t i = 0; i < tokenizer->id_limit(); ++i) {
        bytes.push_back(tokenizer->token_bytes(static_cast<std::int32_t>(i)));
      }
    } else {
      for (int i = 0; i < 256; ++i) bytes.emplace_back(1, static_cast<char>(i));
      for (const char* piece : {"{\"",      "\":",        "\": ",
                                "\",",      "\", \"",     "\"}",
                                "}}",       "]}",         "],",
                                "[[",       "[]",         "{}",
                                "true",     "false",      "null",
                                ", ",       "name",       "the",
                                "12",       "0.5",        "-1",
                                "e+",       "\\n",        "\xC3\xA9t",
                                "\xE2\x82", "\x82\xAC\"", "\xF0\x9F\x98\x80",
                                "\n  ",     "a\",",       "\"a\"",
                                "2024-",    "@ex."}) {
        bytes.emplace_back(piece);
      }
    }
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i].size() != 1) continue;
      of_byte[static_cast<unsigned char>(bytes[i][0])] =
          static_cast<std::int32_t>(i);
    }
    stop = static_cast<std::int32_t>(bytes.size());
    bytes.emplace_back();
    made = hearth::text::grammar_vocabulary(bytes, {stop});
  }
};

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin)
      .count();
}

std::shared_ptr<const Grammar> grammar_of(
    const Json& request,
    hearth::Effort& effort
) {
  const std::string kind = request["kind"].get<std::string>();
  if (kind == "json") return hearth::text::grammar_of_any_json();
  const Json& source = request["source"];
  if (kind == "schema") {
    return hearth::text::grammar_of_schema(
        source, {.strict = request.value("strict", true), .effort = &effort}
    );
  }
  const std::string text = source.get<std::string>();
  return kind == "regex" ? hearth::text::grammar_of_regex(text, &effort)
                         : hearth::text::grammar_of_gbnf(text, &effort);
}

// Uniform choice would hardly ever close a bracket: half of the time, and
// always once the text is long, tokens that end something are preferred.
std::string random_text(
    const std::shared_ptr<const Grammar>& grammar,
    const Vocabulary& vocabulary,
    std::mt19937& random,
    int tokens,
    bool& ended
) {
  const std::string closers = "\"}],0123456789:";
  GrammarState state(grammar, vocabulary.made);
  std::string text;
  std::vector<float> logits(vocabulary.bytes.size());
  for (int i = 0; i < tokens * 4 && !state.must_end(); ++i) {
    std::fill(logits.begin(), logits.end(), 0.0F);
    state.mask(logits);
    std::vector<std::int32_t> all, ends;
    for (std::size_t id = 0; id < logits.size(); ++id) {
      if (std::isinf(logits[id])) continue;
      all.push_back(static_cast<std::int32_t>(id));
      const std::string& bytes = vocabulary.bytes[id];
      if (bytes.empty() ||
          (bytes.size() == 1 && closers.find(bytes[0]) != std::string::npos)) {
        ends.push_back(static_cast<std::int32_t>(id));
      }
    }
    const bool close = !ends.empty() && (i >= tokens || random() % 2 == 0);
    std::int32_t id = 0;
    if (i >= tokens * 2 && !ends.empty()) {
      // The first of the closers that is allowed.
      id = *std::min_element(ends.begin(), ends.end(), [&](auto a, auto b) {
        const auto rank = [&](std::int32_t token) {
          const std::string& s =
              vocabulary.bytes[static_cast<std::size_t>(token)];
          return s.empty() ? 0 : closers.find(s[0]) + 1;
        };
        return rank(a) < rank(b);
      });
    } else {
      const auto& from = close ? ends : all;
      id = from[random() % from.size()];
    }
    state.accept(id);
    if (id == vocabulary.stop) break;
    text += vocabulary.bytes[static_cast<std::size_t>(id)];
  }
  ended = state.must_end();
  return text;
}

bool accepts(
    const std::shared_ptr<const Grammar>& grammar,
    const Vocabulary& vocabulary,
    const std::string& text
) {
  GrammarState state(grammar, vocabulary.made);
  try {
    for (const char c : text) {
      state.accept(vocabulary.of_byte[static_cast<unsigned char>(c)]);
    }
  } catch (const hearth::Error&) {
    return false;
  }
  return state.may_end();
}

// One request after another over the same grammar, as a server sees them.
Json time_masks(
    const std::shared_ptr<const Grammar>& grammar,
    const Vocabulary& vocabulary,
    const std::string& text
) {
  Json rounds = Json::array();
  const auto ids = vocabulary.tokenizer->encode(text, {.add_special = false});
  std::vector<float> logits(vocabulary.bytes.size());
  for (int round = 0; round < 3; ++round) {
    GrammarState state(grammar, vocabulary.made);
    std::vector<double> ms;
    for (std::size_t i = 0; i <= ids.size(); ++i) {
      std::fill(logits.begin(), logits.end(), 0.0F);
      const auto begin = Clock::now();
      state.mask(logits);
      if (i < ids.size()) state.accept(ids[i]);
      ms.push_back(
          std::chrono::duration<double, std::milli>(Clock::now() - begin)
              .count()
      );
    }
    double sum = 0;
    for (const double one : ms) sum += one;
    const double most = *std::max_element(ms.begin(), ms.end());
    std::nth_element(
        ms.begin(), ms.begin() + static_cast<long>(ms.size() / 2), ms.end()
    );
    rounds.push_back(
        {{"masks", ms.size()},
         {"mean_ms", sum / static_cast<double>(ms.size())},
         {"median_ms", ms[ms.size() / 2]},
         {"max_ms", most}}
    );
  }
  return rounds;
}

// The dearest step of a random text, its beginning too.
Json time_walk(
    const std::shared_ptr<const Grammar>& grammar,
    const Vocabulary& vocabulary,
    std::mt19937& random,
    int tokens
) {
  double most = 0, sum = 0;
  auto begin = Clock::now();
  GrammarState state(grammar, vocabulary.made);
  const double first = ms_since(begin);
  std::vector<float> logits(vocabulary.bytes.size());
  Json result = Json::object();
  int made = 0;
  try {
    for (; made < tokens && !state.must_end(); ++made) {
      std::fill(logits.begin(), logits.end(), 0.0F);
      begin = Clock::now();
      state.mask(logits);
      std::vector<std::int32_t> allowed;
      for (std::size_t id = 0; id < logits.size(); ++id) {
        if (!std::isinf(logits[id]) &&
            static_cast<std::int32_t>(id) != vocabulary.stop) {
          allowed.push_back(static_cast<std::int32_t>(id));
        }
      }
      if (!allowed.empty()) state.accept(allowed[random() % allowed.size()]);
      const double took = ms_since(begin);
      most = std::max(most, took);
      sum += took;
      if (allowed.empty()) break;
    }
  } catch (const hearth::Error& error) {
    result["error"] = error.what();
    most = std::max(most, ms_since(begin));
  }
  result.update(
      {{"begin_ms", first}, {"max_ms", most}, {"sum_ms", sum}, {"tokens", made}}
  );
  return result;
}

Json answer(const Json& request, const Vocabulary& vocabulary) {
  Json result = Json::object();
  hearth::Effort effort;
  const auto begin = Clock::now();
  std::shared_ptr<const Grammar> grammar;
  try {
    grammar = grammar_of(request, effort);
  } catch (const hearth::Error& error) {
    result["error"] = error.what();
  }
  result["ms"] = ms_since(begin);
  result["units"] = hearth::Effort::kMost - effort.left();
  if (!grammar) return result;
  if (request.contains("walk")) {
    std::mt19937 random(request["seed"].get<unsigned>());
    result["walk"] =
        time_walk(grammar, vocabulary, random, request["walk"].get<int>());
  }
  if (request.contains("texts")) {
    Json taken = Json::array();
    for (const Json& text : request["texts"]) {
      taken.push_back(accepts(grammar, vocabulary, text.get<std::string>()));
    }
    result["accepts"] = taken;
  }
  if (request.contains("time")) {
    result["rounds"] =
        time_masks(grammar, vocabulary, request["time"].get<std::string>());
  }
  if (request.contains("count")) {
    std::mt19937 random(request["seed"].get<unsigned>());
    Json made = Json::array();
    for (int i = 0; i < request["count"].get<int>(); ++i) {
      bool ended = false;
      const std::string text = random_text(
          grammar, vocabulary, random, request["tokens"].get<int>(), ended
      );
      made.push_back({{"text", text}, {"ended", ended}});
    }
    result["made"] = made;
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const Vocabulary vocabulary(argc > 1 ? argv[1] : nullptr);
  std::string line;
  while (std::getline(std::cin, line)) {
    Json result;
    try {
      result = answer(hearth::parse_json(line, "request"), vocabulary);
    } catch (const std::exception& error) {
      result = {{"error", error.what()}};
    }
    std::puts(hearth::to_json_line(result).c_str());
    std::fflush(stdout);
  }
}
