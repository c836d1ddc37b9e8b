// Tool-call dialogues with ground truth: a request, the one right call, its
// result, the answer; and requests for which calling a tool would be wrong.
#include <algorithm>
#include <utility>
#include <vector>

#include "hearth/data/synth/tool_scenes_impl.h"
#include "hearth/data/synth/tool_talk_impl.h"

namespace hearth::data::synth {
namespace {

// Writes the messages of one dialogue, one after another.
class Transcript {
 public:
  explicit Transcript(std::string& out) : out_(out) {}

  void say(std::string_view role, std::string_view text) {
    open(role);
    append_json_field(out_, "content", text);
    out_ += '}';
  }
  void call(const Tool& tool, const Scene& scene, const std::string& id) {
    open("assistant");
    append_json_field(out_, "content", "");
    out_ += R"(, "tool_calls": [{"type": "function", )";
    append_json_field(out_, "id", id);
    out_ += R"(, "function": {)";
    append_json_field(out_, "name", tool.name);
    out_ += R"(, "arguments": )" + scene.arguments + "}}]}";
    open("tool");
    append_json_field(out_, "name", tool.name);
    out_ += ", ";
    append_json_field(out_, "tool_call_id", id);
    out_ += ", ";
    append_json_field(out_, "content", scene.result);
    out_ += '}';
  }

 private:
  void open(std::string_view role) {
    if (!std::exchange(first_, false)) out_ += ", ";
    out_ += '{';
    append_json_field(out_, "role", role);
    out_ += ", ";
  }
  std::string& out_;
  bool first_ = true;
};

// Nine letters and digits, which some templates insist on.
std::string call_id(Dice& dice) {
  static constexpr std::string_view kAlphabet =
      "abcdefghijklmnopqrstuvwxyz0123456789";
  std::string id;
  for (int i = 0; i < 9; ++i) id += kAlphabet[dice.below(kAlphabet.size())];
  return id;
}

enum class Shape { kCall, kClarify, kTalk, kMissing };

Shape pick_shape(Dice& dice) {
  const std::size_t roll = dice.below(10);
  if (roll < 6) return Shape::kCall;
  if (roll < 7) return Shape::kClarify;
  return roll < 9 ? Shape::kTalk : Shape::kMissing;
}

// `count` different tools of the catalog, `keep` first when it is one.
std::vector<const Tool*> offer(
    Dice& dice,
    const Tool* keep,
    const Tool* avoid,
    std::size_t count
) {
  const auto all = tool_catalog();
  std::vector<const Tool*> offered;
  if (keep != nullptr) offered.push_back(keep);
  while (offered.size() < count) {
    const Tool* tool = &all[dice.below(all.size())];
    const bool taken =
        std::find(offered.begin(), offered.end(), tool) != offered.end();
    if (!taken && tool != avoid) offered.push_back(tool);
  }
  for (std::size_t i = offered.size(); i > 1; --i) {
    std::swap(offered[i - 1], offered[dice.below(i)]);
  }
  return offered;
}

void append_offer(std::string& out, const std::vector<const Tool*>& tools) {
  out += R"("tools": [)";
  for (std::size_t i = 0; i < tools.size(); ++i) {
    if (i > 0) out += ", ";
    out += tools[i]->schema;
  }
  out += ']';
}

void talk(Dice& dice, Transcript& transcript) {
  const auto [question, answer] = small_talk(dice);
  transcript.say("user", question);
  transcript.say("assistant", answer);
}

void act(
    Dice& dice,
    Transcript& transcript,
    const Tool& tool,
    const Scene& scene,
    bool clarify
) {
  if (clarify) {
    transcript.say("user", scene.vague);
    transcript.say("assistant", scene.question);
    transcript.say("user", scene.reply);
  } else {
    transcript.say("user", scene.request);
  }
  transcript.call(tool, scene, call_id(dice));
  transcript.say("assistant", scene.answer);
}

}  // namespace

void append_tools(RandomKey key, std::string& out) {
  Dice dice(key);
  const auto all = tool_catalog();
  const Shape shape = pick_shape(dice);
  const Tool& tool = all[dice.below(all.size())];
  const Scene scene = tool.play(dice);
  const bool calls = shape == Shape::kCall || shape == Shape::kClarify;
  const std::size_t count = static_cast<std::size_t>(dice.between(2, 6));
  const auto offered = offer(
      dice, calls ? &tool : nullptr, shape == Shape::kMissing ? &tool : nullptr,
      count
  );

  out += R"({"messages": [)";
  Transcript transcript(out);
  if (dice.one_in(2)) transcript.say("system", system_line(dice));
  switch (shape) {
    case Shape::kCall:
    case Shape::kClarify: {
      const bool clarify = shape == Shape::kClarify && !scene.vague.empty();
      act(dice, transcript, tool, scene, clarify);
      if (dice.one_in(4)) talk(dice, transcript);
      if (dice.one_in(5)) {
        const Tool& second = *offered[dice.below(offered.size())];
        act(dice, transcript, second, second.play(dice), false);
      }
      break;
    }
    case Shape::kTalk:
      talk(dice, transcript);
      break;
    case Shape::kMissing:
      transcript.say("user", scene.request);
      transcript.say("assistant", refusal(dice, tool.ability));
      break;
  }
  out += "], ";
  append_offer(out, offered);
  out += R"(, "expect": )";
  if (calls) {
    out += R"({"tool": ")" + std::string(tool.name) + R"(", "arguments": )" +
           scene.arguments + "}}";
  } else {
    out += "null}";
  }
}

}  // namespace hearth::data::synth
