// The tools' schemas, as chat templates take them.
#include "hearth/data/synth/tool_scenes_impl.h"

namespace hearth::data::synth {
namespace {

#define HEARTH_TOOL(name, description, properties, required)          \
  R"({"type": "function", "function": {"name": ")" name               \
  R"(", "description": ")" description                                \
  R"(", "parameters": {"type": "object", "properties": {)" properties \
  R"(}, "required": [)" required R"(]}}})"
#define HEARTH_PROPERTY(name, type, description) \
  "\"" name R"(": {"type": ")" type R"(", "description": ")" description "\"}"
#define HEARTH_ENUM(name, values, description)          \
  "\"" name R"(": {"type": "string", "enum": [)" values \
  R"(], "description": ")" description "\"}"
#define HEARTH_ARRAY(name, description)                             \
  "\"" name R"(": {"type": "array", "items": {"type": "string"}, )" \
  R"("description": ")" description "\"}"

constexpr Tool kTools[] = {
    {"get_weather",
     HEARTH_TOOL(
         "get_weather", "Current weather of a city",
         HEARTH_PROPERTY("city", "string", "Name of the city") ", "
         HEARTH_ENUM("unit", R"("celsius", "fahrenheit")", "Unit of temperature"),
         R"("city", "unit")"
     ),
     play_weather, "look up the weather"},
    {"convert_currency",
     HEARTH_TOOL(
         "convert_currency", "Convert an amount of money",
         HEARTH_PROPERTY("amount", "number", "How much") ", "
         HEARTH_PROPERTY("from", "string", "Code of the currency, like EUR") ", "
         HEARTH_PROPERTY("to", "string", "Code of the wanted currency"),
         R"("amount", "from", "to")"
     ),
     play_currency, "convert currencies"},
    {"set_timer",
     HEARTH_TOOL(
         "set_timer", "Start a timer",
         HEARTH_PROPERTY("minutes", "integer", "Length in minutes") ", "
         HEARTH_PROPERTY("label", "string", "What the timer is for"),
         R"("minutes", "label")"
     ),
     play_timer, "set timers"},
    {"create_event",
     HEARTH_TOOL(
         "create_event", "Put an event into the calendar",
         HEARTH_PROPERTY("title", "string", "What it is") ", "
         HEARTH_PROPERTY("date", "string", "Year-month-day") ", "
         HEARTH_PROPERTY("time", "string", "Hours:minutes, 24 hours"),
         R"("title", "date", "time")"
     ),
     play_event, "change your calendar"},
    {"send_message",
     HEARTH_TOOL(
         "send_message", "Send a short message to a person",
         HEARTH_PROPERTY("to", "string", "Name of the person") ", "
         HEARTH_PROPERTY("text", "string", "The message"),
         R"("to", "text")"
     ),
     play_message, "send messages"},
    {"search_flights",
     HEARTH_TOOL(
         "search_flights", "Find flights between two cities",
         HEARTH_PROPERTY("origin", "string", "City of departure") ", "
         HEARTH_PROPERTY("destination", "string", "City of arrival") ", "
         HEARTH_PROPERTY("date", "string", "Year-month-day"),
         R"("origin", "destination", "date")"
     ),
     play_flights, "search for flights"},
    {"play_music",
     HEARTH_TOOL(
         "play_music", "Play the music of an artist",
         HEARTH_PROPERTY("artist", "string", "Name of the artist") ", "
         HEARTH_PROPERTY("shuffle", "boolean", "Whether to play in random order"),
         R"("artist", "shuffle")"
     ),
     play_music, "play music"},
    {"get_stock_price",
     HEARTH_TOOL(
         "get_stock_price", "Current price of a share",
         HEARTH_PROPERTY("symbol", "string", "Ticker symbol"), R"("symbol")"
     ),
     play_stock, "look up share prices"},
    {"translate_text",
     HEARTH_TOOL(
         "translate_text", "Translate an English text",
         HEARTH_PROPERTY("text", "string", "What to translate") ", "
         HEARTH_PROPERTY("target_language", "string", "English name of the language"),
         R"("text", "target_language")"
     ),
     play_translation, "translate texts"},
    {"find_recipe",
     HEARTH_TOOL(
         "find_recipe", "Find a recipe for what is at hand",
         HEARTH_ARRAY("ingredients", "What is at hand") ", "
         HEARTH_PROPERTY("vegetarian", "boolean", "Whether it must be without meat"),
         R"("ingredients", "vegetarian")"
     ),
     play_recipe, "search for recipes"},
    {"set_light",
     HEARTH_TOOL(
         "set_light", "Change the light in a room",
         HEARTH_PROPERTY("room", "string", "Which room") ", "
         HEARTH_PROPERTY("brightness", "integer", "Percent, 0 is off"),
         R"("room", "brightness")"
     ),
     play_light, "change the lights"},
    {"book_table",
     HEARTH_TOOL(
         "book_table", "Reserve a table in a restaurant, today",
         HEARTH_PROPERTY("restaurant", "string", "Name of the restaurant") ", "
         HEARTH_PROPERTY("people", "integer", "How many people") ", "
         HEARTH_PROPERTY("time", "string", "Hours:minutes, 24 hours"),
         R"("restaurant", "people", "time")"
     ),
     play_table, "book tables"},
    {"add_to_list",
     HEARTH_TOOL(
         "add_to_list", "Add items to a list",
         HEARTH_PROPERTY("list", "string", "Name of the list") ", "
         HEARTH_ARRAY("items", "What to add"), R"("list", "items")"
     ),
     play_shopping, "change your lists"},
    {"convert_units",
     HEARTH_TOOL(
         "convert_units", "Convert a quantity to another unit",
         HEARTH_PROPERTY("value", "number", "How many") ", "
         HEARTH_PROPERTY("from", "string", "Unit, in the plural") ", "
         HEARTH_PROPERTY("to", "string", "Wanted unit, in the plural"),
         R"("value", "from", "to")"
     ),
     play_units, "convert units"},
    {"get_time",
     HEARTH_TOOL(
         "get_time", "Local time of a city",
         HEARTH_PROPERTY("city", "string", "Name of the city"), R"("city")"
     ),
     play_time_in, "tell the local time of a city"},
    {"find_route",
     HEARTH_TOOL(
         "find_route", "Route between two cities",
         HEARTH_PROPERTY("start", "string", "Where it begins") ", "
         HEARTH_PROPERTY("end", "string", "Where it ends") ", "
         HEARTH_ENUM("mode", R"("car", "train", "bicycle")", "How to travel"),
         R"("start", "end", "mode")"
     ),
     play_route, "find routes"},
};

#undef HEARTH_TOOL
#undef HEARTH_PROPERTY
#undef HEARTH_ENUM
#undef HEARTH_ARRAY

}  // namespace

std::span<const Tool> tool_catalog() {
  return kTools;
}

}  // namespace hearth::data::synth
