#include "hearth/models/held_weights.h"

#include <algorithm>

#include "hearth/ops/execution.h"

namespace hearth::models {
namespace {

std::span<const std::byte> bytes_of(const mlx::core::array& a) {
  return {
      reinterpret_cast<const std::byte*>(a.data<std::uint8_t>()), a.nbytes()
  };
}

}  // namespace

std::vector<HeldForm> held_forms(const nn::Weight& p) {
  std::vector<HeldForm> out;
  if (p.value().size() > 0) {
    auto value = p.value();
    value.eval();
    out.push_back(
        {"value", value.dtype() == mlx::core::bfloat16 ? "bf16" : "f32",
         bytes_of(value)}
    );
  }
  if (p.packed()) {
    const bool bf16 = p.packed()->family().operand == kernels::GemmScalar::bf16;
    out.push_back(
        {"packed", bf16 ? "bf16" : "f32",
         std::span(p.packed()->forward(), p.packed()->forward_bytes())}
    );
  }
  if (p.quantized() && p.quantized()->packed()) {
    auto codes = *p.quantized()->packed();
    codes.eval();
    out.push_back(
        {"quantized", p.quantized()->format().name(), bytes_of(codes)}
    );
  }
  return out;
}

Hash128 held_hash(const nn::ParameterSet& parameters) {
  // What one thread hashes at a time.
  constexpr std::size_t kBlock = std::size_t{4} << 20;
  ContentHash all;
  std::vector<std::span<const std::byte>> blocks;
  for (const nn::Weight* p : parameters.all()) {
    all.field(p->name);
    for (const int n : p->shape) all.field(static_cast<std::uint64_t>(n));
    for (const HeldForm& held : held_forms(*p)) {
      all.field(held.form).field(held.type).field(held.bytes.size());
      for (std::size_t at = 0; at < held.bytes.size(); at += kBlock) {
        blocks.push_back(
            held.bytes.subspan(at, std::min(kBlock, held.bytes.size() - at))
        );
      }
    }
  }
  std::vector<std::uint64_t> hashes(blocks.size());
  ops::current_execution().pool.parallel_for(
      blocks.size(), 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
          Hash64 hash;
          hash.update(blocks[i].data(), blocks[i].size());
          hashes[i] = hash.digest();
        }
      }
  );
  for (const std::uint64_t hash : hashes) all.field(hash);
  return all.digest();
}

}  // namespace hearth::models
