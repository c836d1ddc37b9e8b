// A request's body to JSON in one pass, which stops at the first thing that is
// too much.
#include <set>

#include <fmt/format.h>

#include "hearth/serve/api/api_error.h"
#include "hearth/serve/api/fields.h"

namespace hearth::serve {
namespace {

// The most values and lists of a request: a list of token ids needs many
// values, nothing needs many lists.
constexpr std::size_t kMostValues = 1'000'000, kMostLists = 100'000;
// An object that keeps the order of its keys looks through all of them for
// each: bounds on both keep that cheap whatever is sent.
constexpr std::size_t kMostKeys = 1024, kMostKeysInAll = 100'000;
constexpr std::size_t kMostNesting = 48;

[[noreturn]] void refuse(const std::string& what) {
  throw ApiError(400, "the request's body " + what, {}, "invalid_json");
}

class RequestReader final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override {
    return add(value);
  }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override {
    open(Json::object());
    keys_.emplace_back();
    return true;
  }
  bool key(string_t& key) override {
    if (keys_.back().size() >= kMostKeys || ++all_keys_ > kMostKeysInAll) {
      refuse("has too many keys");
    }
    if (!keys_.back().insert(key).second) {
      refuse(fmt::format("gives {} twice", shown(Json(key))));
    }
    key_ = std::move(key);
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    open_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override {
    open(Json::array());
    return true;
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool parse_error(
      std::size_t at,
      const std::string&,
      const nlohmann::detail::exception& e
  ) override {
    const bool number = e.id / 100 == 4;  // out of range
    refuse(
        fmt::format(
            "is {} (byte {})",
            number ? "JSON with an impossible number" : "not JSON", at
        )
    );
  }

  Json root;

 private:
  Json* place(Json value) {
    if (++values_ > kMostValues) refuse("has too many values");
    if (open_.empty()) {
      root = std::move(value);
      return &root;
    }
    if (open_.back()->is_array()) {
      return &open_.back()->get_ref<Json::array_t&>().emplace_back(
          std::move(value)
      );
    }
    // At the end, without a search: no key comes twice.
    auto& object = open_.back()->get_ref<Json::object_t&>();
    object.Container::emplace_back(std::move(key_), std::move(value));
    return &object.back().second;
  }
  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  void open(Json value) {
    if (++lists_ > kMostLists) refuse("has too many lists and objects");
    if (open_.size() >= kMostNesting) {
      refuse(fmt::format("must nest at most {} deep", kMostNesting));
    }
    open_.push_back(place(std::move(value)));
  }

  // The containers that are being read, outermost first. Each is the last
  // element of the one before, which does not grow meanwhile.
  std::vector<Json*> open_;
  std::vector<std::set<std::string>> keys_;  // of the objects among them
  std::string key_;
  std::size_t values_ = 0, lists_ = 0, all_keys_ = 0;
};

}  // namespace

Json parse_request_json(std::string_view body) {
  // NUL ends a document for the parser, so that what follows would pass unseen.
  if (body.find('\0') != body.npos) refuse("must not hold NUL bytes");
  RequestReader reader;
  Json::sax_parse(body, &reader);
  if (!reader.root.is_object()) refuse("must be a JSON object");
  return std::move(reader.root);
}

}  // namespace hearth::serve
