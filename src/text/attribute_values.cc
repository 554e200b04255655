#include "text/attribute_values.h"

#include <algorithm>

#include "text/number.h"

namespace hloom::text {

using hlo::Aliasing;
using hlo::Precision;
using hlo::SliceAttr;

void fail_enum(Cursor& c, const char* at, std::string_view word, const std::vector<std::string_view>& valid) {
  c.fail("H507", at, words("'", word, "' is not valid here", did_you_mean(word, valid), "; one of ", listed(valid)));
}

SliceAttr read_slice(Cursor& c) {
  SliceAttr s;
  c.list('{', '}', [&] {
    c.expect('[');
    s.starts.push_back(c.integer("where the slice begins"));
    c.expect(':');
    s.limits.push_back(c.integer("where the slice ends"));
    s.strides.push_back(c.eat(':') ? c.integer("a stride") : 1);
    c.expect(']');
  });
  return s;
}

void write_slice(std::string& out, const SliceAttr& s) {
  const bool strides = std::ranges::any_of(s.strides, [](std::int64_t n) { return n != 1; });
  out += '{';
  for (std::size_t d = 0; d < s.starts.size(); ++d) {
    if (d != 0) out += ", ";
    out += '[';
    write_integer(out, s.starts[d]);
    out += ':';
    write_integer(out, s.limits[d]);
    if (strides) {
      out += ':';
      write_integer(out, s.strides[d]);
    }
    out += ']';
  }
  out += '}';
}

// { {1}: (0, {}), … }
std::vector<Aliasing> read_aliasing(Cursor& c) {
  std::vector<Aliasing> pairs;
  c.list('{', '}', [&] {
    Aliasing a;
    a.output = c.integers('{', '}', "the number of an element");
    c.expect(':');
    c.expect('(');
    a.operand = c.integer("the number of an operand");
    c.expect(',');
    a.operand_index = c.integers('{', '}', "the number of an element");
    c.expect(')');
    pairs.push_back(std::move(a));
  });
  return pairs;
}

void write_aliasing(std::string& out, const std::vector<Aliasing>& pairs) {
  out += '{';
  for (const Aliasing& a : pairs) {
    if (&a != &pairs.front()) out += ", ";
    write_braced(out, a.output);
    out += ": (";
    write_integer(out, a.operand);
    out += ", ";
    write_braced(out, a.operand_index);
    out += ')';
  }
  out += '}';
}

std::vector<Precision> read_precision(Cursor& c) {
  std::vector<Precision> list;
  c.list('{', '}', [&] { list.push_back(read_enum<Precision>(c)); });
  // All default is as good as nothing.
  if (std::ranges::all_of(list, [](Precision p) { return p == Precision::Default; })) list.clear();
  return list;
}

void write_precision(std::string& out, const std::vector<Precision>& list) {
  out += '{';
  for (const Precision p : list) {
    if (out.back() != '{') out += ',';
    out += word_of(p);
  }
  out += '}';
}

std::string read_word_of(Cursor& c, std::span<const std::string_view> valid) {
  const char* at = c.at();
  const std::string_view word = c.take_word("a word");
  // Words of this kind are written in any case.
  std::string lower(word);
  for (char& l : lower)
    if (l >= 'A' && l <= 'Z') l = static_cast<char>(l - 'A' + 'a');
  const auto found = std::ranges::find(valid, std::string_view(lower));
  if (found == valid.end()) {
    if (c.ok()) fail_enum(c, at, word, {valid.begin(), valid.end()});
    return {};
  }
  return found == valid.begin() ? std::string() : lower;
}

void read_raw_attribute(Cursor& c, const char* at, hlo::Instruction& i) {
  const char* stop = c.position();
  for (bool more = true; more && c.ok();) {
    if (c.at_string()) {
      c.string("a value");
    } else if (c.peek() == '{') {
      c.dictionary();
    } else if (const char* end = group_end(c.position(), c.end());
               (c.peek() == '[' || c.peek() == '(') && end != nullptr) {
      c.set_position(end);
    } else if (c.run("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-<=").empty()) {
      c.fail_expected("a value");
    }
    stop = c.position();
    const char next = c.peek();
    more = next == '{' || next == '[' || next == '(';
  }
  if (!c.ok()) return;
  std::string& text = i.mutable_attr<hlo::ShuffleAttr>().text;
  if (!text.empty()) text += ", ";
  text.append(at, stop);
}

}  // namespace hloom::text
