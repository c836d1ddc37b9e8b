#pragma once
// How many bytes of request bodies are in memory, over all connections: those
// being received and those whose request has not been read yet.
#include <atomic>
#include <cstddef>
#include <utility>

namespace hearth::serve {

struct BodyBudget {
  std::size_t most = 0;
  std::atomic<std::size_t> used{0};
};

// One request's part of it, given back with the object.
class BodyShare {
 public:
  BodyShare() = default;
  explicit BodyShare(BodyBudget& budget) : budget_(&budget) {}
  BodyShare(BodyShare&& other) noexcept
      : budget_(other.budget_), size_(std::exchange(other.size_, 0)) {}
  BodyShare& operator=(BodyShare&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(size_, other.size_);
    return *this;
  }
  BodyShare(const BodyShare&) = delete;
  BodyShare& operator=(const BodyShare&) = delete;
  ~BodyShare() { set(0); }

  void set(std::size_t bytes) {
    if (budget_ == nullptr) return;
    budget_->used += bytes - size_;
    size_ = bytes;
  }
  // A small request always has room, so that large ones cannot shut it out.
  bool over() const {
    constexpr std::size_t kSmall = std::size_t{64} << 10;
    return budget_ != nullptr && size_ > kSmall &&
           budget_->used > budget_->most;
  }

 private:
  BodyBudget* budget_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace hearth::serve
