#include "hearth/text/grammar/recent.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <utility>

#include "hearth/text/grammar/compiled.h"

namespace hearth::text::grammar {
namespace {

constexpr std::size_t kKept = 4;
constexpr std::size_t kLongestKey = std::size_t{1} << 20;

struct Recent {
  std::mutex mutex;
  std::list<std::pair<std::string, std::shared_ptr<const Grammar>>> last;
};

Recent& recent() {
  static Recent made;
  return made;
}

}  // namespace

std::shared_ptr<const Grammar> recent_grammar(
    const std::string& key,
    const std::function<std::shared_ptr<const Grammar>()>& make
) {
  if (key.size() > kLongestKey) return make();
  Recent& all = recent();
  const auto find = [&]() -> std::shared_ptr<const Grammar> {
    const auto found =
        std::find_if(all.last.begin(), all.last.end(), [&](const auto& one) {
          return one.first == key;
        });
    if (found == all.last.end()) return nullptr;
    all.last.splice(all.last.begin(), all.last, found);
    return found->second;
  };
  {
    const std::lock_guard lock(all.mutex);
    if (auto found = find()) return found;
  }
  auto made = make();  // may take a while, and may throw
  const std::lock_guard lock(all.mutex);
  if (auto found = find()) return found;
  all.last.emplace_front(key, made);
  if (all.last.size() > kKept) all.last.pop_back();
  return made;
}

std::shared_ptr<const Grammar> recent_grammar(
    const std::string& key,
    const std::string& who,
    Effort* effort,
    const std::function<Rules(Effort&)>& rules
) {
  return recent_grammar(key, [&] {
    Effort own;
    Effort& used = effort != nullptr ? *effort : own;
    used.look();
    return std::make_shared<const Grammar>(rules(used), who, used);
  });
}

}  // namespace hearth::text::grammar
