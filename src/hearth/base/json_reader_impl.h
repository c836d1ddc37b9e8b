#pragma once
// Builds a value from the events of nlohmann's parser. Its own builder looks
// for each key among all that the object has so far: with a hundred thousand
// of them that takes minutes, and anybody may send them.
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hearth/base/json.h"

namespace hearth {

class JsonReader {
 public:
  // Where the text stops being JSON: one behind the last byte that was read.
  std::size_t error_at = 0;
  std::string error;

  Json take() { return std::move(root_); }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) { return add(value); }
  bool number_unsigned(std::uint64_t value) { return add(value); }
  bool number_float(double value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    Level& level = levels_.back();
    Members& members = level.value.get_ref<Json::object_t&>();
    level.at = place_of(level, members, name);
    if (level.at == members.size()) {
      if (members.size() >= kFew) level.places.emplace(name, level.at);
      members.emplace_back(std::move(name), nullptr);
    }
    return true;
  }

  bool parse_error(
      std::size_t at,
      const std::string&,
      const nlohmann::detail::exception& what
  ) {
    error_at = at;
    error = what.what();
    return false;
  }

 private:
  using Members = std::vector<Json::object_t::value_type>;
  // Objects with more keys than this have a table of them.
  static constexpr std::size_t kFew = 16;

  struct Level {
    Json value;
    std::size_t at = 0;  // of an object: the member whose value comes next
    std::unordered_map<std::string, std::size_t> places;
  };

  // The member of that name, or one past the last. A key that is written twice
  // has the last of its values.
  static std::size_t place_of(
      Level& level,
      const Members& members,
      const std::string& name
  ) {
    if (members.size() < kFew) {
      std::size_t at = 0;
      while (at < members.size() && members[at].first != name) ++at;
      return at;
    }
    if (level.places.empty()) {
      for (std::size_t i = 0; i < members.size(); ++i) {
        level.places.emplace(members[i].first, i);
      }
    }
    const auto found = level.places.find(name);
    return found == level.places.end() ? members.size() : found->second;
  }

  template <typename Value>
  bool add(Value&& value) {
    put(Json(std::forward<Value>(value)));
    return true;
  }
  void put(Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
    } else if (Level& level = levels_.back(); level.value.is_array()) {
      level.value.push_back(std::move(value));
    } else {
      Members& members = level.value.get_ref<Json::object_t&>();
      members[level.at].second = std::move(value);
    }
  }
  bool open(Json value) {
    levels_.push_back({std::move(value), 0, {}});
    return true;
  }
  bool close() {
    Json done = std::move(levels_.back().value);
    levels_.pop_back();
    put(std::move(done));
    return true;
  }

  Json root_;
  std::vector<Level> levels_;
};

}  // namespace hearth
