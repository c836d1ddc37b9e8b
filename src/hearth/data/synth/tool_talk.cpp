#include "hearth/data/synth/tool_talk_impl.h"

namespace hearth::data::synth {
namespace {

constexpr std::string_view kSystem[] = {
    "You are a helpful assistant. Use a tool when it is needed.",
    "Answer briefly. Call a tool only when the request needs one.",
    "You can call the tools you are given. Never invent a result.",
    "You are a careful assistant with access to tools.",
    "Help the user. If no tool fits, say so."
};

constexpr std::string_view kCapitals[][2] = {
    {"France", "Paris"},       {"Japan", "Tokyo"},       {"Kenya", "Nairobi"},
    {"Peru", "Lima"},          {"Norway", "Oslo"},       {"Egypt", "Cairo"},
    {"Germany", "Berlin"},     {"Spain", "Madrid"},      {"Ghana", "Accra"},
    {"Greece", "Athens"},      {"Cuba", "Havana"},       {"Poland", "Warsaw"},
    {"Portugal", "Lisbon"},    {"Austria", "Vienna"},    {"Vietnam", "Hanoi"},
    {"Ireland", "Dublin"},     {"Ecuador", "Quito"},     {"Canada", "Ottawa"},
    {"Australia", "Canberra"}, {"South Korea", "Seoul"}, {"Italy", "Rome"},
    {"Finland", "Helsinki"},   {"Sweden", "Stockholm"},  {"Chile", "Santiago"}
};

constexpr std::string_view kOpposites[][2] = {
    {"hot", "cold"},   {"big", "small"},  {"fast", "slow"}, {"early", "late"},
    {"happy", "sad"},  {"light", "dark"}, {"rich", "poor"}, {"loud", "quiet"},
    {"empty", "full"}, {"new", "old"},    {"wet", "dry"},   {"soft", "hard"}
};

constexpr std::string_view kFacts[][2] = {
    {"Why is the sky blue?",
     "Air scatters blue light from the sun more than red light, so blue "
     "reaches us from everywhere."},
    {"What do bees make?", "Bees make honey and wax."},
    {"How many legs does a spider have?", "A spider has eight legs."},
    {"What is the largest planet of our solar system?",
     "Jupiter is the largest planet of our solar system."},
    {"Who wrote Romeo and Juliet?",
     "William Shakespeare wrote Romeo and Juliet."},
    {"What is ice?", "Ice is frozen water."},
    {"Thanks!", "You are welcome."},
    {"Thank you, that helps.", "I am glad it helps."},
    {"Hello!", "Hello! What can I do for you?"},
    {"Who are you?",
     "I am an assistant. I can answer questions and use tools."},
    {"Tell me a joke.", "Why did the bicycle fall over? It was two tired."},
    {"What is the freezing point of water in celsius?",
     "Water freezes at 0 degrees celsius."},
    {"How many days are in a week?", "A week has seven days."},
    {"What is a synonym for quick?", "A synonym for quick is fast."},
    {"Which animal is called the king of the jungle?",
     "The lion is called the king of the jungle."},
    {"What do plants need to grow?",
     "Plants need light, water, air and nutrients from the soil."},
    {"What is the opposite direction of north?", "South."},
    {"Can you keep a secret?",
     "I do not pass on what you tell me, but please do not share passwords."}
};

constexpr std::string_view kRefusals[] = {
    "I am sorry, none of my tools can $a.",
    "I cannot $a with the tools I have.",
    "I have no tool to $a, so I cannot help with that."
};

std::pair<std::string, std::string> sum(Dice& dice) {
  const std::int64_t a = dice.between(1, 20), b = dice.between(1, 20);
  Slots s;
  s.set('a', std::to_string(a));
  s.set('b', std::to_string(b));
  s.set('c', std::to_string(a + b));
  return {filled("What is $a plus $b?", s), filled("$a plus $b is $c.", s)};
}

}  // namespace

std::string_view system_line(Dice& dice) {
  return dice.pick(Words(kSystem));
}

std::pair<std::string, std::string> small_talk(Dice& dice) {
  Slots s;
  switch (dice.below(4)) {
    case 0: {
      const auto& row = dice.pick(kCapitals);
      s.set('a', row[0]);
      s.set('b', row[1]);
      return {
          filled("What is the capital of $a?", s),
          filled("The capital of $a is $b.", s)
      };
    }
    case 1: {
      const auto& row = dice.pick(kOpposites);
      s.set('a', row[0]);
      s.set('b', row[1]);
      return {
          filled("What is the opposite of $a?", s),
          filled("The opposite of $a is $b.", s)
      };
    }
    case 2:
      return sum(dice);
    default: {
      const auto& row = dice.pick(kFacts);
      return {std::string(row[0]), std::string(row[1])};
    }
  }
}

std::string refusal(Dice& dice, std::string_view ability) {
  Slots s;
  s.set('a', ability);
  return filled(dice.pick(Words(kRefusals)), s);
}

}  // namespace hearth::data::synth
