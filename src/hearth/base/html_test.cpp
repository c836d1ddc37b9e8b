#include "hearth/base/html.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(Html, TextStaysTextInAPageAndInAnAttribute) {
  EXPECT_EQ(
      html_escaped("<a href=\"x\" b='y'>é & z</a>"),
      "&lt;a href=&#34;x&#34; b=&#39;y&#39;&gt;é &amp; z&lt;/a&gt;"
  );
  EXPECT_EQ(html_escaped(""), "");
}

}  // namespace
}  // namespace hearth
