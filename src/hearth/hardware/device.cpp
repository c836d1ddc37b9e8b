#include "hearth/hardware/device.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/base/spelling.h"

namespace hearth::hardware {

std::string_view device_word(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kMetal:
      return "metal";
    case DeviceKind::kCuda:
      return "cuda";
    case DeviceKind::kCpu:
      break;
  }
  return "cpu";
}

namespace {

const Device* find(std::span<const Device> devices, std::string_view word) {
  for (const Device& d : devices) {
    if (device_word(d.kind) == word) return &d;
  }
  return nullptr;
}

}  // namespace

DeviceChoice choose_device(
    std::string_view wanted,
    std::span<const Device> available
) {
  static const std::vector<std::string> kWords{"auto", "metal", "cuda", "cpu"};
  std::vector<std::string> there;
  for (const Device& d : available) {
    there.push_back(fmt::format("{} ({})", device_word(d.kind), d.name));
  }
  if (std::find(kWords.begin(), kWords.end(), wanted) == kWords.end()) {
    throw UsageError(
        fmt::format(
            "--device must be one of {}, got '{}'{}", fmt::join(kWords, ", "),
            wanted, did_you_mean(wanted, kWords)
        )
    );
  }
  if (wanted != "auto") {
    const Device* d = find(available, wanted);
    if (d == nullptr) {
      throw UsageError(
          fmt::format(
              "--device {} must be available on this machine, it has {}",
              wanted, fmt::join(there, ", ")
          )
      );
    }
    return {*d, "asked for"};
  }
  for (const char* word : {"metal", "cuda", "cpu"}) {
    const Device* d = find(available, word);
    if (d == nullptr) continue;
    const bool gpu = d->kind != DeviceKind::kCpu;
    return {
        *d, gpu ? fmt::format("auto: {} is there", word)
                : "auto: neither Metal nor CUDA is there"
    };
  }
  throw Error(
      "[hardware.choose_device] a machine must have at least one device"
  );
}

}  // namespace hearth::hardware
