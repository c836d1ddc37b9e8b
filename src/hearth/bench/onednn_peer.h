#pragma once
// oneDNN as a rival of dense products: its shared library is opened at run time
// where a developer has it (PyPI onednn-cpu-gomp, `./dev test --peers`), from
// HEARTH_ONEDNN, the peers' environment or the system. Nothing links to it.
#include <memory>
#include <string>

#include "hearth/bench/runner.h"
#include "hearth/ops/op_case.h"

namespace hearth::bench {

class OneDnn {
 public:
  // nullptr where it is not installed or is not of version 3.
  static std::shared_ptr<OneDnn> find();
  ~OneDnn();
  OneDnn(const OneDnn&) = delete;
  OneDnn& operator=(const OneDnn&) = delete;

  const std::string& version() const { return version_; }
  // What one repeat runs; operands and result are its own, of one dtype.
  // Throws Error where oneDNN has no such product.
  Timed product(const ops::Product& product, bool bf16);

 private:
  struct Library;
  OneDnn() = default;

  std::unique_ptr<Library> library_;
  std::string version_;
};

}  // namespace hearth::bench
