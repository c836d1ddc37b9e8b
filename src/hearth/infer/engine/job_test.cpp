#include "hearth/infer/engine/job.h"

#include <map>

#include <gtest/gtest.h>

namespace hearth::infer {
namespace {

// A tokenizer whose decoder takes the space off a text's beginning: a piece for
// each visible character, a few longer ones, and special tokens.
struct Words {
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::map<std::string, std::int32_t> ids;

  explicit Words(const std::vector<std::string>& special = {}) {
    Json vocabulary = Json::object(), added = Json::array();
    const auto add = [&](const std::string& text) {
      const auto id = static_cast<std::int32_t>(ids.size());
      ids[text] = id;
      return id;
    };
    for (char c = '!'; c <= '~'; ++c) {
      const std::string text(1, c);
      vocabulary[text] = add(text);
    }
    for (const char* text : {"\u2581", "\u2581x", "<call>", "</s>"}) {
      vocabulary[text] = add(text);
    }
    for (const std::string& text : special) {
      added.push_back(
          {{"id", add(text)}, {"content", text}, {"special", true}}
      );
    }
    const Json file = {
        {"version", "1.0"},
        {"added_tokens", added},
        {"normalizer", nullptr},
        {"pre_tokenizer", nullptr},
        {"post_processor", nullptr},
        {"decoder",
         {{"type", "Sequence"},
          {"decoders",
           {{{"type", "Replace"},
             {"pattern", {{"String", "\u2581"}}},
             {"content", " "}},
            {{"type", "Fuse"}},
            {{"type", "Strip"},
             {"content", " "},
             {"start", 1},
             {"stop", 0}}}}}},
        {"model",
         {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}}
    };
    tokenizer = text::Tokenizer::from_json(to_json_line(file), "words");
  }

  std::vector<std::string> bytes() const {
    std::vector<std::string> out(ids.size());
    for (const auto& [text, id] : ids) {
      out[static_cast<std::size_t>(id)] = tokenizer->token_bytes(id);
    }
    return out;
  }
};

struct Told {
  std::string text;
  std::vector<std::string> texts;  // of each token
  Finish finish = Finish::cancelled;
};

// Asks for these pieces one after the other, as far as they are taken.
Told written(
    const Words& words,
    Request request,
    const std::vector<std::string>& pieces
) {
  const std::int32_t end = words.ids.at("</s>");
  if (request.prompt.empty()) request.prompt = {0};
  request.stop_ids = {end};
  Told told;
  Job job(
      1, request,
      [&](const Event& e) {
        if (e.kind == Event::Kind::token) {
          told.text += e.token.text;
          told.texts.push_back(e.token.text);
        }
        if (e.kind == Event::Kind::end) told.finish = e.finish;
      },
      words.tokenizer, text::grammar_vocabulary(words.bytes(), {end})
  );
  for (const std::string& piece : pieces) {
    std::vector<float> logits(words.ids.size(), 0);
    logits[static_cast<std::size_t>(words.ids.at(piece))] = 9;
    if (job.take(logits, 1000)) break;
  }
  return told;
}

std::vector<std::string> letters(const std::string& text) {
  std::vector<std::string> out;
  for (const char c : text) out.emplace_back(1, c);
  return out;
}

TEST(Job, ATextHeldToAGrammarKeepsItsFirstSpace) {
  const Words words;
  Request held;
  held.grammar = text::grammar_of_regex(" {2}x");
  const Told two = written(words, held, {"\u2581", "\u2581x", "</s>"});
  EXPECT_EQ(two.text, "  x");
  EXPECT_EQ(two.finish, Finish::stop);
  EXPECT_TRUE(text::is_whole_text(*held.grammar, two.text));
  // An answer that is free begins with a word.
  EXPECT_EQ(written(words, {}, {"\u2581x", "!", "</s>"}).text, "x!");
}

// The tokens that are looked at first say nothing of the text before them.
TEST(Job, ATextAfterManyBlanksKeepsItsFirstSpace) {
  const Words words({"<s>"});
  Request request;
  request.continues_prompt = true;
  request.prompt.assign(12, words.ids.at("<s>"));
  EXPECT_EQ(written(words, request, {"\u2581x", "</s>"}).text, "x");
  request.prompt.front() = words.ids.at("a");
  EXPECT_EQ(written(words, request, {"\u2581x", "</s>"}).text, " x");
}

TEST(Job, AStopStringEndsWhatTheGrammarMayEndAsItIsShown) {
  const Words words;
  Request held;
  held.grammar = text::grammar_of_regex(" x+y?z*");
  held.stop = {"z"};
  EXPECT_EQ(written(words, held, {"\u2581x", "x", "z", "z"}).text, " xx");
  // Without its space it would be none.
  held.grammar = text::grammar_of_regex("a| ab*");
  held.stop = {"b"};
  EXPECT_EQ(written(words, held, {"\u2581", "a", "b", "b"}).text, " a");
}

// Both what holds the text back and what lies everywhere in it.
TEST(Job, StopStringsThatTheGrammarNeedsAreText) {
  const Words words;
  Request held;
  held.grammar = text::grammar_of_regex("b_{300}x*");
  held.max_tokens = 1000;
  held.stop = {"b" + std::string(200, '_') + "!", "_", "x"};
  const std::string text = "b" + std::string(300, '_');
  const Told told = written(words, held, letters(text + "xx"));
  EXPECT_EQ(told.text, text);
  EXPECT_EQ(told.finish, Finish::stop);
  EXPECT_EQ(told.texts.size(), text.size() + 1);
}

// A reader of calls sees the mark in its place.
TEST(Job, TextBeforeASpecialTokenIsNotHeldPastIt) {
  const Words words({"<mark>"});
  Request request;
  request.stop = {"END"};
  request.max_tokens = 5;
  const Told told = written(words, request, {"a", "E", "<mark>", "N", "D"});
  EXPECT_EQ(told.texts, std::vector<std::string>({"a", "", "E", "N", "D"}));
  EXPECT_EQ(told.finish, Finish::length);
}

TEST(Job, AStopStringCutsNoCallThatHasBegun) {
  for (const bool special : {false, true}) {
    const Words words(
        special ? std::vector<std::string>{"<mark>"}
                : std::vector<std::string>{}
    );
    Request request;
    request.grammar =
        text::grammar_of_regex("\\{(Paris|Rome)\\}(;\\{Rome\\})*");
    request.grammar_after = special ? "<mark>" : "<call>";
    request.stop = {"Paris", ";", "!"};
    const auto said = [&](const std::string& before, const std::string& after) {
      auto pieces = letters(before);
      pieces.push_back(request.grammar_after);
      for (const auto& c : letters(after)) pieces.push_back(c);
      pieces.emplace_back("</s>");
      return written(words, request, pieces).text;
    };
    const std::string mark = special ? "" : "<call>";
    EXPECT_EQ(said("ab", "{Paris}"), "ab" + mark + "{Paris}");
    // It may end between two calls, and where no mark has come.
    EXPECT_EQ(said("ab", "{Paris};{Rome}"), "ab" + mark + "{Paris}");
    EXPECT_EQ(said("a!b", "{Paris}"), "a");
    EXPECT_EQ(said("Paris", "{Rome}"), "");
  }
}

}  // namespace
}  // namespace hearth::infer
