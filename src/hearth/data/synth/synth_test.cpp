#include "hearth/data/synth/synth.h"

#include <cctype>
#include <set>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/base/json.h"

namespace hearth::data {
namespace {

std::string record(SynthKind kind, std::uint64_t seed, std::uint64_t index) {
  std::string out;
  append_synth_record(kind, seed, index, out);
  return out;
}

// A calculator of its own: + - * / and brackets over integers.
class Calculator {
 public:
  explicit Calculator(std::string_view text) : text_(text) {}
  std::int64_t value() {
    std::int64_t sum = term();
    while (peek() == '+' || peek() == '-') {
      sum += take() == '+' ? term() : -term();
    }
    return sum;
  }

 private:
  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  char take() {
    const char c = peek();
    ++at_;
    return c;
  }
  std::int64_t term() {
    std::int64_t product = factor();
    while (peek() == '*') {
      take();
      product *= factor();
    }
    return product;
  }
  std::int64_t factor() {
    if (peek() == '(') {
      take();
      const std::int64_t inner = value();
      take();
      return inner;
    }
    if (peek() == '-') {
      take();
      return -factor();
    }
    std::int64_t number = 0;
    while (std::isdigit(static_cast<unsigned char>(peek()))) {
      number = number * 10 + (take() - '0');
      if (at_ < text_.size() && text_[at_] == ' ') break;
    }
    return number;
  }
  std::string_view text_;
  std::size_t at_ = 0;
};

// Every "expression = number" of a worked solution must hold.
void check_equations(const std::string& steps) {
  const std::string allowed = "0123456789 +-*()";
  for (std::size_t at = steps.find(" = "); at != std::string::npos;
       at = steps.find(" = ", at + 1)) {
    std::size_t begin = at;
    while (begin > 0 && allowed.find(steps[begin - 1]) != std::string::npos) {
      --begin;
    }
    std::size_t end = at + 3;
    while (end < steps.size() &&
           (std::isdigit(static_cast<unsigned char>(steps[end])) ||
            (steps[end] == '-' && end == at + 3))) {
      ++end;
    }
    const std::string left = steps.substr(begin, at - begin);
    const bool plain = begin == 0 || steps[begin - 1] != '/';
    const std::size_t first = left.find_first_not_of(' ');
    // "12 = 1 * 8 + 4" has its expression on the right; skip those with a
    // word, a division or a bracketed remark on the left.
    if (!plain || first == std::string::npos ||
        !(std::isdigit(static_cast<unsigned char>(left[first])) ||
          left[first] == '(' || left[first] == '-') ||
        left.find("()") != std::string::npos) {
      continue;
    }
    const std::string right =
        steps.substr(at + 3, steps.find_first_of(".,\n", at) - at - 3);
    if (right.find_first_not_of(allowed) != std::string::npos) continue;
    EXPECT_EQ(Calculator(left).value(), Calculator(right).value())
        << left << " = " << right << " in\n"
        << steps;
  }
}

TEST(SynthArith, AnswersAndStepsAreRight) {
  int plain = 0;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    const Json made = Json::parse(record(SynthKind::kArith, 7, i));
    const std::string prompt = made["prompt"], steps = made["completion"];
    const std::string answer = made["answer"];
    EXPECT_TRUE(steps.ends_with("The answer is " + answer + ".")) << steps;
    check_equations(steps);
    // Where the prompt is an expression, work it out from the prompt alone.
    const std::size_t begin = prompt.find_first_of("0123456789(");
    const std::size_t end = prompt.find_last_of("0123456789)");
    const std::string inner = prompt.substr(begin, end + 1 - begin);
    if (inner.find_first_not_of("0123456789 +-*()") == std::string::npos) {
      EXPECT_EQ(std::to_string(Calculator(inner).value()), answer) << prompt;
      ++plain;
    } else if (const auto over = inner.find(" / ");
               over != std::string::npos &&
               inner.find_first_not_of("0123456789 /") == std::string::npos) {
      const auto a = std::stoll(inner), b = std::stoll(inner.substr(over + 3));
      EXPECT_EQ(std::stoll(answer), a / b) << prompt;
      const auto rest = answer.find("remainder ");
      EXPECT_EQ(
          rest == std::string::npos ? 0 : std::stoll(answer.substr(rest + 10)),
          a % b
      ) << prompt;
    }
  }
  EXPECT_GT(plain, 1000);
}

TEST(SynthTools, ExpectedCallIsOfferedRightAndMade) {
  int calls = 0, none = 0;
  for (std::uint64_t i = 0; i < 800; ++i) {
    const Json made = Json::parse(record(SynthKind::kTools, 3, i));
    std::set<std::string> offered;
    const Json* schema = nullptr;
    for (const Json& tool : made["tools"]) {
      const std::string name = tool["function"]["name"];
      EXPECT_TRUE(offered.insert(name).second);
      const bool wanted = !made["expect"].is_null() &&
                          made["expect"]["tool"].get<std::string>() == name;
      if (wanted) schema = &tool["function"]["parameters"];
    }
    const Json* first = nullptr;
    for (const Json& message : made["messages"]) {
      if (!message.contains("tool_calls")) continue;
      const Json& call = message["tool_calls"][0]["function"];
      EXPECT_TRUE(offered.contains(call["name"]));
      if (first == nullptr) first = &call;
    }
    EXPECT_EQ(made["messages"].back()["role"], "assistant");
    if (made["expect"].is_null()) {
      EXPECT_EQ(first, nullptr);
      ++none;
      continue;
    }
    ++calls;
    ASSERT_NE(first, nullptr);
    ASSERT_NE(schema, nullptr);
    EXPECT_EQ((*first)["name"], made["expect"]["tool"]);
    EXPECT_EQ((*first)["arguments"], made["expect"]["arguments"]);
    for (const Json& name : (*schema)["required"]) {
      EXPECT_TRUE(made["expect"]["arguments"].contains(name));
    }
    for (const auto& [name, value] : made["expect"]["arguments"].items()) {
      const Json& wanted = (*schema)["properties"].at(name);
      const std::string type = wanted["type"];
      EXPECT_TRUE(
          (type == "string" && value.is_string()) ||
          (type == "integer" && value.is_number_integer()) ||
          (type == "number" && value.is_number()) ||
          (type == "boolean" && value.is_boolean()) ||
          (type == "array" && value.is_array())
      ) << type;
      if (wanted.contains("enum")) {
        const Json& choices = wanted["enum"];
        EXPECT_NE(
            std::find(choices.begin(), choices.end(), value), choices.end()
        );
      }
    }
    for (const Json& message : made["messages"]) {
      if (message["role"] == "tool") {
        EXPECT_TRUE(
            Json::parse(message["content"].get<std::string>()).is_object()
        );
      }
    }
  }
  EXPECT_GT(calls, 450);
  EXPECT_GT(none, 150);
}

TEST(SynthStories, ReadAsTextAndDiffer) {
  std::set<std::string> texts, words;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const Json made = Json::parse(record(SynthKind::kStories, 1, i));
    const std::string text = made["text"];
    EXPECT_EQ(text.find('$'), std::string::npos) << text;
    EXPECT_EQ(text.find("  "), std::string::npos) << text;
    for (const char* wrong :
         {" a a", " a e", " a i", " a o", " an b", " an s"}) {
      const std::size_t at = text.find(wrong);
      EXPECT_EQ(at, std::string::npos) << text.substr(at, 20);
    }
    EXPECT_GT(text.size(), 300u);
    texts.insert(text);
    std::string word;
    for (const char c : text) {
      if (std::isalpha(static_cast<unsigned char>(c))) {
        word += c;
      } else if (!word.empty()) {
        words.insert(std::exchange(word, ""));
      }
    }
  }
  EXPECT_EQ(texts.size(), 2000u);
  EXPECT_GT(words.size(), 700u);
}

TEST(Synth, RecordsDependOnSeedAndIndexOnly) {
  for (const SynthKind kind :
       {SynthKind::kStories, SynthKind::kArith, SynthKind::kTools}) {
    std::string all;
    for (std::uint64_t i = 0; i < 20; ++i) append_synth_record(kind, 5, i, all);
    std::string backwards;
    for (std::uint64_t i = 20; i-- > 0;) {
      backwards.insert(0, record(kind, 5, i));
    }
    EXPECT_EQ(all, backwards);
    EXPECT_NE(record(kind, 5, 0), record(kind, 6, 0));
    EXPECT_NE(record(kind, 5, 0), record(kind, 5, 1));
  }
}

TEST(Synth, KindsAreSpelledOut) {
  EXPECT_EQ(synth_kind("tools"), SynthKind::kTools);
  EXPECT_THROW(synth_kind("story"), UsageError);
}

}  // namespace
}  // namespace hearth::data
