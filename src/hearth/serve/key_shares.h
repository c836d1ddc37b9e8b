#pragma once
// How many texts each key has under way: prepared, waiting, running or held.
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace hearth::serve {

class KeyShares {
 public:
  // At most so many texts of each key at once; 0: any number.
  explicit KeyShares(std::size_t most);

  // Some texts of one key, given back with the object.
  class Share;
  using SharePtr = std::shared_ptr<Share>;
  // Throws ApiError 429 where that would be too many, or 400 where they can
  // never be so few.
  SharePtr take(const std::string& owner, std::size_t texts);
  // Changes the number of texts in a share.
  void resize(Share& share, std::size_t texts);

 private:
  // Outlives this object with the shares that are out.
  struct State {
    std::size_t most;
    std::mutex mutex;
    std::map<std::string, std::size_t> taken;
  };
  std::shared_ptr<State> state_;
};

class KeyShares::Share {
 public:
  Share(std::shared_ptr<State> state, std::string owner)
      : state_(std::move(state)), owner_(std::move(owner)) {}
  ~Share();
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

 private:
  friend class KeyShares;
  void resize(std::size_t texts);

  std::shared_ptr<State> state_;
  const std::string owner_;
  std::size_t texts_ = 0;
};

}  // namespace hearth::serve
