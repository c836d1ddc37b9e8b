// Arithmetic with worked steps, as one would do it on paper. All numbers are
// integers, so every platform gets the same digits.
#include <algorithm>
#include <utility>

#include "hearth/data/synth/parts_impl.h"

namespace hearth::data::synth {
namespace {

using Int = std::int64_t;

struct Problem {
  std::string prompt, steps, answer;
};

std::string text(Int value) {
  return std::to_string(value);
}

// A number of 1 to `digits` digits, each length as likely.
Int number(Dice& dice, Int digits) {
  Int low = 1;
  for (Int i = dice.between(1, digits); i > 1; --i) low *= 10;
  return dice.between(low == 1 ? 0 : low, low * 10 - 1);
}

constexpr std::string_view kColumns[] = {
    "ones",      "tens",          "hundreds",
    "thousands", "ten-thousands", "hundred-thousands",
    "millions",  "ten-millions",  "hundred-millions"
};

constexpr std::string_view kAsk[] = {"What is $e?", "Calculate $e.",
                                     "Compute $e.", "Work out $e.",
                                     "$e = ?",      "Find the value of $e."};

std::string ask(Dice& dice, const std::string& expression) {
  Slots slots;
  slots.set('e', expression);
  return filled(dice.pick(Words(kAsk)), slots);
}

Problem addition(Dice& dice) {
  const Int a = number(dice, 6), b = number(dice, 6);
  Problem p;
  p.prompt = ask(dice, text(a) + " + " + text(b));
  Int carry = 0;
  for (Int x = a, y = b, column = 0; x > 0 || y > 0 || column == 0;
       x /= 10, y /= 10, ++column) {
    const Int sum = x % 10 + y % 10 + carry;
    p.steps += "Add the " +
               std::string(kColumns[static_cast<std::size_t>(column)]) + ": " +
               text(x % 10) + " + " + text(y % 10);
    if (carry > 0) p.steps += " + " + text(carry);
    p.steps += " = " + text(sum);
    carry = sum / 10;
    if (carry > 0) p.steps += ", write " + text(sum % 10) + ", carry 1";
    p.steps += ".\n";
  }
  if (carry > 0) p.steps += "Write the last carry, 1, in front.\n";
  p.answer = text(a + b);
  p.steps += text(a) + " + " + text(b) + " = " + p.answer + ".\n";
  return p;
}

Problem subtraction(Dice& dice) {
  Int a = number(dice, 6), b = number(dice, 6);
  Problem p;
  p.prompt = ask(dice, text(a) + " - " + text(b));
  const std::string whole = text(a) + " - " + text(b) + " = ";
  p.answer = text(a - b);
  if (a < b) {
    p.steps = text(b) + " is larger than " + text(a) +
              ", so the result is negative: take " + text(a) + " from " +
              text(b) + ".\n";
    std::swap(a, b);
  }
  Int borrow = 0;
  for (Int x = a, y = b, column = 0; x > 0 || column == 0;
       x /= 10, y /= 10, ++column) {
    const Int top = x % 10 - borrow;
    const std::string name(kColumns[static_cast<std::size_t>(column)]);
    if (x < 10 && y == 0 && borrow == 0 && column > 0) {
      p.steps += "Bring down the " + name + ": " + text(x) + ".\n";
      break;
    }
    p.steps += "Take the " + name + ": ";
    if (borrow > 0)
      p.steps += text(x % 10) + " - 1 (borrowed) = " + text(top) + ", ";
    borrow = top < y % 10;
    if (borrow > 0) {
      p.steps += text(top) + " is less than " + text(y % 10) +
                 ", borrow 10: " + text(top + 10) + " - " + text(y % 10) +
                 " = " + text(top + 10 - y % 10) + ".\n";
    } else {
      p.steps +=
          text(top) + " - " + text(y % 10) + " = " + text(top - y % 10) + ".\n";
    }
  }
  p.steps += whole + p.answer + ".\n";
  return p;
}

Problem multiplication(Dice& dice) {
  const Int a = number(dice, 4), b = number(dice, 3);
  Problem p;
  p.prompt = ask(dice, text(a) + " * " + text(b));
  p.answer = text(a * b);
  std::string parts;
  Int sum = 0, count = 0;
  for (Int y = b, unit = 1; y > 0; y /= 10, unit *= 10) {
    const Int digit = y % 10;
    if (digit == 0) continue;
    const Int part = a * digit * unit;
    p.steps +=
        text(a) + " * " + text(digit * unit) + " = " + text(part) + ".\n";
    parts += (count > 0 ? " + " : "") + text(part);
    sum += part;
    ++count;
  }
  if (count == 0) p.steps = "Anything times 0 is 0.\n";
  if (count > 1) p.steps += "Add them: " + parts + " = " + text(sum) + ".\n";
  p.steps += text(a) + " * " + text(b) + " = " + p.answer + ".\n";
  return p;
}

Problem division(Dice& dice) {
  const Int b = dice.between(2, dice.one_in(3) ? 99 : 12);
  const bool exact = dice.one_in(2);
  const Int q = number(dice, 4),
            a = exact ? b * q : b * q + dice.between(0, b - 1);
  Problem p;
  p.prompt = ask(dice, text(a) + " / " + text(b));
  Int rest = 0;
  for (const char c : text(a)) {
    const Int part = rest * 10 + (c - '0');
    p.steps += text(part) + " / " + text(b) + " = " + text(part / b) +
               ", since " + text(b) + " * " + text(part / b) + " = " +
               text(part / b * b) + ", rest " + text(part % b) + ".\n";
    rest = part % b;
  }
  p.answer = text(a / b);
  if (rest > 0) p.answer += " remainder " + text(rest);
  p.steps += text(a) + " / " + text(b) + " = " + p.answer + ".\n";
  return p;
}

Problem precedence(Dice& dice) {
  const Int a = dice.between(1, 50), b = dice.between(2, 20);
  const Int c = dice.between(2, 20), d = dice.between(1, 50);
  Problem p;
  if (dice.one_in(2)) {
    p.prompt =
        ask(dice,
            text(a) + " + " + text(b) + " * " + text(c) + " - " + text(d));
    p.steps = "Multiply first: " + text(b) + " * " + text(c) + " = " +
              text(b * c) + ".\nThen add: " + text(a) + " + " + text(b * c) +
              " = " + text(a + b * c) + ".\nThen subtract: " + text(a + b * c) +
              " - " + text(d) + " = " + text(a + b * c - d) + ".\n";
    p.answer = text(a + b * c - d);
  } else {
    p.prompt =
        ask(dice, "(" + text(a) + " + " + text(b) + ") * (" + text(c) + " - " +
                      text(d) + ")");
    p.steps = "First bracket: " + text(a) + " + " + text(b) + " = " +
              text(a + b) + ".\nSecond bracket: " + text(c) + " - " + text(d) +
              " = " + text(c - d) + ".\nMultiply: " + text(a + b) + " * " +
              text(c - d) + " = " + text((a + b) * (c - d)) + ".\n";
    p.answer = text((a + b) * (c - d));
  }
  return p;
}

Problem greatest_divisor(Dice& dice) {
  const Int common = dice.between(1, 12);
  Int a = common * dice.between(2, 40), b = common * dice.between(2, 40);
  if (a < b) std::swap(a, b);
  Problem p;
  p.prompt = "What is the greatest common divisor of " + text(a) + " and " +
             text(b) + "?";
  while (b != 0) {
    p.steps += text(a) + " = " + text(a / b) + " * " + text(b) + " + " +
               text(a % b) + ".\n";
    a = std::exchange(b, a % b);
  }
  p.answer = text(a);
  p.steps += "The last divisor is " + p.answer + ".\n";
  return p;
}

Problem percentage(Dice& dice) {
  const Int percent = dice.between(1, 19) * 5, base = dice.between(1, 60) * 20;
  Problem p;
  p.prompt = ask(dice, text(percent) + "% of " + text(base));
  p.answer = text(base * percent / 100);
  p.steps = "5% of " + text(base) + " is " + text(base) +
            " / 20 = " + text(base / 20) + ".\n" + text(percent) + "% is " +
            text(percent / 5) + " times that: " + text(base / 20) + " * " +
            text(percent / 5) + " = " + p.answer + ".\n";
  return p;
}

constexpr std::string_view kPeople[] = {"Ana",  "Boris", "Chen", "Dina",
                                        "Emma", "Farid", "Gita", "Hans",
                                        "Iris", "Jamal", "Kira", "Luis",
                                        "Mona", "Nils",  "Olga", "Pedro"};
constexpr std::string_view kThings[] = {"apples",  "books",   "stickers",
                                        "pencils", "coins",   "shells",
                                        "marbles", "stamps",  "cookies",
                                        "oranges", "tickets", "flowers"};

Problem buying(Dice& dice) {
  const Int count = dice.between(2, 15), price = dice.between(2, 30);
  const Int paid = (count * price / 50 + 1) * 50;
  Slots s;
  s.set('P', dice.pick(Words(kPeople)));
  s.set('t', dice.pick(Words(kThings)));
  s.set('n', text(count));
  s.set('c', text(price));
  s.set('m', text(count * price));
  s.set('d', text(paid));
  s.set('r', text(paid - count * price));
  Problem p;
  p.prompt = filled(
      "$P buys $n $t for $c cents each and pays with $d cents. How many cents "
      "does $P get back?",
      s
  );
  p.steps = filled(
      "The $t cost $n * $c = $m cents.\n$P gets back $d - $m = $r cents.\n", s
  );
  p.answer = text(paid - count * price);
  return p;
}

Problem sharing(Dice& dice) {
  const Int people = dice.between(2, 12), each = dice.between(2, 25);
  const Int kept = dice.between(0, people - 1), all = people * each + kept;
  Slots s;
  s.set('P', dice.pick(Words(kPeople)));
  s.set('t', dice.pick(Words(kThings)));
  s.set('a', text(all));
  s.set('n', text(people));
  s.set('e', text(each));
  s.set('m', text(people * each));
  s.set('k', text(kept));
  Problem p;
  p.prompt = filled(
      "$P has $a $t and shares them equally among $n friends, keeping what is "
      "left over. How many $t does $P keep?",
      s
  );
  p.steps = filled(
      "$a / $n = $e, rest $k.\nThe friends get $n * $e = $m $t.\n$P keeps "
      "$a - $m = $k $t.\n",
      s
  );
  p.answer = text(kept);
  return p;
}

Problem changing(Dice& dice) {
  Slots s;
  s.set('P', dice.pick(Words(kPeople)));
  s.set('t', dice.pick(Words(kThings)));
  Int have = dice.between(10, 200);
  std::string story = filled("$P has ", s) + text(have) + filled(" $t.", s);
  Problem p;
  const Int turns = dice.between(2, 4);
  for (Int i = 0; i < turns; ++i) {
    const bool gives = dice.one_in(2) && have > 1;
    const Int n = gives ? dice.between(1, have - 1) : dice.between(1, 99);
    const Int next = gives ? have - n : have + n;
    story += (i == 0 ? " Then " : " After that ") + std::string(s['P']) +
             (gives ? " gives away " : " finds ") + text(n) +
             (gives ? "." : " more.");
    p.steps += text(have) + (gives ? " - " : " + ") + text(n) + " = " +
               text(next) + ".\n";
    have = next;
  }
  p.prompt = story + filled(" How many $t does $P have now?", s);
  p.answer = text(have);
  return p;
}

Problem travelling(Dice& dice) {
  const Int speed = dice.between(2, 24) * 5, hours = dice.between(2, 9);
  const Int stop = dice.between(1, 11) * 5, minutes = hours * 60 + stop;
  Problem p;
  p.prompt = "A train travels " + text(speed * hours) + " km at " +
             text(speed) + " km per hour and stands still for " + text(stop) +
             " minutes on the way. How many minutes does the journey take?";
  p.steps = "Driving takes " + text(speed * hours) + " / " + text(speed) +
            " = " + text(hours) + " hours, which is " + text(hours) +
            " * 60 = " + text(hours * 60) +
            " minutes.\nWith the stop: " + text(hours * 60) + " + " +
            text(stop) + " = " + text(minutes) + " minutes.\n";
  p.answer = text(minutes);
  return p;
}

using Maker = Problem (*)(Dice&);
constexpr Maker kMakers[] = {
    addition,       addition, subtraction, subtraction,      multiplication,
    multiplication, division, precedence,  greatest_divisor, percentage,
    buying,         sharing,  changing,    travelling,
};

}  // namespace

void append_arith(RandomKey key, std::string& out) {
  Dice dice(key);
  const Problem p = dice.pick(kMakers)(dice);
  out += '{';
  append_json_field(out, "prompt", p.prompt);
  out += ", ";
  append_json_field(
      out, "completion", p.steps + "The answer is " + p.answer + "."
  );
  out += ", ";
  append_json_field(out, "answer", p.answer);
  out += '}';
}

}  // namespace hearth::data::synth
