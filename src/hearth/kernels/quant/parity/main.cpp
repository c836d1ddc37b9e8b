// Quantises or dequantises rows from standard input to standard output, so that
// a script can hold a format against somebody else's implementation of it:
//   hearth_quant_parity quantize|dequantize FORMAT ROWS COLS [ISA]
// Floats are little-endian fp32; codes, scales and biases follow one another.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/kernels/quant/rows.h"
#include "hearth/kernels/table.h"

namespace {

using hearth::kernels::QuantFormat;

std::vector<unsigned char> read_exactly(std::size_t bytes) {
  std::vector<unsigned char> data(bytes);
  if (std::fread(data.data(), 1, bytes, stdin) != bytes) {
    throw hearth::UsageError("[quant_parity] standard input is too short");
  }
  return data;
}

void run(int argc, char** argv) {
  if (argc < 5) throw hearth::UsageError("[quant_parity] four arguments");
  const std::string action = argv[1];
  const QuantFormat f = QuantFormat::parse(argv[2]);
  const long rows = std::stol(argv[3]), cols = std::stol(argv[4]);
  f.check("quant_parity", cols);
  const auto& table = argc > 5 ? hearth::kernels::table_named(argv[5])
                               : hearth::kernels::best();
  const auto n = static_cast<std::size_t>(rows);
  const std::size_t codes = n * f.code_bytes(cols);
  const std::size_t scales = n * f.scale_count(cols) * size_of(f.scale);
  const std::size_t biases = n * f.bias_count(cols) * size_of(f.scale);
  std::vector<float> w(n * static_cast<std::size_t>(cols));
  if (action == "quantize") {
    const auto in = read_exactly(w.size() * sizeof(float));
    std::vector<unsigned char> out(codes + scales + biases);
    table.quant_rows->quantize(
        f, reinterpret_cast<const float*>(in.data()), cols, rows, cols,
        {out.data(), out.data() + codes, out.data() + codes + scales}
    );
    std::fwrite(out.data(), 1, out.size(), stdout);
  } else if (action == "dequantize") {
    const auto in = read_exactly(codes + scales + biases);
    table.quant_rows->dequantize(
        f, {in.data(), in.data() + codes, in.data() + codes + scales}, rows,
        cols, w.data(), cols
    );
    std::fwrite(w.data(), sizeof(float), w.size(), stdout);
  } else {
    throw hearth::UsageError("[quant_parity] quantize or dequantize");
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
  return 0;
}
