#include "hearth/bench/onednn_peer.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <fmt/format.h>

#include "hearth/base/aligned_buffer.h"
#include "hearth/base/error.h"
#include "hearth/base/thread_pool.h"
#include "hearth/bench/onednn_limit.h"

namespace hearth::bench {
namespace {

// The part of oneDNN 3's C interface that a product needs.
using Handle = void*;
using Dims = std::int64_t[12];
constexpr int kCpu = 1, kInOrder = 1, kBf16 = 2, kF32 = 3, kAnyLayout = 1;
constexpr int kQueryWeights = 131;
constexpr int kSource = 1, kTarget = 17, kWeights = 33;

struct Operand {
  AlignedBuffer bytes;
  Handle memory = nullptr;
};

void check(int status, const char* what) {
  if (status != 0) {
    throw Error(fmt::format("[bench] oneDNN refuses {}: {}", what, status));
  }
}

template <typename F>
bool resolve(void* library, const char* name, F& f) {
  f = reinterpret_cast<F>(::dlsym(library, name));
  return f != nullptr;
}

void* open_library() {
  // Its threads must not spin while it is our turn.
  ::setenv("OMP_WAIT_POLICY", "passive", 0);
  limit_onednn_isa();
  const char* named = std::getenv("HEARTH_ONEDNN");
  for (const char* path :
       {named, ".deps/peers/lib/libdnnl.so.3", "libdnnl.so.3"}) {
    if (path == nullptr) continue;
    if (void* opened = ::dlopen(path, RTLD_NOW | RTLD_LOCAL)) return opened;
  }
  return nullptr;
}

}  // namespace

struct OneDnn::Library {
  struct Version {
    int major, minor, patch;
    const char* hash;
    unsigned cpu_runtime, gpu_runtime;
  };
  struct Argument {
    int what;
    Handle memory;
  };

  void* opened = nullptr;
  Handle engine = nullptr, stream = nullptr;
  const Version* (*version)() = nullptr;
  int (*engine_create)(Handle*, int, std::size_t) = nullptr;
  int (*engine_destroy)(Handle) = nullptr;
  int (*stream_create)(Handle*, Handle, unsigned) = nullptr;
  int (*stream_wait)(Handle) = nullptr;
  int (*stream_destroy)(Handle) = nullptr;
  int (*strided)(Handle*, int, const Dims, int, const Dims) = nullptr;
  int (*tagged)(Handle*, int, const Dims, int, int) = nullptr;
  int (*matmul)(Handle*, Handle, Handle, Handle, Handle, Handle, Handle) =
      nullptr;
  int (*reorder)(Handle*, Handle, Handle, Handle, Handle, Handle) = nullptr;
  Handle (*query_md)(Handle, int, int) = nullptr;
  int (*primitive_create)(Handle*, Handle) = nullptr;
  int (*memory_create)(Handle*, Handle, Handle, void*) = nullptr;
  int (*execute)(Handle, Handle, int, const Argument*) = nullptr;
  std::size_t (*size_of)(Handle) = nullptr;

  bool load() {
    opened = open_library();
    return opened && resolve(opened, "dnnl_version", version) &&
           resolve(opened, "dnnl_engine_create", engine_create) &&
           resolve(opened, "dnnl_engine_destroy", engine_destroy) &&
           resolve(opened, "dnnl_stream_create", stream_create) &&
           resolve(opened, "dnnl_stream_wait", stream_wait) &&
           resolve(opened, "dnnl_stream_destroy", stream_destroy) &&
           resolve(opened, "dnnl_memory_desc_create_with_strides", strided) &&
           resolve(opened, "dnnl_memory_desc_create_with_tag", tagged) &&
           resolve(opened, "dnnl_matmul_primitive_desc_create", matmul) &&
           resolve(opened, "dnnl_reorder_primitive_desc_create", reorder) &&
           resolve(opened, "dnnl_primitive_desc_query_md", query_md) &&
           resolve(opened, "dnnl_primitive_create", primitive_create) &&
           resolve(opened, "dnnl_memory_create", memory_create) &&
           resolve(opened, "dnnl_primitive_execute", execute) &&
           resolve(opened, "dnnl_memory_desc_get_size", size_of);
  }
  ~Library() {
    if (stream) stream_destroy(stream);
    if (engine) engine_destroy(engine);
  }

  Handle matrix(int rows, int columns, int type, bool transposed) const {
    const Dims dims = {rows, columns};
    const Dims steps = {transposed ? 1 : columns, transposed ? rows : 1};
    Handle out = nullptr;
    check(strided(&out, 2, dims, type, steps), "a matrix");
    return out;
  }
  Handle any_matrix(int rows, int columns, int type) const {
    const Dims dims = {rows, columns};
    Handle out = nullptr;
    check(tagged(&out, 2, dims, type, kAnyLayout), "a matrix");
    return out;
  }
  void run(Handle primitive, std::initializer_list<Argument> list) const {
    check(
        execute(primitive, stream, static_cast<int>(list.size()), list.begin()),
        "to run"
    );
    check(stream_wait(stream), "to finish");
  }
  // As many threads as ours: of the calling thread, which is the bench's own.
  static void take_our_threads() {
    void (*set)(int) = nullptr;
    if (resolve(RTLD_DEFAULT, "omp_set_num_threads", set)) {
      set(shared_pool().size());
    }
  }
};

OneDnn::~OneDnn() = default;

std::shared_ptr<OneDnn> OneDnn::find() {
  std::shared_ptr<OneDnn> peer(new OneDnn);
  peer->library_ = std::make_unique<Library>();
  Library& l = *peer->library_;
  if (!l.load() || l.version()->major != 3) return nullptr;
  const Library::Version& v = *l.version();
  peer->version_ = fmt::format("oneDNN {}.{}.{}", v.major, v.minor, v.patch);
  if (const char* most = std::getenv("ONEDNN_MAX_CPU_ISA")) {
    peer->version_ += fmt::format(" ({})", most);
  }
  Library::take_our_threads();
  check(l.engine_create(&l.engine, kCpu, 0), "an engine");
  check(l.stream_create(&l.stream, l.engine, kInOrder), "a stream");
  return peer;
}

// Descriptions and primitives are few and live as long as the process.
Timed OneDnn::product(const ops::Product& p, bool bf16) {
  Library& l = *library_;
  const int type = bf16 ? kBf16 : kF32;
  const auto zone = MemoryZone::named("oneDNN");
  const auto place = [&](Handle layout) {
    auto out = std::make_shared<Operand>();
    out->bytes = AlignedBuffer(zone, l.size_of(layout));
    // A hundredth, in bfloat16 and in float32 alike.
    std::memset(out->bytes.data(), 0x3C, out->bytes.size());
    check(
        l.memory_create(&out->memory, layout, l.engine, out->bytes.data()),
        "memory"
    );
    return out;
  };
  Handle left = l.matrix(p.m, p.k, type, p.left_transposed);
  Handle plain = l.matrix(p.k, p.n, type, p.right_transposed);
  Handle right = p.right_packed ? l.any_matrix(p.k, p.n, type) : plain;
  Handle out = l.matrix(p.m, p.n, type, false);
  Handle description = nullptr, primitive = nullptr;
  check(
      l.matmul(&description, l.engine, left, right, nullptr, out, nullptr),
      "a product"
  );
  check(l.primitive_create(&primitive, description), "a product");
  auto a = place(left), c = place(out), b = place(plain);
  if (p.right_packed) {
    Handle layout = l.query_md(description, kQueryWeights, 0);
    Handle order = nullptr, pack = nullptr;
    check(
        l.reorder(&order, plain, l.engine, layout, l.engine, nullptr), "packing"
    );
    check(l.primitive_create(&pack, order), "packing");
    auto packed = place(layout);
    l.run(pack, {{kSource, b->memory}, {kTarget, packed->memory}});
    b = packed;
  }
  Timed timed([this, primitive, a, b, c] {
    library_->run(
        primitive,
        {{kSource, a->memory}, {kWeights, b->memory}, {kTarget, c->memory}}
    );
  });
  timed.rest = kOpenMpRest;
  return timed;
}

}  // namespace hearth::bench
