#include "hearth/data/synth/tool_scenes_impl.h"

namespace hearth::data::synth {
namespace {

constexpr std::string_view kCities[] = {
    "Paris",  "Tokyo",  "Nairobi", "Lima",   "Oslo",   "Toronto", "Cairo",
    "Mumbai", "Berlin", "Sydney",  "Seoul",  "Madrid", "Chicago", "Prague",
    "Lagos",  "Quito",  "Dublin",  "Hanoi",  "Vienna", "Boston",  "Accra",
    "Zurich", "Athens", "Havana",  "Manila", "Warsaw", "Denver",  "Lisbon"
};
constexpr std::string_view kNames[] = {"Alice",  "Bob",   "Carla", "David",
                                       "Elena",  "Frank", "Grace", "Hassan",
                                       "Ida",    "Jorge", "Kenji", "Laura",
                                       "Mehmet", "Nina",  "Oleg",  "Priya"};
constexpr std::string_view kMonthDays[] = {
    "2026-01-15", "2026-02-03", "2026-03-21", "2026-04-09",
    "2026-05-30", "2026-06-12", "2026-07-04", "2026-08-18",
    "2026-09-27", "2026-10-05", "2026-11-11", "2026-12-24"
};

std::string two(std::int64_t n) {
  return (n < 10 ? "0" : "") + std::to_string(n);
}

std::string clock(Dice& dice) {
  return two(dice.between(7, 21)) + ":" + two(dice.between(0, 11) * 5);
}

// Two different words of a list, in slots a and b.
void set_pair(Slots& slots, Dice& dice, Words words, char a, char b) {
  const std::size_t i = dice.below(words.size());
  const std::size_t j = (i + 1 + dice.below(words.size() - 1)) % words.size();
  slots.set(a, words[i]);
  slots.set(b, words[j]);
}

void set_number(Slots& slots, char slot, std::int64_t value) {
  slots.set(slot, std::to_string(value));
}

struct Script {
  Words requests;
  std::string_view arguments, result;
  Words answers;
  std::string_view vague, question, reply;
};

Scene perform(Dice& dice, const Slots& slots, const Script& script) {
  Scene scene;
  scene.request = filled(dice.pick(script.requests), slots);
  scene.arguments = filled(script.arguments, slots);
  scene.result = filled(script.result, slots);
  scene.answer = filled(dice.pick(script.answers), slots);
  scene.vague = filled(script.vague, slots);
  scene.question = filled(script.question, slots);
  scene.reply = filled(script.reply, slots);
  return scene;
}

}  // namespace

Scene play_weather(Dice& dice) {
  static constexpr std::string_view kSky[] = {
      "sunny", "cloudy", "rainy", "snowy", "windy", "foggy", "stormy"
  };
  static constexpr std::string_view kRequests[] = {
      "What is the weather in $c right now? In $u, please.",
      "How warm is it in $c, in degrees $u?",
      "Tell me the current weather in $c ($u).",
      "I am going out in $c. What is the weather like? Use $u."
  };
  static constexpr std::string_view kAnswers[] = {
      "It is $s in $c, $t degrees $u.",
      "Right now $c is $s with $t degrees $u.",
      "In $c it is $t degrees $u and $s."
  };
  Slots s;
  const bool celsius = dice.one_in(2);
  s.set('c', dice.pick(Words(kCities)));
  s.set('u', celsius ? "celsius" : "fahrenheit");
  s.set('s', dice.pick(Words(kSky)));
  set_number(s, 't', celsius ? dice.between(-5, 35) : dice.between(20, 99));
  return perform(
      dice, s,
      {kRequests, R"({"city": "$c", "unit": "$u"})",
       R"({"temperature": $t, "condition": "$s"})", kAnswers,
       "What is the weather like, in $u?", "For which city?", "$c"}
  );
}

Scene play_currency(Dice& dice) {
  static constexpr struct {
    std::string_view code;
    std::int64_t per_thousand_euros;
  } kRates[] = {{"EUR", 1000},  {"USD", 1080},   {"GBP", 850}, {"CHF", 950},
                {"SEK", 11400}, {"JPY", 162000}, {"CAD", 1480}};
  static constexpr std::string_view kRequests[] = {
      "Convert $n $f to $t.", "How much is $n $f in $t?",
      "I have $n $f. What is that in $t?", "Change $n $f into $t, please."
  };
  static constexpr std::string_view kAnswers[] = {
      "$n $f is $v $t.", "That is $v $t.", "You would get $v $t."
  };
  Slots s;
  const std::size_t i = dice.below(std::size(kRates));
  const std::size_t j =
      (i + 1 + dice.below(std::size(kRates) - 1)) % std::size(kRates);
  const std::int64_t amount = dice.between(1, 400) * 5;
  const std::int64_t cents = amount * 100 * kRates[j].per_thousand_euros /
                             kRates[i].per_thousand_euros;
  set_number(s, 'n', amount);
  s.set('f', kRates[i].code);
  s.set('t', kRates[j].code);
  s.set('v', std::to_string(cents / 100) + "." + two(cents % 100));
  return perform(
      dice, s,
      {kRequests, R"({"amount": $n, "from": "$f", "to": "$t"})",
       R"({"converted": $v, "currency": "$t"})", kAnswers,
       "I have $n $f. Can you convert that?", "To which currency?", "To $t."}
  );
}

Scene play_timer(Dice& dice) {
  static constexpr std::string_view kLabels[] = {
      "tea", "pasta", "laundry", "a break", "eggs", "reading", "pizza"
  };
  static constexpr std::string_view kRequests[] = {
      "Set a timer for $n minutes for $l.",
      "Remind me about $l in $n minutes with a timer.",
      "Start a $n minute timer called $l."
  };
  static constexpr std::string_view kAnswers[] = {
      "Your $n minute timer for $l is running.",
      "Done. The timer for $l will ring in $n minutes."
  };
  Slots s;
  set_number(s, 'n', dice.between(2, 60));
  s.set('l', dice.pick(Words(kLabels)));
  return perform(
      dice, s,
      {kRequests, R"({"minutes": $n, "label": "$l"})",
       R"({"status": "started"})", kAnswers, "Set a timer for $l.",
       "For how many minutes?", "$n minutes."}
  );
}

Scene play_event(Dice& dice) {
  static constexpr std::string_view kTitles[] = {
      "dentist",      "team meeting", "lunch with $p",   "piano lesson",
      "call with $p", "haircut",      "parents' evening"
  };
  static constexpr std::string_view kRequests[] = {
      "Put $t in my calendar on $d at $h.", "Schedule $t for $d, $h.",
      "Add an event: $t, $d at $h."
  };
  static constexpr std::string_view kAnswers[] = {
      "I added $t on $d at $h.", "Done: $t is in your calendar for $d, $h."
  };
  Slots s;
  s.set('p', dice.pick(Words(kNames)));
  s.set('t', filled(dice.pick(Words(kTitles)), s));
  s.set('d', dice.pick(Words(kMonthDays)));
  s.set('h', clock(dice));
  return perform(
      dice, s,
      {kRequests, R"({"title": "$t", "date": "$d", "time": "$h"})",
       R"({"created": true})", kAnswers, "Put $t in my calendar on $d.",
       "At what time?", "At $h."}
  );
}

Scene play_message(Dice& dice) {
  static constexpr std::string_view kTexts[] = {
      "I will be ten minutes late",
      "Happy birthday",
      "Can you call me back",
      "The meeting is moved to Friday",
      "Thank you for the flowers",
      "Please bring the keys",
      "Dinner is ready",
      "I have arrived safely"
  };
  static constexpr std::string_view kRequests[] = {
      "Send $p a message: $m.", "Text $p: $m.", "Write to $p and say: $m."
  };
  static constexpr std::string_view kAnswers[] = {
      "I sent your message to $p.", "Done, $p has your message."
  };
  Slots s;
  s.set('p', dice.pick(Words(kNames)));
  s.set('m', dice.pick(Words(kTexts)));
  return perform(
      dice, s,
      {kRequests, R"({"to": "$p", "text": "$m"})", R"({"sent": true})",
       kAnswers, "Send a message: $m.", "To whom should I send it?", "To $p."}
  );
}

Scene play_flights(Dice& dice) {
  static constexpr std::string_view kRequests[] = {
      "Find me a flight from $a to $b on $d.",
      "I need to fly from $a to $b on $d. What is there?",
      "Which flights go from $a to $b on $d?"
  };
  static constexpr std::string_view kAnswers[] = {
      "There is a flight from $a to $b at $h for $v euros.",
      "The best I found leaves $a at $h and costs $v euros."
  };
  Slots s;
  set_pair(s, dice, kCities, 'a', 'b');
  s.set('d', dice.pick(Words(kMonthDays)));
  s.set('h', clock(dice));
  set_number(s, 'v', dice.between(60, 900));
  return perform(
      dice, s,
      {kRequests, R"({"origin": "$a", "destination": "$b", "date": "$d"})",
       R"({"departure": "$h", "price_eur": $v})", kAnswers,
       "Find me a flight from $a to $b.", "On which date?", "On $d."}
  );
}

Scene play_music(Dice& dice) {
  static constexpr std::string_view kArtists[] = {
      "Mozart",      "Nina Simone",   "The Beatles", "Bach",
      "Miles Davis", "Fela Kuti",     "Bjork",       "Chopin",
      "Johnny Cash", "Clara Schumann"
  };
  static constexpr std::string_view kOrdered[] = {
      "Play $a in order.", "Play the songs of $a, no shuffle."
  };
  static constexpr std::string_view kShuffled[] = {
      "Shuffle $a.", "Play $a in random order."
  };
  static constexpr std::string_view kAnswers[] = {
      "Playing $a now.", "Here is $a. Enjoy!"
  };
  Slots s;
  s.set('a', dice.pick(Words(kArtists)));
  const bool shuffle = dice.one_in(2);
  s.set('s', shuffle ? "true" : "false");
  return perform(
      dice, s,
      {shuffle ? Words(kShuffled) : Words(kOrdered),
       R"({"artist": "$a", "shuffle": $s})", R"({"playing": true})", kAnswers,
       "", "", ""}
  );
}

Scene play_stock(Dice& dice) {
  static constexpr std::string_view kSymbols[] = {
      "AAPL", "MSFT", "NVDA", "SAP", "TSLA", "AMZN", "INTC", "SONY"
  };
  static constexpr std::string_view kRequests[] = {
      "What is the price of $s stock?", "How much is one share of $s?",
      "Look up $s on the stock market."
  };
  static constexpr std::string_view kAnswers[] = {
      "$s is at $v dollars.", "One share of $s costs $v dollars."
  };
  Slots s;
  s.set('s', dice.pick(Words(kSymbols)));
  const std::int64_t cents = dice.between(1000, 90000);
  s.set('v', std::to_string(cents / 100) + "." + two(cents % 100));
  return perform(
      dice, s,
      {kRequests, R"({"symbol": "$s"})", R"({"price": $v, "currency": "USD"})",
       kAnswers, "How much is one share?", "Of which company?", "$s"}
  );
}

Scene play_translation(Dice& dice) {
  static constexpr std::string_view kTongues[] = {
      "Spanish", "French", "German", "Italian"
  };
  static constexpr std::string_view kPhrases[][5] = {
      {"good morning", "buenos días", "bonjour", "guten Morgen", "buongiorno"},
      {"thank you", "gracias", "merci", "danke", "grazie"},
      {"the house", "la casa", "la maison", "das Haus", "la casa"},
      {"where is the station", "dónde está la estación", "où est la gare",
       "wo ist der Bahnhof", "dov'è la stazione"},
      {"I am hungry", "tengo hambre", "j'ai faim", "ich habe Hunger",
       "ho fame"},
      {"see you tomorrow", "hasta mañana", "à demain", "bis morgen",
       "a domani"},
      {"the water is cold", "el agua está fría", "l'eau est froide",
       "das Wasser ist kalt", "l'acqua è fredda"},
      {"happy birthday", "feliz cumpleaños", "joyeux anniversaire",
       "alles Gute zum Geburtstag", "buon compleanno"}
  };
  static constexpr std::string_view kRequests[] = {
      "Translate \"$t\" into $l.", "How do you say \"$t\" in $l?",
      "What is \"$t\" in $l?"
  };
  static constexpr std::string_view kAnswers[] = {
      "In $l it is \"$v\".", "\"$t\" is \"$v\" in $l."
  };
  Slots s;
  const std::size_t tongue = dice.below(std::size(kTongues));
  const auto& phrase = dice.pick(kPhrases);
  s.set('t', phrase[0]);
  s.set('l', kTongues[tongue]);
  s.set('v', phrase[tongue + 1]);
  return perform(
      dice, s,
      {kRequests, R"({"text": "$t", "target_language": "$l"})",
       R"({"translation": "$v"})", kAnswers, "Translate \"$t\".",
       "Into which language?", "Into $l."}
  );
}

Scene play_recipe(Dice& dice) {
  static constexpr std::string_view kFood[] = {
      "rice",  "tomatoes", "eggs",    "potatoes", "spinach", "mushrooms",
      "beans", "cheese",   "carrots", "onions",   "peppers", "lentils"
  };
  static constexpr std::string_view kDishes[] = {
      "a casserole", "a curry", "a salad", "an omelette", "a soup", "a gratin"
  };
  static constexpr std::string_view kPlain[] = {
      "What can I cook with $a and $b? Meat is fine.",
      "Find a recipe with $a and $b, it need not be vegetarian."
  };
  static constexpr std::string_view kGreen[] = {
      "Find a vegetarian recipe with $a and $b.",
      "I have $a and $b. What can I cook without meat?"
  };
  static constexpr std::string_view kAnswers[] = {
      "You could make $d in $n minutes.", "How about $d? It takes $n minutes."
  };
  Slots s;
  set_pair(s, dice, kFood, 'a', 'b');
  const bool green = dice.one_in(2);
  s.set('g', green ? "true" : "false");
  s.set('d', dice.pick(Words(kDishes)));
  set_number(s, 'n', dice.between(3, 12) * 5);
  return perform(
      dice, s,
      {green ? Words(kGreen) : Words(kPlain),
       R"({"ingredients": ["$a", "$b"], "vegetarian": $g})",
       R"({"dish": "$d", "minutes": $n})", kAnswers, "", "", ""}
  );
}

Scene play_light(Dice& dice) {
  static constexpr std::string_view kRooms[] = {"kitchen",     "bedroom",
                                                "living room", "hall",
                                                "bathroom",    "office",
                                                "garage"};
  static constexpr std::string_view kRequests[] = {
      "Set the light in the $r to $n percent.",
      "Dim the $r light to $n percent.", "Make the $r light $n percent bright."
  };
  static constexpr std::string_view kAnswers[] = {
      "The $r light is at $n percent.", "Done: $r, $n percent."
  };
  Slots s;
  s.set('r', dice.pick(Words(kRooms)));
  set_number(s, 'n', dice.between(0, 20) * 5);
  return perform(
      dice, s,
      {kRequests, R"({"room": "$r", "brightness": $n})", R"({"ok": true})",
       kAnswers, "Set the light to $n percent.", "In which room?", "In the $r."}
  );
}

Scene play_table(Dice& dice) {
  static constexpr std::string_view kRestaurants[] = {
      "Luigi's",   "The Golden Fork", "Sakura", "Casa Verde",
      "Blue Door", "The Old Mill",    "Taj"
  };
  static constexpr std::string_view kRequests[] = {
      "Book a table for $n at $r at $h.",
      "Reserve a table at $r for $n people, $h.",
      "We are $n people and want to eat at $r at $h. Please reserve."
  };
  static constexpr std::string_view kAnswers[] = {
      "Your table for $n at $r is booked for $h.",
      "$r expects you at $h, a table for $n."
  };
  Slots s;
  s.set('r', dice.pick(Words(kRestaurants)));
  set_number(s, 'n', dice.between(2, 10));
  s.set('h', clock(dice));
  return perform(
      dice, s,
      {kRequests, R"({"restaurant": "$r", "people": $n, "time": "$h"})",
       R"({"confirmed": true})", kAnswers, "Book a table at $r at $h.",
       "For how many people?", "For $n."}
  );
}

Scene play_shopping(Dice& dice) {
  static constexpr std::string_view kItems[] = {
      "milk",  "bread", "soap", "apples",  "coffee", "batteries",
      "paper", "sugar", "tea",  "candles", "stamps", "flour"
  };
  static constexpr std::string_view kLists[] = {
      "shopping", "party", "weekend", "office"
  };
  static constexpr std::string_view kRequests[] = {
      "Add $a and $b to my $l list.", "Put $a and $b on the $l list.",
      "My $l list needs $a and $b."
  };
  static constexpr std::string_view kAnswers[] = {
      "I added $a and $b to the $l list.", "Done. The $l list now has $n items."
  };
  Slots s;
  set_pair(s, dice, kItems, 'a', 'b');
  s.set('l', dice.pick(Words(kLists)));
  set_number(s, 'n', dice.between(3, 15));
  return perform(
      dice, s,
      {kRequests, R"({"list": "$l", "items": ["$a", "$b"]})",
       R"({"items_on_list": $n})", kAnswers, "Put $a and $b on a list.",
       "On which list?", "On the $l list."}
  );
}

Scene play_units(Dice& dice) {
  static constexpr struct {
    std::string_view from, to;
    std::int64_t factor;
  } kUnits[] = {{"kilometres", "metres", 1000},  {"kilograms", "grams", 1000},
                {"hours", "minutes", 60},        {"days", "hours", 24},
                {"metres", "centimetres", 100},  {"weeks", "days", 7},
                {"litres", "millilitres", 1000}, {"minutes", "seconds", 60}};
  static constexpr std::string_view kRequests[] = {
      "How many $t are $n $f?", "Convert $n $f to $t.", "$n $f in $t?"
  };
  static constexpr std::string_view kAnswers[] = {
      "$n $f are $v $t.", "That is $v $t."
  };
  Slots s;
  const auto& unit = dice.pick(kUnits);
  const std::int64_t n = dice.between(2, 500);
  set_number(s, 'n', n);
  s.set('f', unit.from);
  s.set('t', unit.to);
  set_number(s, 'v', n * unit.factor);
  return perform(
      dice, s,
      {kRequests, R"({"value": $n, "from": "$f", "to": "$t"})",
       R"({"value": $v})", kAnswers, "", "", ""}
  );
}

Scene play_time_in(Dice& dice) {
  static constexpr std::string_view kRequests[] = {
      "What time is it in $c?", "Tell me the time in $c.",
      "I want to call $p in $c. How late is it there?"
  };
  static constexpr std::string_view kAnswers[] = {
      "It is $h in $c.", "The local time in $c is $h."
  };
  Slots s;
  s.set('c', dice.pick(Words(kCities)));
  s.set('p', dice.pick(Words(kNames)));
  s.set('h', clock(dice));
  return perform(
      dice, s,
      {kRequests, R"({"city": "$c"})", R"({"time": "$h"})", kAnswers,
       "I want to call $p. How late is it there?", "In which city is $p?",
       "In $c."}
  );
}

Scene play_route(Dice& dice) {
  static constexpr std::string_view kModes[] = {"car", "train", "bicycle"};
  static constexpr std::string_view kRequests[] = {
      "How do I get from $a to $b by $m?", "Find a route from $a to $b by $m.",
      "How long does it take from $a to $b by $m?"
  };
  static constexpr std::string_view kAnswers[] = {
      "From $a to $b it is $k km by $m, about $n hours.",
      "By $m it takes about $n hours for the $k km."
  };
  Slots s;
  set_pair(s, dice, kCities, 'a', 'b');
  s.set('m', dice.pick(Words(kModes)));
  set_number(s, 'k', dice.between(50, 3000));
  set_number(s, 'n', dice.between(2, 40));
  return perform(
      dice, s,
      {kRequests, R"({"start": "$a", "end": "$b", "mode": "$m"})",
       R"({"distance_km": $k, "hours": $n})", kAnswers,
       "How do I get from $a to $b?", "By car, train or bicycle?", "By $m."}
  );
}

}  // namespace hearth::data::synth
