#include "hearth/io/safetensors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hearth/io/model_bytes_test.h"

namespace hearth::io {
namespace {

using test::refusal;
using test::safetensors;

std::string refused(const std::string& bytes) {
  return refusal([&] { SafetensorsFile(test::as_bytes(bytes), "a.st"); });
}

TEST(Safetensors, ReadsNamesShapesTypesAndBytes) {
  const std::string bytes = safetensors(
      R"({"__metadata__":{"format":"pt"},)"
      R"("b":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
      R"("a":{"dtype":"BF16","shape":[],"data_offsets":[8,10]},)"
      R"("none":{"dtype":"I8","shape":[3,0],"data_offsets":[10,10]}})",
      test::raw(1.5F) + test::raw(-2.0F) + "\x80\x3f"
  );
  const SafetensorsFile file(test::as_bytes(bytes), "a.st");
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.metadata().at("format"), "pt");
  const TensorInfo& a = file.tensors()[0];
  const TensorInfo& b = file.tensors()[1];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.type, TensorType::bf16);
  EXPECT_TRUE(a.shape.empty());
  EXPECT_EQ(b.shape, (std::vector<std::int64_t>{2, 1}));
  float second = 0;
  std::memcpy(&second, file.bytes(b).data() + 4, 4);
  EXPECT_EQ(second, -2.0F);
  EXPECT_EQ(b.offset + b.bytes + 2, bytes.size());
  EXPECT_EQ(file.bytes(a)[1], std::byte{0x3f});
  EXPECT_EQ(file.bytes(file.tensors()[2]).size(), 0u);
}

TEST(Safetensors, RefusesWhatTheHeaderCannotMean) {
  const auto one = [](const std::string& entry, std::size_t size = 8) {
    return refused(
        safetensors("{\"x\":" + entry + "}", std::string(size, '\0'))
    );
  };
  const std::pair<std::string, const char*> cases[] = {
      {refused("abc"), "at least 8 bytes"},
      {refused(test::raw(~std::uint64_t{0})), "header must be at most"},
      {refused(test::raw(std::uint64_t{99}) + "{}"), "cut short"},
      {refused(safetensors("[]", "")), "must be a JSON object"},
      {refused(safetensors("{\"a\":", "")), "not JSON"},
      {refused(safetensors(R"({"__metadata__":{"a":1}})", "")), "strings only"},
      {one(R"({"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]})"),
       "type \"F8_E4M3\" is not supported"},
      {one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"),
       "takes 12 bytes"},
      {one(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"),
       "whole numbers"},
      {one(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})"),
       "whole numbers"},
      {one(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"),
       "must lie in"},
      {one(R"({"dtype":"F32","shape":[4],"data_offsets":[0,16]})"),
       "must lie in"},
      {one(R"({"dtype":"F32","shape":[4294967296,4294967296],)"
           R"("data_offsets":[0,8]})"),
       "too many"},
      {one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"z":1})"),
       "unknown field \"z\""},
      {one(R"({"dtype":"F32","data_offsets":[0,8]})"), "has no shape"},
      {one("7"), "must be an object"},
      {one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})", 9),
       "the tensors end here"},
  };
  for (const auto& [message, phrase] : cases) {
    EXPECT_NE(message.find(phrase), message.npos) << phrase << ": " << message;
    EXPECT_NE(message.find("a.st"), message.npos) << message;
  }
}

TEST(Safetensors, RefusesOverlapsGapsAndNamesTwice) {
  const auto two = [](const std::string& second, const std::string& name) {
    return refused(safetensors(
        R"({"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},")" + name +
            R"(":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}",
        std::string(9, '\0')
    ));
  };
  EXPECT_NE(two("[3,7]", "y").find("overlaps"), std::string::npos);
  EXPECT_NE(two("[5,9]", "y").find("gap"), std::string::npos);
  EXPECT_NE(two("[4,8]", "x").find("\"x\" is given twice"), std::string::npos);
}

TEST(Safetensors, ManyKeysCostNoMoreThanTheirSize) {
  std::string header = "{";
  for (int i = 0; i < 50'000; ++i) {
    header += fmt::format(
        R"({}"t{}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
        i > 0 ? "," : "", i
    );
  }
  const std::string bytes = safetensors(header + "}", "");
  EXPECT_EQ(
      SafetensorsFile(test::as_bytes(bytes), "a.st").tensors().size(), 50'000u
  );
}

}  // namespace
}  // namespace hearth::io
