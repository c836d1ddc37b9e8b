// Our kernels behind attention.
#include <array>
#include <cstring>

#include "hearth/ops/attention/cpu_driver.h"
#include "hearth/ops/attention/faces_impl.h"

namespace hearth::ops {
namespace {

using kernels::AttentionArgs;
using kernels::AttentionGradArgs;
using kernels::AttentionInput;
using kernels::AttentionOutput;
using kernels::AttentionType;

struct Config {
  float scale, softcap;
  bool causal, segments;
  int window, query_offset;
  // Of a joint qkv buffer; 0 where q, k and v are inputs of their own.
  int heads, kv_heads;
  bool operator==(const Config&) const = default;
  bool joint() const { return heads > 0; }
  std::size_t tensors() const { return joint() ? 1 : 3; }
};

// An input [batch, token, head, dim] as kernels read it: where it lies, or,
// when its last dimension is strided, as a dense copy the launched work makes.
class Source {
 public:
  explicit Source(const mx::array& a)
      : from_(a.data<std::byte>()), item_(a.itemsize()) {
    for (std::size_t i = 0; i < 4; ++i) {
      shape_[i] = a.shape(static_cast<int>(i));
      strides_[i] = a.strides()[i];
    }
    if (strides_[3] == 1 || shape_[3] == 1) return;
    copy_ =
        std::make_shared<AlignedBuffer>(MemoryZone::named("ops"), a.nbytes());
  }

  AttentionInput view(std::ptrdiff_t head = 0) const {
    if (copy_ == nullptr) {
      const auto at = head * strides_[2] * static_cast<std::ptrdiff_t>(item_);
      return {from_ + at, strides_[0], strides_[1], strides_[2]};
    }
    const auto row = shape_[2] * shape_[3];
    const auto at = head * shape_[3] * static_cast<std::ptrdiff_t>(item_);
    return {copy_->data() + at, shape_[1] * row, row, shape_[3]};
  }

  void gather() const noexcept {
    if (copy_ == nullptr) return;
    std::byte* to = copy_->data();
    const auto step = [&](std::size_t i) {
      return strides_[i] * static_cast<std::ptrdiff_t>(item_);
    };
    for (std::ptrdiff_t b = 0; b < shape_[0]; ++b)
      for (std::ptrdiff_t t = 0; t < shape_[1]; ++t)
        for (std::ptrdiff_t h = 0; h < shape_[2]; ++h) {
          const std::byte* row =
              from_ + b * step(0) + t * step(1) + h * step(2);
          for (std::ptrdiff_t d = 0; d < shape_[3]; ++d, to += item_) {
            std::memcpy(to, row + d * step(3), item_);
          }
        }
  }

 private:
  const std::byte* from_;
  std::size_t item_;
  std::array<std::ptrdiff_t, 4> shape_, strides_;
  std::shared_ptr<AlignedBuffer> copy_;
};

AttentionType type_of(const mx::array& a) {
  return a.dtype() == mx::float32 ? AttentionType::kFloat32
                                  : AttentionType::kBfloat16;
}

// A dense output, or the heads of one from `head` on.
AttentionOutput target(mx::array& a, std::ptrdiff_t head = 0) {
  const std::ptrdiff_t dim = a.shape(3), row = a.shape(2) * dim;
  const auto at = static_cast<std::size_t>(head * dim) * a.itemsize();
  return {a.data<std::byte>() + at, a.shape(1) * row, row, dim};
}

std::vector<Source> sources_of(const Arrays& in, const Config& c) {
  return {in.begin(), in.begin() + static_cast<std::ptrdiff_t>(c.tensors())};
}

// All but the outputs.
AttentionArgs args_of(
    const Arrays& in,
    const std::vector<Source>& sources,
    const Config& c
) {
  AttentionArgs a;
  const mx::array &q = in[0], &k = in[c.joint() ? 0 : 1];
  a.batch = q.shape(0), a.queries = q.shape(1), a.keys = k.shape(1);
  a.dim = q.shape(3);
  a.heads = c.joint() ? c.heads : q.shape(2);
  a.kv_heads = c.joint() ? c.kv_heads : k.shape(2);
  a.query_type = a.kv_type = type_of(q);
  a.q = sources[0].view();
  a.k = c.joint() ? sources[0].view(a.heads) : sources[1].view();
  a.v = c.joint() ? sources[0].view(a.heads + a.kv_heads) : sources[2].view();
  a.scale = c.scale, a.softcap = c.softcap;
  a.causal = c.causal, a.window = c.window, a.query_offset = c.query_offset;
  if (c.segments) {
    const mx::array &mine = in[c.tensors()], &theirs = in[c.tensors() + 1];
    a.query_segments = {mine.data<std::int32_t>(), a.queries};
    a.key_segments = {theirs.data<std::int32_t>(), a.keys};
  }
  return a;
}

// q, k, v or qkv[, query_segments, key_segments], out, lse, dout -> dq, dk, dv
// or dqkv
class AttentionGrad : public CpuOp {
 public:
  AttentionGrad(mx::Stream s, Config c) : CpuOp(s), c_(c) {}
  HEARTH_OP_NAME(AttentionGrad)
  bool is_equivalent(const mx::Primitive& other) const override {
    return c_ == static_cast<const AttentionGrad&>(other).c_;
  }

  void eval_cpu(const Arrays& in, Arrays& out) override {
    const auto sources = sources_of(in, c_);
    AttentionGradArgs g;
    g.forward = args_of(in, sources, c_);
    const std::size_t rest = c_.tensors() + (c_.segments ? 2 : 0);
    mx::array y = in[rest], lse = in[rest + 1];
    const Source dout(in[rest + 2]);
    g.forward.out = target(y);
    g.forward.lse = lse.data<float>();
    g.dout = dout.view();
    const auto memory =
        scratch(stream(), attention_scratch(g, current_execution()));
    allocate(out);
    const auto& a = g.forward;
    g.dq = target(out[0]);
    g.dk = c_.joint() ? target(out[0], a.heads) : target(out[1]);
    g.dv = c_.joint() ? target(out[0], a.heads + a.kv_heads) : target(out[2]);
    launch([=](const Execution& run) noexcept {
      for (const Source& s : sources) s.gather();
      dout.gather();
      attention_backward(g, run, memory->data());
    });
  }

 private:
  Config c_;
};

// q, k, v or qkv[, query_segments, key_segments] -> out, lse
class Attention : public CpuOp {
 public:
  Attention(mx::Stream s, Config c) : CpuOp(s), c_(c) {}
  HEARTH_OP_NAME(Attention)
  bool is_equivalent(const mx::Primitive& other) const override {
    return c_ == static_cast<const Attention&>(other).c_;
  }

  void eval_cpu(const Arrays& in, Arrays& out) override {
    const auto sources = sources_of(in, c_);
    AttentionArgs a = args_of(in, sources, c_);
    const auto memory =
        scratch(stream(), attention_scratch(a, current_execution()));
    allocate(out);
    a.out = target(out[0]);
    a.lse = out[1].data<float>();
    launch([=](const Execution& run) noexcept {
      for (const Source& s : sources) s.gather();
      attention_forward(a, run, memory->data());
    });
  }

  // The log-sum-exp is nobody's output, so its cotangent is not looked at.
  Arrays vjp(
      const Arrays& p,
      const Arrays& ct,
      const std::vector<int>& argnums,
      const Arrays& out
  ) override {
    Arrays in = p;
    in.insert(in.end(), {out[0], out[1], ct[0]});
    std::vector<mx::Shape> shapes;
    for (std::size_t i = 0; i < c_.tensors(); ++i) {
      shapes.push_back(p[i].shape());
    }
    const std::vector<mx::Dtype> types(shapes.size(), p[0].dtype());
    const auto g = mx::array::make_arrays(
        std::move(shapes), types, std::make_shared<AttentionGrad>(stream(), c_),
        in
    );
    return pick(g, argnums);
  }

 private:
  Config c_;
};

}  // namespace

mx::array attention_cpu(
    const Arrays& tensors,
    const mx::Shape& shape,
    const ResolvedOptions& o,
    int heads,
    int kv_heads,
    mx::StreamOrDevice s
) {
  const bool segments = o.query_segments.has_value();
  const Config c{o.scale,  o.softcap,      o.causal, segments,
                 o.window, o.query_offset, heads,    kv_heads};
  Arrays in = tensors;
  if (segments) in.insert(in.end(), {*o.query_segments, *o.key_segments});
  return mx::array::make_arrays(
      {shape, {shape[0], shape[2], shape[1]}},
      {tensors[0].dtype(), mx::float32},
      std::make_shared<Attention>(mx::to_stream(s), c), in
  )[0];
}

}  // namespace hearth::ops
