// The thin part of detection that talks to macOS. It compiles on Linux too
// (`./dev lint mac`). Unverified: written from Apple's documentation, not yet
// run on a Mac.
#include <cstdint>
#include <string>

#include <mach/mach.h>
#include <sys/sysctl.h>

#include "hearth/hardware/mac_library_impl.h"
#include "hearth/hardware/mac_machine.h"

namespace hearth::hardware {
namespace {

constexpr const char* kTextNames[] = {
    "machdep.cpu.brand_string", "kern.osproductversion", "kern.osversion",
    "kern.osrelease",           "hw.perflevel0.name",    "hw.perflevel1.name",
    "hw.perflevel2.name",
};
constexpr const char* kNumberNames[] = {
    "hw.memsize",
    "hw.physicalcpu",
    "hw.logicalcpu",
    "hw.l1dcachesize",
    "hw.l2cachesize",
    "hw.nperflevels",
    "hw.optional.arm64",
    "hw.optional.arm.FEAT_BF16",
    "hw.optional.arm.FEAT_I8MM",
    "hw.optional.arm.FEAT_SME",
    "kern.hv_vmm_present",
    "hw.perflevel0.physicalcpu",
    "hw.perflevel1.physicalcpu",
    "hw.perflevel2.physicalcpu",
    "hw.perflevel0.l2cachesize",
};

void read_texts(MacFacts& facts) {
  for (const char* name : kTextNames) {
    char text[256] = {};
    size_t size = sizeof text - 1;
    if (sysctlbyname(name, text, &size, nullptr, 0) == 0) {
      facts.sysctl[name] = text;
    }
  }
}

// The system returns 4 or 8 bytes, whichever the value has.
void read_numbers(MacFacts& facts) {
  for (const char* name : kNumberNames) {
    uint64_t value = 0;
    size_t size = sizeof value;
    if (sysctlbyname(name, &value, &size, nullptr, 0) == 0) {
      facts.sysctl[name] = std::to_string(value);
    }
  }
}

// Strings of CoreFoundation are UTF-8 under this number, and a number asked for
// as an `int` under that one (CFString.h, CFNumber.h).
constexpr std::uint32_t kUtf8 = 0x08000100;
constexpr long kInt = 9;

int gpu_core_count() {
  const MacLibrary io = mac_framework("IOKit");
  const MacLibrary core = mac_framework("CoreFoundation");
  const auto matching = io.function<void*(const char*)>("IOServiceMatching");
  const auto service = io.function<std::uint32_t(std::uint32_t, void*)>(
      "IOServiceGetMatchingService"
  );
  const auto property =
      io.function<void*(std::uint32_t, void*, void*, std::uint32_t)>(
          "IORegistryEntryCreateCFProperty"
      );
  const auto end = io.function<int(std::uint32_t)>("IOObjectRelease");
  const auto string = core.function<void*(void*, const char*, std::uint32_t)>(
      "CFStringCreateWithCString"
  );
  const auto number =
      core.function<unsigned char(void*, long, void*)>("CFNumberGetValue");
  const auto release = core.function<void(void*)>("CFRelease");
  if (!matching || !service || !property || !end || !string || !number ||
      !release) {
    return 0;
  }
  // The dictionary that names the service is the search's to release.
  const std::uint32_t gpu = service(0, matching("AGXAccelerator"));
  if (gpu == 0) return 0;
  int cores = 0;
  void* const key = string(nullptr, "gpu-core-count", kUtf8);
  void* const value = property(gpu, key, nullptr, 0);
  if (value != nullptr) {
    number(value, kInt, &cores);
    release(value);
  }
  release(key);
  end(gpu);
  return cores;
}

size_t free_memory() {
  vm_statistics64_data_t stats{};
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  const kern_return_t ok = host_statistics64(
      mach_host_self(), HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&stats),
      &count
  );
  if (ok != KERN_SUCCESS) return 0;
  const size_t pages =
      stats.free_count + stats.inactive_count + stats.purgeable_count;
  return pages * vm_kernel_page_size;
}

std::string power_source() {
  const MacLibrary io = mac_framework("IOKit");
  const MacLibrary core = mac_framework("CoreFoundation");
  const auto copy = io.function<void*()>("IOPSCopyPowerSourcesInfo");
  const auto providing =
      io.function<void*(void*)>("IOPSGetProvidingPowerSourceType");
  const auto text =
      core.function<unsigned char(void*, char*, long, std::uint32_t)>(
          "CFStringGetCString"
      );
  const auto release = core.function<void(void*)>("CFRelease");
  if (!copy || !providing || !text || !release) return "";
  void* const info = copy();
  if (info == nullptr) return "";
  char name[64] = {};
  void* const type = providing(info);
  const bool known =
      type != nullptr && text(type, name, sizeof name, kUtf8) != 0;
  release(info);
  return known && std::string(name) == "Battery Power" ? "battery" : "ac";
}

// NSProcessInfoThermalState counts them from 0.
std::string thermal_name(long state) {
  constexpr const char* kNames[] = {"nominal", "fair", "serious", "critical"};
  return state >= 0 && state < 4 ? kNames[state] : "";
}

void read_process_info(const MacObjects& objects, MacFacts& facts) {
  // Loading the library is what makes the class known.
  if (!mac_framework("Foundation").is_open()) return;
  void* const info =
      objects.ask<void*>(objects.type("NSProcessInfo"), "processInfo");
  if (info == nullptr) return;
  facts.thermal_state = thermal_name(objects.ask<long>(info, "thermalState"));
  facts.low_power = objects.ask<bool>(info, "isLowPowerModeEnabled");
}

void read_metal(const MacObjects& objects, MacFacts& facts) {
  const MacLibrary metal = mac_framework("Metal");
  const auto create = metal.function<void*()>("MTLCreateSystemDefaultDevice");
  void* const device = create == nullptr ? nullptr : create();
  if (device == nullptr) return;
  facts.metal_name = objects.text(objects.ask<void*>(device, "name"));
  facts.recommended_working_set =
      objects.ask<std::uint64_t>(device, "recommendedMaxWorkingSetSize");
  if (objects.knows(device, "architecture")) {  // since macOS 14
    void* const architecture = objects.ask<void*>(device, "architecture");
    facts.metal_architecture =
        objects.text(objects.ask<void*>(architecture, "name"));
  }
  objects.ask<void>(device, "release");
}

}  // namespace

Machine detect() {
  MacFacts facts;
  read_texts(facts);
  read_numbers(facts);
  facts.gpu_cores = gpu_core_count();
  facts.free_memory = free_memory();
  facts.power_source = power_source();
  const MacObjects objects;
  read_metal(objects, facts);
  read_process_info(objects, facts);
  return describe_mac(facts);
}

}  // namespace hearth::hardware
