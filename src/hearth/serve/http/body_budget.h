#pragma once
// How many bytes of request bodies are in memory, over all connections: those
// being received and those whose request has not been read yet. Each owner has
// a share of it, so that nobody's bodies shut out those of others.
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace hearth::serve {

class BodyBudget {
 public:
  BodyBudget(std::size_t most, std::size_t most_of_one)
      : most_(most), most_of_one_(most_of_one) {}

 private:
  friend class BodyShare;

  void resize(const std::string& owner, std::size_t from, std::size_t to) {
    const std::lock_guard lock(mutex_);
    used_ += to - from;
    std::size_t& own = used_by_[owner];
    own += to - from;
    if (own == 0) used_by_.erase(owner);
  }
  bool over(const std::string& owner) const {
    const std::lock_guard lock(mutex_);
    const auto own = used_by_.find(owner);
    return used_ > most_ ||
           (own != used_by_.end() && own->second > most_of_one_);
  }

  const std::size_t most_, most_of_one_;
  mutable std::mutex mutex_;  // shares end on the workers' threads
  std::size_t used_ = 0;
  std::map<std::string, std::size_t> used_by_;
};

// One request's share of the budget, given back with the object.
class BodyShare {
 public:
  BodyShare() = default;
  BodyShare(BodyBudget& budget, std::string owner)
      : budget_(&budget), owner_(std::move(owner)) {}
  BodyShare(BodyShare&& other) noexcept { *this = std::move(other); }
  BodyShare& operator=(BodyShare&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(owner_, other.owner_);
    std::swap(size_, other.size_);
    return *this;
  }
  BodyShare(const BodyShare&) = delete;
  BodyShare& operator=(const BodyShare&) = delete;
  ~BodyShare() { set(0); }

  // Sets how many bytes of the body have come.
  void set(std::size_t bytes) {
    if (budget_ == nullptr || bytes == size_) return;
    budget_->resize(owner_, size_, bytes);
    size_ = bytes;
  }
  // A small request always has room, so that large ones cannot shut it out.
  bool over() const {
    constexpr std::size_t kSmall = std::size_t{64} << 10;
    return size_ > kSmall && budget_->over(owner_);
  }

 private:
  BodyBudget* budget_ = nullptr;
  std::string owner_;
  std::size_t size_ = 0;
};

}  // namespace hearth::serve
