// The thin part of detection that talks to macOS. Unverified: written from
// Apple's documentation, not yet run on a Mac.
#include <string>

#include <mach/mach.h>
#include <sys/sysctl.h>

#import <Foundation/Foundation.h>
#import <IOKit/IOKitLib.h>
#import <IOKit/ps/IOPowerSources.h>
#import <Metal/Metal.h>

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

int gpu_core_count() {
  const io_service_t gpu = IOServiceGetMatchingService(
      kIOMainPortDefault, IOServiceMatching("AGXAccelerator")
  );
  if (gpu == 0) return 0;
  int cores = 0;
  const CFTypeRef value = IORegistryEntryCreateCFProperty(
      gpu, CFSTR("gpu-core-count"), kCFAllocatorDefault, 0
  );
  if (value != nullptr) {
    CFNumberGetValue(static_cast<CFNumberRef>(value), kCFNumberIntType, &cores);
    CFRelease(value);
  }
  IOObjectRelease(gpu);
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
  const CFTypeRef info = IOPSCopyPowerSourcesInfo();
  if (info == nullptr) return "";
  const CFStringRef type = IOPSGetProvidingPowerSourceType(info);
  const bool battery = type != nullptr &&
                       CFStringCompare(type, CFSTR(kIOPMBatteryPowerKey), 0) ==
                           kCFCompareEqualTo;
  CFRelease(info);
  return battery ? "battery" : "ac";
}

std::string thermal_state() {
  switch (NSProcessInfo.processInfo.thermalState) {
    case NSProcessInfoThermalStateNominal:
      return "nominal";
    case NSProcessInfoThermalStateFair:
      return "fair";
    case NSProcessInfoThermalStateSerious:
      return "serious";
    case NSProcessInfoThermalStateCritical:
      return "critical";
  }
  return "";
}

}  // namespace

Machine detect() {
  MacFacts facts;
  read_texts(facts);
  read_numbers(facts);
  if (id<MTLDevice> device = MTLCreateSystemDefaultDevice()) {
    facts.metal_name = device.name.UTF8String;
    facts.recommended_working_set = device.recommendedMaxWorkingSetSize;
    if (@available(macOS 14.0, *)) {
      facts.metal_architecture = device.architecture.name.UTF8String;
    }
  }
  facts.gpu_cores = gpu_core_count();
  facts.free_memory = free_memory();
  facts.power_source = power_source();
  facts.thermal_state = thermal_state();
  facts.low_power = NSProcessInfo.processInfo.lowPowerModeEnabled;
  return describe_mac(facts);
}

}  // namespace hearth::hardware
