#include "text/annotations.h"

#include <algorithm>
#include <charconv>

#include "text/print_words.h"

namespace hloom::text {

using hlo::Opcode;
using hlo::ResultAccuracy;
using hlo::Statistics;
using hlo::StringMap;

StringMap read_string_map(Cursor& c) {
  StringMap map;
  c.list('{', '}', [&] {
    const char* at = c.at();
    std::string key = c.at_string() ? c.string("a key") : std::string();
    if (key.empty())
      key = c.take_key("a key");
    else
      c.expect('=');
    std::string value = c.string_or_dictionary("a string or a dictionary");
    if (c.ok() && !map.emplace(key, std::move(value)).second) c.fail("H502", at, words("'", key, "' comes twice"));
  });
  return map;
}

namespace {

bool is_word(std::string_view text) {
  return !text.empty() && chars::is(text.front(), chars::kNameStart) &&
         std::ranges::all_of(text, [](char c) { return chars::is(c, chars::kName); });
}

}  // namespace

void write_string_map(std::string& out, const StringMap& map) {
  out += '{';
  const char* comma = "";
  for (const auto& [key, value] : map) {
    out += comma;
    if (is_word(key))
      out += key;
    else
      write_quoted(out, key);
    out += '=';
    write_dictionary_or_quoted(out, value);
    comma = ",";
  }
  out += '}';
}

Statistics read_statistics(Cursor& c) {
  Statistics s;
  const char* start = c.at();
  c.expect('{');
  if (c.take_key("'visualizing_index='") != "visualizing_index")
    c.fail("H505", start, "statistics begin with visualizing_index=");
  const char* at = c.at();
  s.visualizing_index = c.integer("an index");
  while (c.ok() && c.eat(',')) {
    std::string key(c.take_key("the name of a value"));
    const double value = c.decimal("a number");
    s.values.emplace_back(std::move(key), value);
  }
  c.expect('}');
  if (c.ok() && (s.visualizing_index < 0 || s.visualizing_index >= static_cast<std::int64_t>(s.values.size())))
    c.fail("H506", at, words("visualizing_index=", s.visualizing_index, " names none of ", s.values.size(), " values"));
  return s;
}

void write_statistics(std::string& out, const Statistics& s) {
  out += "{visualizing_index=";
  write_integer(out, s.visualizing_index);
  for (const auto& [key, value] : s.values) {
    out.append(",").append(key).append("=");
    write_double(out, value);
  }
  out += '}';
}

namespace {

void read_tolerance(Cursor& c, ResultAccuracy& a) {
  a.has_tolerance = true;
  const char* start = c.at();
  c.expect('{');
  unsigned seen = 0;
  while (c.ok() && c.peek() != '}') {
    const char* at = c.at();
    const std::string_view key = c.take_key("'atol=', 'rtol=' or 'ulps='");
    const unsigned bit = key == "atol" ? 1 : key == "rtol" ? 2 : key == "ulps" ? 4 : 0;
    if (c.ok() && bit == 0) c.fail("H503", at, words("'", key, "' is no tolerance; accepted: atol, rtol, ulps"));
    if ((seen & bit) != 0) c.fail("H502", at, words("'", key, "' comes twice"));
    seen |= bit;
    const char* number = c.at();
    if (bit == 4)
      a.ulps = c.integer("an integer");
    else
      (bit == 1 ? a.atol : a.rtol) = c.decimal("a number");
    if (c.ok() && (!(a.atol >= 0) || !(a.rtol >= 0) || a.ulps < 0))
      c.fail("H506", number, "a tolerance is not negative");
    c.eat(',');
  }
  c.expect('}');
  if (c.ok() && seen != 7) c.fail("H505", start, "a tolerance needs atol, rtol and ulps");
}

}  // namespace

ResultAccuracy read_result_accuracy(Cursor& c) {
  ResultAccuracy a;
  c.expect('{');
  const char* at = c.at();
  const std::string_view key = c.take_key("'mode=' or 'tolerance='");
  if (key == "tolerance") {
    read_tolerance(c, a);
  } else if (key == "mode") {
    const char* word_at = c.at();
    const std::string_view word = c.take_word("'default' or 'highest'");
    a.highest = word == "highest";
    if (c.ok() && !a.highest && word != "default")
      c.fail("H507", word_at, words("'", word, "' is no mode; one of default, highest"));
  } else if (c.ok()) {
    c.fail("H503", at, words("'", key, "' is no part of result_accuracy; accepted: mode, tolerance"));
  }
  c.expect('}');
  return a;
}

void write_result_accuracy(std::string& out, const ResultAccuracy& a) {
  if (!a.has_tolerance) {
    out.append("{mode=").append(a.highest ? "highest" : "default").append("}");
    return;
  }
  out += "{tolerance={atol=";
  write_double(out, a.atol);
  out += ",rtol=";
  write_double(out, a.rtol);
  out += ",ulps=";
  write_integer(out, a.ulps);
  out += "}}";
}

namespace {

// `{"name" {1,0}}`, `{}`.
void read_leaf(Cursor& c, std::string& out) {
  c.expect('{');
  out += '{';
  if (c.peek() != '}') {
    write_quoted(out, c.string("the name of an instruction"));
    if (c.peek() == '{') {
      out += ' ';
      write_braced(out, c.integers('{', '}', "an index"));
    }
  }
  c.expect('}');
  out += '}';
}

void read_tree(Cursor& c, std::string& out) {
  const Cursor::Depth depth(c);
  if (c.eat('[')) {
    if (!c.eat_word("synthetic_call")) c.fail_expected("'synthetic_call'");
    c.expect(']');
    out += "[synthetic_call]";
  } else if (c.peek() == '(') {
    out += '(';
    c.list('(', ')', [&] {
      if (out.back() != '(') out += ", ";
      read_tree(c, out);
    });
    out += ')';
  } else {
    read_leaf(c, out);
  }
}

}  // namespace

std::string read_origin(Cursor& c) {
  std::string out;
  c.expect('{');
  read_tree(c, out);
  c.expect('}');
  return out;
}

std::string read_recovery_table(Cursor& c) {
  std::string out;
  c.expect('{');
  while (c.ok() && c.peek() != '}') {
    if (!out.empty()) out += ' ';
    read_leaf(c, out);
    c.expect(':');
    out += " : ";
    read_leaf(c, out);
    if (!c.eat(',')) continue;
    out += ", ";
    write_quoted(out, c.string("a module in quotes"));
  }
  c.expect('}');
  return out;
}

bool takes_result_accuracy(Opcode opcode) {
  switch (opcode) {
    case Opcode::Acos:
    case Opcode::Acosh:
    case Opcode::Asin:
    case Opcode::Asinh:
    case Opcode::Atanh:
    case Opcode::Cbrt:
    case Opcode::Cosine:
    case Opcode::Cosh:
    case Opcode::Erf:
    case Opcode::Exponential:
    case Opcode::ExponentialMinusOne:
    case Opcode::Log:
    case Opcode::LogPlusOne:
    case Opcode::Logistic:
    case Opcode::Rsqrt:
    case Opcode::Sine:
    case Opcode::Sinh:
    case Opcode::Sqrt:
    case Opcode::Tan:
    case Opcode::Tanh: return true;
    default: return false;
  }
}

}  // namespace hloom::text
