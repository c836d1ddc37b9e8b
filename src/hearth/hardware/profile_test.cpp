#include "hearth/hardware/profile.h"

#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/base/temp_folder_test.h"
#include "hearth/hardware/capture_test.h"
#include "hearth/hardware/mac_machine.h"

namespace hearth::hardware {
namespace {

const std::vector<Profile>& builtin() {
  static const auto profiles = load_profiles("/nonexistent");
  return profiles;
}

std::string mac_key(const std::string& capture, int gpu_cores) {
  MacFacts f;
  f.sysctl = read_sysctl(capture_text("sysctl-" + capture));
  f.gpu_cores = gpu_cores;
  const auto traits = traits_of(describe_mac(f), "neon", {});
  return match_profile(builtin(), traits).profile->key;
}

std::string error_of(const std::string& text) {
  try {
    parse_profiles(text, "p.yaml");
  } catch (const FormatError& e) {
    return e.what();
  }
  return "";
}

TEST(Profile, AllSeedProfilesAreThere) {
  std::set<std::string> keys;
  for (const Profile& p : builtin()) keys.insert(p.key);
  for (const char* key : {"m1-pro-32g",     "m1-max-64g",
                          "m1-ultra-128g",  "m2-pro-32g",
                          "m2-max-64g",     "m2-ultra-128g",
                          "m3-pro-36g",     "m3-max-48g",
                          "m3-max-96g",     "m4-pro-36g",
                          "m4-max-64g",     "unknown-apple-silicon",
                          "linux-x86-amx",  "linux-x86-avx512",
                          "linux-x86-avx2", "linux-arm64",
                          "nvidia-h100",    "nvidia-h200",
                          "unknown",        "m5",
                          "m5-max-40c",     "m6"}) {
    EXPECT_TRUE(keys.contains(key)) << key;
  }
  for (const Profile& p : builtin()) {
    EXPECT_TRUE(p.speed_targets.empty())
        << p.key << ": nobody measured one yet";
  }
}

TEST(Profile, TheMostSpecificMatchWins) {
  EXPECT_EQ(mac_key("m1", 8), "m1");
  EXPECT_EQ(mac_key("m1-max", 32), "m1-max-64g");
  EXPECT_EQ(mac_key("m3-max-30c", 30), "m3-max-30c");
  EXPECT_EQ(mac_key("m3-max-40c", 40), "m3-max-96g");
  EXPECT_EQ(mac_key("m3-max-40c", 0), "m3-max");  // the bin is not known
  EXPECT_EQ(mac_key("m4-pro", 20), "m4-pro-36g");
  EXPECT_EQ(mac_key("m5-max", 40), "m5-max-40c");
  EXPECT_EQ(mac_key("m6", 12), "m6-24g");
}

TEST(Profile, AnUnknownMachineIsUnknownAndSaysSo) {
  EXPECT_EQ(mac_key("m9", 200), "unknown-apple-silicon");
  const MachineTraits strange{
      .os = "linux", .architecture = "riscv64", .chip = "C910", .isa = "generic"
  };
  const ProfileMatch match = match_profile(builtin(), strange);
  EXPECT_EQ(match.profile->key, "unknown");
  EXPECT_NE(match.reason.find("C910"), std::string::npos);
}

TEST(Profile, LinuxMatchesByKernelTableAndGpuFirst) {
  MachineTraits t{.os = "linux", .architecture = "x86_64", .isa = "amx"};
  EXPECT_EQ(match_profile(builtin(), t).profile->key, "linux-x86-amx");
  t.gpu = "NVIDIA H200";
  EXPECT_EQ(match_profile(builtin(), t).profile->key, "nvidia-h200");
}

TEST(Profile, ErrorsSayFileLineAndKey) {
  const std::string good = "profiles:\n  - key: a\n    describes: b\n";
  EXPECT_EQ(error_of(good), "");
  EXPECT_EQ(
      error_of(good + "    mach: {}\n"),
      "p.yaml:4: there is no key 'mach'; did you mean 'match'?"
  );
  EXPECT_EQ(
      error_of("profiles:\n  - key: a\n"),
      "p.yaml:2: key 'describes' must be given"
  );
  EXPECT_NE(
      error_of(good + "  - key: c\n    describes: d\n")
          .find("p.yaml:4: match of 'c'"),
      std::string::npos
  );
  EXPECT_NE(
      error_of(good + "  - key: a\n    describes: d\n    match: {os: linux}\n")
          .find("must be unique"),
      std::string::npos
  );
  EXPECT_NE(
      error_of(good + "    shape_mix: {lengths: [1, 2], probs: [0.5, 0.4]}\n")
          .find("must add up to 1"),
      std::string::npos
  );
  EXPECT_NE(
      error_of("profile: []\n").find("there is no key 'profile'"),
      std::string::npos
  );
  EXPECT_NE(
      error_of("{}").find("key 'profiles' must be given"), std::string::npos
  );
}

TEST(Profile, ABandWithoutASourceIsRefused) {
  const std::string good = "profiles:\n  - key: a\n    describes: b\n";
  const std::string band =
      "    speed_targets:\n      - {context: 512, model: m, tps_p50: [20, 30]";
  EXPECT_EQ(
      error_of(good + band + "}\n"), "p.yaml:5: key 'source' must be given"
  );
  EXPECT_EQ(error_of(good + band + ", source: us}\n"), "");
  EXPECT_NE(
      error_of(good + band + ", source: us, tps_p95: [3, 2]}\n")
          .find("[low, high]"),
      std::string::npos
  );
}

TEST(Profile, AUsersProfileReplacesABuiltInOne) {
  const TempFolder folder;
  folder.write(
      "mine.yaml",
      "profiles:\n"
      "  - key: linux-arm64\n    describes: mine\n"
      "    match: {os: linux, architecture: arm64}\n"
  );
  const auto profiles = load_profiles(folder.path());
  EXPECT_EQ(profile_named(profiles, "linux-arm64").describes, "mine");
  EXPECT_EQ(profiles.size(), builtin().size());
}

TEST(Profile, AWrongNameListsTheNearest) {
  try {
    profile_named(builtin(), "m1-max-46g");
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_NE(
        std::string(e.what()).find("did you mean 'm1-max-64g'"),
        std::string::npos
    );
  }
}

}  // namespace
}  // namespace hearth::hardware
