#include "hearth/text/template/template.h"

#include <fstream>
#include <thread>

#include <gtest/gtest.h>

namespace hearth::text {
namespace {

// 2026-03-07 14:05:09, a Saturday, as tools/check_templates.py has it.
std::tm fixed_now() {
  std::tm now{};
  now.tm_year = 126, now.tm_mon = 2, now.tm_mday = 7;
  now.tm_hour = 14, now.tm_min = 5, now.tm_sec = 9;
  now.tm_wday = 6, now.tm_yday = 65;
  return now;
}

std::string render(
    std::string_view source,
    const Json& variables = Json::object(),
    const TemplateLimits& limits = {}
) {
  const Template made(source, limits);
  return made.render(jinja::Value::from_json(variables).dict(), fixed_now())
      .text;
}

TemplateError failure_of(
    std::string_view source,
    const Json& variables = Json::object(),
    const TemplateLimits& limits = {}
) {
  try {
    const std::string text = render(source, variables, limits);
    ADD_FAILURE() << source << " rendered " << text.substr(0, 100);
  } catch (const TemplateError& error) {
    return error;
  }
  return TemplateError(TemplateFault::kSyntax, "did not fail", 0, 0);
}

// Answers of jinja2 as transformers sets it up; tools/check_templates.py
// --write-golden made them.
TEST(Template, AgreesWithJinja2) {
  std::ifstream file(HEARTH_SOURCE_DIR "/tests/golden/jinja_cases.jsonl");
  ASSERT_TRUE(file);
  std::string line;
  std::getline(file, line);
  const Json variables = Json::parse(line)["variables"];
  int count = 0;
  for (; std::getline(file, line); ++count) {
    const Json wanted = Json::parse(line);
    const std::string source = wanted["source"];
    if (wanted.contains("text")) {
      EXPECT_EQ(render(source, variables), wanted["text"].get<std::string>())
          << source;
    } else if (wanted["error"] != "recursion") {
      EXPECT_EQ(
          failure_of(source, variables).message(),
          wanted["error"].get<std::string>()
      ) << source;
    } else {
      EXPECT_EQ(failure_of(source, variables).fault(), TemplateFault::kLimit);
    }
  }
  EXPECT_GT(count, 250);
}

TEST(Template, ErrorsNameLineAndColumn) {
  const auto error = failure_of("a\n  {{ x }}{{ y.z }}");
  EXPECT_EQ(error.message(), "'y' is undefined");
  EXPECT_EQ(error.line(), 2);
  EXPECT_EQ(error.column(), 14);
  EXPECT_STREQ(
      error.what(), "[data.template] line 2, column 14: 'y' is undefined"
  );
  const auto syntax = failure_of("{% if x %}\n é {% endfor %}");
  EXPECT_EQ(syntax.fault(), TemplateFault::kSyntax);
  EXPECT_EQ(syntax.line(), 2);
  EXPECT_EQ(syntax.column(), 7);
  const auto raised = failure_of("{{ raise_exception('no') }}");
  EXPECT_EQ(raised.fault(), TemplateFault::kRaised);
  EXPECT_EQ(raised.message(), "no");
}

TEST(Template, GenerationBlocksGiveSpansAndMessages) {
  const Template made(
      "{% for m in messages %}<{{ m.r }}>{% if m.r == 'a' %}"
      "{% generation %}{{ m.c }};{% endgeneration %}{% endif %}{% endfor %}"
  );
  EXPECT_TRUE(made.has_generation());
  const Json variables = Json::parse(
      R"({"messages": [{"r":"u"},{"r":"a","c":"é"},{"r":"u"},{"r":"a","c":"yz"}]})"
  );
  const auto rendering =
      made.render(jinja::Value::from_json(variables).dict(), fixed_now());
  EXPECT_EQ(rendering.text, "<u><a>é;<u><a>yz;");
  ASSERT_EQ(rendering.generations.size(), 2u);
  EXPECT_EQ(rendering.generations[0].message, 1);
  EXPECT_EQ(rendering.generations[0].span.begin, 6u);
  EXPECT_EQ(rendering.generations[0].span.end, 9u);
  EXPECT_EQ(rendering.generations[1].message, 3);
  EXPECT_EQ(
      rendering.text.substr(
          rendering.generations[1].span.begin,
          rendering.generations[1].span.end -
              rendering.generations[1].span.begin
      ),
      "yz;"
  );
}

// Each of these would run for ages, fill memory or exhaust the stack.
TEST(Template, HostileTemplatesStopAtALimit) {
  const std::string deep_list = std::string(5000, '[') + std::string(5000, ']');
  const std::string chain(100000, '+');
  std::string sum = "{{ 1";
  for (int i = 0; i < 100000; ++i) sum += "+1";
  std::string attributes = "{{ a";
  for (int i = 0; i < 100000; ++i) attributes += ".b";
  std::string nested_if;
  for (int i = 0; i < 5000; ++i) nested_if += "{% if 1 %}";
  const std::string loops =
      "{% for a in range(99999) %}{% for b in range(99999) %}";
  const std::string sources[] = {
      loops + "{% endfor %}{% endfor %}",
      loops + "x{% endfor %}{% endfor %}",
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% macro f(x) %}{{ g(x) }}{% endmacro %}{% macro g(x) %}{{ f([x]) }}"
      "{% endmacro %}{{ f(1) }}",
      "{{ 'a' * 9000000000000 }}",
      "{{ [1] * 9000000000 }}",
      "{% set ns = namespace(x='ab') %}{% for i in range(99) %}"
      "{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
      "{% set ns = namespace(x=[1]) %}{% for i in range(90) %}"
      "{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
      "{% set ns = namespace(x=[1]) %}{% for i in range(90) %}"
      "{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x|tojson }}",
      "{% set n = namespace(x=[1], y=[1]) %}{% for i in range(90) %}"
      "{% set n.x = [n.x, n.x] %}{% set n.y = [n.y, n.y] %}{% endfor %}"
      "{{ n.x == n.y }}",
      "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}"
      "{% set ns.x = [ns.x] %}{% endfor %}",
      "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}"
      "{% set ns.x = [ns.x.index] %}{% endfor %}",
      "{{ ('a' * 1000000)|replace('a', 'b' * 1000000) }}",
      "{{ ('a' * 1000000).replace('', 'b' * 1000) }}",
      "{{ 'x'.center(9000000000000) }}",
      "{{ 'x'|indent(9000000000000) }}",
      "{{ [[1]]|tojson(indent=900000000000) }}",
      "{{ ('a ' * 9000000).split() }}",
      "{{ 9223372036854775807 + 1 }}",
      "{{ -9223372036854775807 - 2 }}",
      "{{ 9 ** 99 }}",
      "{{ " + deep_list + " }}",
      "{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}",
      "{{ " + chain + "1 }}",
      "{{ " + std::string(99999, '-') + "1 }}",
      sum + " }}",
      attributes + " }}",
      nested_if,
      "{{ range(-9223372036854775807, 9223372036854775807) }}",
      "{{ [1,2]|batch(9000000000000, 1)|list }}",
      "{% set t = 'a' * 400000 %}{% set p = 'a' * 200000 ~ 'b' %}"
      "{% for i in range(99999) %}{{ p in t }}{% endfor %}",
      "{% set t = 'a' * 400000 %}{% set p = 'b' ~ 'a' * 200000 %}"
      "{% for i in range(99999) %}{{ t.rfind(p) }}{% endfor %}",
      "{% set c = 'ab' * 1000000 %}{% for i in range(99999) %}"
      "{{ 'x'.strip(c) }}{% endfor %}",
  };
  // Tighter than the defaults, so that the test is quick.
  TemplateLimits limits;
  limits.max_work = 500'000;
  limits.max_value_bytes = std::size_t{32} << 20;
  for (const std::string& source : sources) {
    const auto error = failure_of(source, Json::object(), limits);
    EXPECT_TRUE(
        error.fault() == TemplateFault::kLimit ||
        error.fault() == TemplateFault::kUndefined
    ) << source.substr(0, 80)
      << ": " << error.what();
  }
}

TEST(Template, LinkedNamespacesAreFreed) {
  // A chain of a hundred thousand, and a ring.
  EXPECT_EQ(
      render(
          "{% set ns = namespace() %}{% set first = namespace() %}"
          "{% set ns.cur = first %}{% for i in range(50000) %}"
          "{% set m = ns.cur %}{% set n = namespace() %}{% set m.next = n %}"
          "{% set ns.cur = n %}{% endfor %}{% set m = ns.cur %}"
          "{% set m.next = first %}done"
      ),
      "done"
  );
}

TEST(Template, OutputLimitHolds) {
  TemplateLimits limits;
  limits.max_output_bytes = 10;
  EXPECT_EQ(render("0123456789", Json::object(), limits), "0123456789");
  const auto error = failure_of("01234567890", Json::object(), limits);
  EXPECT_EQ(error.fault(), TemplateFault::kLimit);
  EXPECT_EQ(
      failure_of("{{ 12345678901 }}", Json::object(), limits).fault(),
      TemplateFault::kLimit
  );
  limits.max_source_bytes = 5;
  EXPECT_THROW(Template("123456", limits), TemplateError);
}

TEST(Template, KnowsTheWordsOfItsCodeAndNotOfItsText) {
  const Template made(
      "name {# remark #}{% for m in messages %}{{ m.content }}"
      "{{ m['tool_calls'] }}{{ m.get(\"thought\") }}{% endfor %}"
  );
  for (const char* word : {"messages", "content", "tool_calls", "thought"}) {
    EXPECT_TRUE(made.mentions(word)) << word;
  }
  for (const char* word : {"name", "remark", "tool", ""}) {
    EXPECT_FALSE(made.mentions(word)) << word;
  }
}

TEST(Template, RefusesBytesThatAreNotText) {
  for (const char* bad :
       {"\xff", "a\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82",
        "{{ '\xc3' }}"}) {
    EXPECT_THROW(Template{bad}, TemplateError);
  }
}

// Broken templates: one clear line each, never a crash.
TEST(Template, EveryPrefixOfATemplateIsRefusedOrRendered) {
  const std::string source =
      "{%- macro f(a, b='x') -%}{{ a[1:2] | join(', ') ~ b }}{%- endmacro %}"
      "{# note #}{% for k, v in d.items() if k is not none %}{{ f([v], b=k) }}"
      "{% else %}{% raw %}{{ }}{% endraw %}{% endfor %}"
      "{% set x %}{{ {'a': [1, 2.5e3, \"s\\n\"]}['a'][-1] }}{% endset %}{{ x "
      "}}";
  const Json variables = Json::parse(R"({"d": {"p": "q"}})");
  int rendered = 0;
  for (std::size_t size = 0; size <= source.size(); ++size) {
    try {
      render(source.substr(0, size), variables);
      ++rendered;
    } catch (const TemplateError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
  EXPECT_GE(rendered, 2);
  EXPECT_EQ(render(source, variables), "ps\n");
}

TEST(Template, RendersOnManyThreadsAtOnce) {
  const Template made(
      "{% for i in range(200) %}{{ i }}{{ x|tojson }}{% endfor %}"
  );
  const auto variables =
      jinja::Value::from_json(Json::parse(R"({"x": {"a": [1, "b"]}})"));
  const std::string wanted = made.render(variables.dict(), fixed_now()).text;
  std::vector<std::string> results(4);
  std::vector<std::thread> threads;
  for (std::string& result : results) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        result = made.render(variables.dict(), fixed_now()).text;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& result : results) EXPECT_EQ(result, wanted);
}

}  // namespace
}  // namespace hearth::text
