// Sizes are {rows of the table, dim, tokens}.
#include "hearth/ops/embedding/op.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {

std::vector<OpCase> embedding_cases() {
  OpCase c;
  c.name = "embedding";
  c.primitives = {"Embedding", "EmbeddingGrad"};
  c.sizes = {{5, 3, 4}, {1, 1, 1}, {9, 33, 7}, {50, 100, 300}, {700, 64, 2000}};
  c.bench_sizes = {{131072, 1024, 65536}};
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    return Arrays{
        integer_input({n[2]}, n[0], seed),
        normal_input({n[0], n[1]}, t, seed + 1)
    };
  };
  c.run = [](const Arrays& v) { return Arrays{embedding(v[0], v[1])}; };
  c.reference = [](const Arrays& v) {
    return Arrays{embedding_reference(v[0], v[1], v[1].dtype())};
  };
  c.differentiable = {1};
  c.float32 = {{0, 0}, {1e-5, 1e-6}};
  c.bfloat16 = {{0, 0}, {1e-5, 1e-6}};
  c.forward_work = [](const Size& n, mx::Dtype t) {
    return Work{2.0 * n[2] * n[1] * double(mx::size_of(t)), 0};
  };
  // The gradient's rows are cleared, and those of the tokens read and written.
  c.gradient_work = [](const Size& n, mx::Dtype t) {
    const double tokens = double(n[2]) * n[1];
    return Work{
        4.0 * n[0] * n[1] + tokens * (8 + double(mx::size_of(t))), tokens
    };
  };
  return {c};
}

}  // namespace hearth::ops
