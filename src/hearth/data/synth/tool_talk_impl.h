#pragma once
// What is said in a tool dialogue when no tool is to be called.
#include <string>
#include <string_view>
#include <utility>

#include "hearth/data/synth/parts_impl.h"

namespace hearth::data::synth {

std::string_view system_line(Dice& dice);
// A question that needs no tool, and its answer.
std::pair<std::string, std::string> small_talk(Dice& dice);
// What to say when the one tool that could help is not offered.
std::string refusal(Dice& dice, std::string_view ability);

}  // namespace hearth::data::synth
