#include "hearth/text/chat/prompt_ids.h"

#include <gtest/gtest.h>

namespace hearth::text {
namespace {

TEST(PromptIds, AMessageThatTheTemplateLeavesOutIsRefusedByItsPlace) {
  const ChatTemplate only_users(
      "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}"
      "{% endif %}{% endfor %}"
  );
  const Json messages = {
      {{"role", "user"}, {"content", "ask"}},
      {{"role", "system"}, {"content", "be brief"}}
  };
  const std::string rendered = only_users.render(messages, {});
  try {
    check_messages_are_read(only_users, messages, {}, rendered);
    FAIL() << "the system's message was taken as read";
  } catch (const UnreadMessage& e) {
    EXPECT_EQ(e.index(), 1U);
    EXPECT_NE(std::string(e.what()).find("of the system"), std::string::npos);
  }
}

}  // namespace
}  // namespace hearth::text
