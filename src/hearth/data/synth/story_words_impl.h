#pragma once
// The words stories are made of.
#include <string_view>

namespace hearth::data::synth {

inline constexpr std::string_view kGirls[] = {
    "Lily",  "Mia",   "Anna",  "Zoe",   "Ella",   "Ruby",  "Nora",  "Ivy",
    "Rosa",  "Maya",  "Clara", "Tess",  "June",   "Alice", "Wendy", "Hana",
    "Sofia", "Greta", "Leila", "Daisy", "Martha", "Pia",   "Olive", "Yuki",
    "Amara", "Ines",  "Kate",  "Freya", "Poppy",  "Stella"
};
inline constexpr std::string_view kBoys[] = {
    "Tom",   "Ben",    "Max",   "Leo",  "Sam",   "Finn",  "Oscar", "Jack",
    "Noah",  "Theo",   "Milo",  "Hugo", "Eli",   "Paul",  "Ravi",  "Omar",
    "Diego", "Anton",  "Felix", "Otto", "Henry", "Jonas", "Kofi",  "Luca",
    "Peter", "Walter", "Ned",   "Tim",  "Karl",  "Emil"
};
inline constexpr std::string_view kAnimals[] = {
    "rabbit", "fox",   "bear",   "mouse",   "squirrel", "hedgehog",
    "otter",  "duck",  "badger", "owl",     "beaver",   "frog",
    "turtle", "goat",  "lamb",   "kitten",  "puppy",    "sparrow",
    "deer",   "robin", "mole",   "raccoon", "penguin",  "hen"
};
inline constexpr std::string_view kPets[] = {"bird",     "kitten", "puppy",
                                             "duckling", "rabbit", "hedgehog",
                                             "mouse",    "lamb",   "fawn",
                                             "turtle",   "owl",    "squirrel"};
inline constexpr std::string_view kTraits[] = {
    "curious", "brave",    "kind",     "shy",        "clever",  "cheerful",
    "quiet",   "careful",  "gentle",   "lively",     "patient", "proud",
    "eager",   "stubborn", "friendly", "thoughtful", "playful", "hopeful"
};
inline constexpr std::string_view kPlaces[] = {
    "the park",        "the old forest",    "the beach",     "the meadow",
    "the village",     "the river",         "the garden",    "the market",
    "the hill",        "the lake",          "the farm",      "the orchard",
    "the school yard", "the wooden bridge", "the big oak",   "the pond",
    "the mill",        "the harbour",       "the library",   "the playground",
    "the town square", "the stone well",    "the pine wood", "the barn"
};
inline constexpr std::string_view kColours[] = {
    "red",   "blue",   "green",  "yellow", "orange", "purple",  "white",
    "black", "silver", "golden", "pink",   "brown",  "striped", "spotted"
};
inline constexpr std::string_view kToys[] = {
    "ball",   "kite",    "hat",     "drum",   "boat",     "scarf",
    "bucket", "lantern", "whistle", "wagon",  "umbrella", "backpack",
    "doll",   "train",   "puzzle",  "bell",   "notebook", "blanket",
    "basket", "button",  "marble",  "ribbon", "cup",      "spoon",
    "key",    "box",     "mitten",  "flute",  "robot",    "balloon"
};
inline constexpr std::string_view kHidingPlaces[] = {
    "under a bench",         "behind a tall fern",
    "inside a hollow log",   "between two rocks",
    "on a low branch",       "under a pile of leaves",
    "beside the gate",       "in the long grass",
    "behind the shed",       "at the bottom of the stairs",
    "next to a mossy stump", "on the window sill"
};
inline constexpr std::string_view kFears[] = {
    "the dark",  "thunder",           "deep water",
    "big dogs",  "high places",       "loud noises",
    "the attic", "speaking in class", "the first day of school",
    "spiders",   "the wind at night", "cold water"
};
inline constexpr std::string_view kSkills[] = {
    "ride a bicycle",  "swim",         "whistle",
    "skate",           "read",         "tie a knot",
    "play the violin", "juggle",       "climb the rope",
    "bake bread",      "catch a fish", "draw a horse",
    "do a handstand",  "row a boat",   "count to one hundred",
    "skip stones"
};
inline constexpr std::string_view kPlants[] = {
    "sunflower", "bean",  "pumpkin", "tomato", "apple tree",  "rose",
    "carrot",    "tulip", "melon",   "daisy",  "cherry tree", "pea"
};
inline constexpr std::string_view kBuilt[] = {
    "tree house", "hut",   "raft",       "cart",  "bird house",
    "fort",       "tower", "doll house", "swing", "bridge"
};
inline constexpr std::string_view kMaterials[] = {
    "sticks and rope",    "old boards",       "smooth stones",
    "cardboard and tape", "branches and mud", "planks and nails",
    "reeds and string",   "logs and string"
};
inline constexpr std::string_view kMishaps[] = {
    "a strong wind blew it over",   "the rain washed half of it away",
    "a big dog ran right into it",  "one corner gave way with a crack",
    "a clumsy goat walked into it", "the knots came loose"
};
inline constexpr std::string_view kFoods[] = {
    "soup",        "pancakes", "bread",   "apple pie", "a cake", "cookies",
    "fruit salad", "porridge", "noodles", "muffins",   "a stew", "pizza"
};
inline constexpr std::string_view kWeather[] = {
    "sunny", "windy", "cloudy", "snowy", "warm", "cold", "foggy", "bright"
};
inline constexpr std::string_view kSeasons[] = {
    "spring", "summer", "autumn", "winter"
};
inline constexpr std::string_view kHappy[] = {
    "happy", "glad", "proud", "delighted", "cheerful", "pleased", "joyful"
};
inline constexpr std::string_view kSad[] = {
    "sad", "worried", "upset", "unhappy", "gloomy", "lonely", "sorry"
};
inline constexpr std::string_view kSaid[] = {"said",     "whispered", "replied",
                                             "answered", "explained", "called"};
inline constexpr std::string_view kRelations[] = {
    "friend", "neighbour", "cousin", "classmate"
};
inline constexpr std::string_view kElders[] = {"grandmother", "grandfather",
                                               "mother",      "father",
                                               "aunt",        "uncle",
                                               "teacher"};
inline constexpr std::string_view kBreakables[] = {
    "vase",  "window",     "teapot", "mirror",        "plate",
    "clock", "flower pot", "lamp",   "picture frame", "jar of honey"
};

}  // namespace hearth::data::synth
