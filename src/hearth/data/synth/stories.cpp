// Small stories: a cast, a plot, and one way of telling each of its steps.
#include "hearth/data/synth/parts_impl.h"
#include "hearth/data/synth/story_plots_impl.h"
#include "hearth/data/synth/story_words_impl.h"

namespace hearth::data::synth {
namespace {

struct Person {
  bool girl;
  std::string_view name;
};

Person cast_person(Dice& dice) {
  const bool girl = dice.one_in(2);
  return {girl, dice.pick(girl ? Words(kGirls) : Words(kBoys))};
}

void set_pronouns(
    Slots& slots,
    const Person& person,
    char he,
    char him,
    char his
) {
  slots.set(he, person.girl ? "she" : "he");
  slots.set(him, person.girl ? "her" : "him");
  slots.set(his, person.girl ? "her" : "his");
}

// What the hero is: a child, or an animal with a name.
std::string hero_kind(Dice& dice, bool girl) {
  if (dice.one_in(3)) return std::string(dice.pick(Words(kAnimals)));
  static constexpr std::string_view kSizes[] = {"little ", "young ", "small "};
  return std::string(dice.pick(kSizes)) + (girl ? "girl" : "boy");
}

// Slots x, z, i and j mean something different in each plot.
void set_subject(Slots& slots, Dice& dice, std::size_t plot) {
  static constexpr Words kSubjects[] = {
      kHidingPlaces, kToys,   kFears,  kBuilt, kPets,
      kBreakables,   kSkills, kPlants, kFoods,
  };
  slots.set('x', dice.pick(kSubjects[plot]));
  slots.set('z', dice.pick(Words(kMaterials)));
  slots.set('i', dice.pick(Words(kMishaps)));
  slots.set('j', dice.pick(Words(kHidingPlaces)));
}

Slots make_cast(Dice& dice, std::size_t plot) {
  Slots slots;
  const Person hero = cast_person(dice);
  Person other = cast_person(dice);
  while (other.name == hero.name) other = cast_person(dice);
  slots.set('H', hero.name);
  slots.set('F', other.name);
  set_pronouns(slots, hero, 'h', 'm', 's');
  set_pronouns(slots, other, 'f', 'n', 't');
  const std::string kind = hero_kind(dice, hero.girl);
  slots.set('a', std::string(dice.pick(Words(kTraits))) + " " + kind);
  slots.set('p', dice.pick(Words(kPlaces)));
  do {
    slots.set('q', dice.pick(Words(kPlaces)));
  } while (slots['q'] == slots['p']);
  slots.set('o', dice.pick(Words(kToys)));
  slots.set('d', dice.pick(Words(kAnimals)));
  slots.set('c', dice.pick(Words(kColours)));
  slots.set('w', dice.pick(Words(kWeather)));
  slots.set('y', dice.pick(Words(kSeasons)));
  slots.set('g', dice.pick(Words(kHappy)));
  slots.set('b', dice.pick(Words(kSad)));
  slots.set('v', dice.pick(Words(kSaid)));
  slots.set('r', dice.pick(Words(kRelations)));
  slots.set('E', dice.pick(Words(kElders)));
  set_subject(slots, dice, plot);
  return slots;
}

}  // namespace

void append_story(RandomKey key, std::string& out) {
  Dice dice(key);
  const std::size_t plot = dice.below(std::size(kPlots));
  const Slots slots = make_cast(dice, plot);
  std::string text = filled(dice.pick(Words(kOpening)), slots);
  text += ' ';
  fill(text, dice.pick(Words(kDay)), slots);
  for (std::size_t i = 0; i < std::size(kPlots[plot].steps); ++i) {
    // A new paragraph before the turn of the story.
    text += i == 2 || i == 4 ? "\n\n" : " ";
    fill(text, dice.pick(kPlots[plot].steps[i]), slots);
    if (i + 1 < std::size(kPlots[plot].steps) && dice.one_in(4)) {
      text += ' ';
      fill(text, dice.pick(Words(kDetails)), slots);
    }
  }
  text += ' ';
  fill(text, dice.pick(Words(kEnding)), slots);
  out += '{';
  append_json_field(out, "text", text);
  out += '}';
}

}  // namespace hearth::data::synth
