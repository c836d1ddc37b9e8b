#pragma once
// How much memory a device's work may have under way (ops/pace.h says why):
// without a bound a step takes two or three times what must be held at once.
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>

namespace hearth::train {

class MemoryBound {
 public:
  // What distinguishes passes that take different memory.
  struct Shape {
    std::uint32_t rows = 0, length = 0;
    bool packed = false, adds = false;
    auto operator<=>(const Shape&) const = default;
  };

  // Sets the bound for a pass of that shape. For one that is new nothing runs
  // ahead, and true is returned: call learnt() once it has been sent.
  bool begin(const Shape& shape);
  // Waits until the device is done and takes its peak for the shape's need.
  void learnt(const Shape& shape);
  // No bound any more.
  void lift();

  ~MemoryBound() { lift(); }

 private:
  std::map<Shape, std::size_t> needs_;
};

}  // namespace hearth::train
