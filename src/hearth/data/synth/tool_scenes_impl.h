#pragma once
// Tools a dialogue can offer, and scenes that need one of them.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "hearth/data/synth/parts_impl.h"

namespace hearth::data::synth {

// One request, the one right call for it, what comes back, what to say.
struct Scene {
  std::string request;
  std::string arguments;  // JSON object
  std::string result;     // JSON object
  std::string answer;
  // The same request with something missing; the question that asks for it;
  // the reply. Empty where the tool has no such scene.
  std::string vague, question, reply;
};

struct Tool {
  std::string_view name;
  std::string_view schema;  // JSON, as a chat template takes it
  Scene (*play)(Dice&);
  std::string_view ability;  // "tell the weather", for when it is missing
};

std::span<const Tool> tool_catalog();

Scene play_weather(Dice& dice);
Scene play_currency(Dice& dice);
Scene play_timer(Dice& dice);
Scene play_event(Dice& dice);
Scene play_message(Dice& dice);
Scene play_flights(Dice& dice);
Scene play_music(Dice& dice);
Scene play_stock(Dice& dice);
Scene play_translation(Dice& dice);
Scene play_recipe(Dice& dice);
Scene play_light(Dice& dice);
Scene play_table(Dice& dice);
Scene play_shopping(Dice& dice);
Scene play_units(Dice& dice);
Scene play_time_in(Dice& dice);
Scene play_route(Dice& dice);

}  // namespace hearth::data::synth
