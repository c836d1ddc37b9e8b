// Rounding to a format and back over our kernels, a row at a time.

#include "hearth/kernels/quant/rows.h"
#include "hearth/ops/fake_quant/faces_impl.h"

namespace hearth::ops {
namespace {

using kernels::QuantFormat;
using kernels::QuantKind;
using kernels::ScaleType;

// One row at a time through the format and back, in a thread's own scratch:
// codes, scales, biases, and the row in fp32.
struct RowRoom {
  std::size_t codes, scales, row, bytes;
  RowRoom(const QuantFormat& f, long cols) {
    const auto padded = [](std::size_t n) { return (n + 63) / 64 * 64; };
    codes = padded(f.code_bytes(cols));
    scales = padded(f.scale_count(cols) * kernels::size_of(f.scale));
    row = padded(static_cast<std::size_t>(cols) * sizeof(float));
    bytes = codes + 2 * scales + row;
  }
};

class FakeQuant : public CpuOp {
 public:
  FakeQuant(mx::Stream s, const QuantFormat& format)
      : CpuOp(s), format_(format) {}
  HEARTH_OP_NAME(FakeQuant)
  bool is_equivalent(const mx::Primitive& other) const override {
    return format_ == static_cast<const FakeQuant&>(other).format_;
  }

  void eval_cpu(const Arrays& in, Arrays& out) override {
    const long cols = in[0].shape(-1), rows = rows_of(in[0]);
    const RowRoom room(format_, cols);
    const int threads = current_execution().pool.size();
    auto memory =
        scratch(stream(), room.bytes * static_cast<unsigned>(threads));
    allocate(out);
    launch([f = format_, cols, rows, room, memory,
            bf16 = in[0].dtype() == mx::bfloat16, from = in[0].data<char>(),
            to = out[0].data<char>()](const Execution& run) noexcept {
      run.pool.run([&](int worker) {
        const Range r = partition(
            static_cast<std::size_t>(rows), 1, worker, run.pool.size()
        );
        std::byte* at =
            memory->data() + room.bytes * static_cast<unsigned>(worker);
        for (std::size_t i = r.begin; i < r.end; ++i) {
          row(run, f, room, at, from, to, static_cast<long>(i), cols, bf16);
        }
      });
    });
  }

  Arrays vjp(
      const Arrays&,
      const Arrays& ct,
      const std::vector<int>& argnums,
      const Arrays&
  ) override {
    return Arrays(argnums.size(), ct[0]);
  }

 private:
  QuantFormat format_;

  static void row(
      const Execution& run,
      const QuantFormat& f,
      const RowRoom& room,
      std::byte* at,
      const char* from,
      char* to,
      long i,
      long cols,
      bool bf16
  ) noexcept {
    auto* codes = reinterpret_cast<std::uint8_t*>(at);
    std::byte* scales = at + room.codes;
    std::byte* biases = scales + room.scales;
    auto* wide = reinterpret_cast<float*>(biases + room.scales);
    const auto& rows = *run.kernels.quant_rows;
    if (!bf16) {
      const auto* w = reinterpret_cast<const float*>(from) + i * cols;
      rows.quantize(f, w, cols, 1, cols, {codes, scales, biases});
      rows.dequantize(
          f, {codes, scales, biases}, 1, cols,
          reinterpret_cast<float*>(to) + i * cols, cols
      );
      return;
    }
    const auto* w = reinterpret_cast<const std::uint16_t*>(from) + i * cols;
    for (long c = 0; c < cols; ++c) {
      const std::uint32_t bits = static_cast<std::uint32_t>(w[c]) << 16;
      std::memcpy(wide + c, &bits, sizeof(bits));
    }
    rows.quantize(f, wide, cols, 1, cols, {codes, scales, biases});
    rows.dequantize_bf16(
        f, {codes, scales, biases}, 1, cols,
        reinterpret_cast<std::uint16_t*>(to) + i * cols, cols
    );
  }
};

}  // namespace

mx::array fake_quant_cpu(
    const mx::array& w,
    const QuantFormat& format,
    mx::StreamOrDevice s
) {
  return mx::array(
      w.shape(), w.dtype(),
      std::make_shared<FakeQuant>(mx::to_stream(s), format), {dense(w, s)}
  );
}

}  // namespace hearth::ops
