// llama.cpp as the rival of `hearth bench quant`: one product with a quantised
// 4096 x 4096 matrix, as its models run it (weights in the buffer its loader
// would choose, AMX or repacked where it has such a kernel). Answers each line
// of input with one product, so that it takes turns with ours. Built by
// tools/build_llamacpp.sh; for development, no part of Hearth.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml.h"
#include "llama.h"

namespace {

constexpr int kSide = 4096;

ggml_type type_named(const char* name) {
  for (int t = 0; t < GGML_TYPE_COUNT; ++t) {
    const char* own = ggml_type_name(static_cast<ggml_type>(t));
    if (own != nullptr && strcasecmp(own, name) == 0) {
      return static_cast<ggml_type>(t);
    }
  }
  return GGML_TYPE_COUNT;
}

std::vector<ggml_backend_buffer_type_t> buffer_types(ggml_backend_dev_t cpu) {
  std::vector<ggml_backend_buffer_type_t> all;
  auto* extra = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(
      ggml_backend_reg_get_proc_address(
          ggml_backend_dev_backend_reg(cpu), "ggml_backend_dev_get_extra_bufts"
      )
  );
  if (extra != nullptr) {
    for (auto* t = extra(cpu); t != nullptr && *t != nullptr; ++t) {
      all.push_back(*t);
    }
  }
  all.push_back(ggml_backend_cpu_buffer_type());
  return all;
}

class Product {
 public:
  Product(ggml_type type, int rows, int copies, int threads)
      : type_(type), backend_(ggml_backend_cpu_init()) {
    ggml_backend_cpu_set_n_threads(backend_, threads);
    context_ = ggml_init(
        {.mem_size = ggml_tensor_overhead() * (copies * 2 + 8) +
                     ggml_graph_overhead() * copies,
         .mem_buffer = nullptr,
         .no_alloc = true}
    );
    x_ = ggml_new_tensor_2d(context_, GGML_TYPE_F32, kSide, rows);
    y_ = ggml_backend_alloc_buffer(backend_, ggml_nbytes(x_));
    ggml_backend_tensor_alloc(y_, x_, ggml_backend_buffer_get_base(y_));
    std::vector<float> values(static_cast<std::size_t>(kSide) * kSide);
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = i < 64 * kSide ? normal(random) : values[i - 64 * kSide];
    }
    ggml_backend_tensor_set(x_, values.data(), 0, ggml_nbytes(x_));
    std::vector<char> packed(ggml_row_size(type, kSide) * kSide);
    ggml_quantize_chunk(
        type, values.data(), packed.data(), 0, kSide, kSide, nullptr
    );
    for (int i = 0; i < copies; ++i) add(packed);
  }
  const char* buffer() const { return buffer_; }
  bool run() {
    next_ = (next_ + 1) % graphs_.size();
    return ggml_backend_graph_compute(backend_, graphs_[next_]) ==
           GGML_STATUS_SUCCESS;
  }

 private:
  ggml_type type_;
  ggml_backend_t backend_;
  ggml_context* context_;
  ggml_tensor* x_;
  ggml_backend_buffer_t y_, result_ = nullptr;
  std::vector<ggml_cgraph*> graphs_;
  std::size_t next_ = 0;
  const char* buffer_ = "";

  void add(const std::vector<char>& packed) {
    ggml_backend_dev_t cpu = ggml_backend_get_device(backend_);
    for (ggml_backend_buffer_type_t t : buffer_types(cpu)) {
      ggml_tensor* w = ggml_new_tensor_2d(context_, type_, kSide, kSide);
      ggml_tensor* y = ggml_mul_mat(context_, w, x_);
      ggml_backend_buffer_t memory = ggml_backend_buft_alloc_buffer(
          t, ggml_backend_buft_get_alloc_size(t, w)
      );
      // What it answers depends on where the weights lie.
      ggml_backend_buffer_set_usage(memory, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
      ggml_backend_tensor_alloc(
          memory, w, ggml_backend_buffer_get_base(memory)
      );
      if (!ggml_backend_dev_supports_op(cpu, y)) {
        ggml_backend_buffer_free(memory);
        continue;
      }
      buffer_ = ggml_backend_buft_name(t);
      ggml_backend_tensor_set(w, packed.data(), 0, packed.size());
      if (result_ == nullptr) {
        result_ = ggml_backend_alloc_buffer(backend_, ggml_nbytes(y));
      }
      ggml_backend_tensor_alloc(
          result_, y, ggml_backend_buffer_get_base(result_)
      );
      graphs_.push_back(ggml_new_graph_custom(context_, 16, false));
      ggml_build_forward_expand(graphs_.back(), y);
      return;
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: llama_product TYPE ROWS COPIES THREADS\n");
    return 2;
  }
  const ggml_type type = type_named(argv[1]);
  if (type == GGML_TYPE_COUNT) {
    std::printf("{\"absent\": \"llama.cpp has no type %s\"}\n", argv[1]);
    return 1;
  }
  llama_backend_init();
  Product product(
      type, std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4])
  );
  std::printf(
      "{\"name\": \"llama.cpp %s %s in %s\"}\n", LLAMA_PEER_VERSION, argv[1],
      product.buffer()
  );
  std::fflush(stdout);
  char line[128];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    std::puts(product.run() ? "done" : "failed");
    std::fflush(stdout);
  }
  return 0;
}
