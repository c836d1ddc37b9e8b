// hearth doctor: what this machine is.
#include <fmt/format.h>

#include "hearth/base/log.h"
#include "hearth/bench/measure.h"
#include "hearth/cli/command.h"
#include "hearth/cli/measure/doctor_report.h"

namespace hearth::cli {

void cmd_doctor(Context& context, const std::vector<std::string>& words) {
  bool measure = false;
  Args args(
      "doctor",
      "Say what this machine is, what memory is safe to train in, which "
      "devices and kernels work, and which hardware profile fits.",
      context.common
  );
  args.flag("--measure", measure, "Measure this machine's peaks (under 30 s)");
  args.example("hearth doctor", "what this machine is");
  args.example("hearth doctor --measure", "and how fast it really is");
  args.example("hearth doctor --json", "the same for a script");
  if (!context.parse(args, words)) return;
  DoctorReport report = gather_report(context.common.device);
  if (measure) {
    const double busy = bench::busy_cores();
    if (busy > 0.5) {
      log_warning(
          "other programs kept {:.1f} cores busy in the last minute: peaks "
          "measured now may be too low, measure again when it is idle",
          busy
      );
    }
    report.peaks = bench::measure_peaks(report.machine);
    const std::string path = hardware::store_peaks(*report.peaks);
    context.note(fmt::format("peaks kept in {}", path));
  }
  if (context.common.json)
    return context.json("hearth.doctor/1", to_json(report));
  context.print(to_text(report));
}

}  // namespace hearth::cli
