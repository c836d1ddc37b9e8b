#pragma once
// What `hearth doctor` has to say, gathered once and shown as text or JSON.
#include <optional>
#include <string>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/hardware/device.h"
#include "hearth/hardware/machine.h"
#include "hearth/hardware/peaks.h"
#include "hearth/hardware/profile.h"

namespace hearth::cli {

struct DoctorReport {
  hardware::Machine machine;
  hardware::SafeMemory safe;
  std::vector<hardware::Device> devices;
  hardware::DeviceChoice choice;
  std::vector<std::string> isa_known, isa_usable;
  std::string isa;
  std::string profile, profile_describes, profile_reason;
  std::vector<hardware::Warning> warnings;
  std::optional<hardware::Peaks> peaks;
  std::string mlx_version;
};

// Asks the machine; throws UsageError when the wanted device is not there.
DoctorReport gather_report(const std::string& wanted_device);

std::string to_text(const DoctorReport& report);
Json to_json(const DoctorReport& report);

}  // namespace hearth::cli
