// Maps as text, both ways.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <unordered_map>

#include "base/fail.h"
#include "base/try.h"
#include "indexing/map.h"

namespace hloom::indexing {
namespace {

std::string names(const char* prefix, std::size_t n) {
  std::string text;
  for (std::size_t k = 0; k < n; ++k) text += (k == 0 ? "" : ", ") + (prefix + std::to_string(k));
  return text;
}

std::string to_string(const Interval& i) { return "[" + std::to_string(i.low) + ", " + std::to_string(i.high) + "]"; }

}  // namespace

std::string to_string(const IndexMap& map) {
  const Domain& domain = map.domain();
  std::string text = "(" + names("d", domain.dimensions.size()) + ")";
  if (!domain.ranges.empty()) text += "[" + names("s", domain.ranges.size()) + "]";
  if (!domain.runtime.empty()) text += "{" + names("rt", domain.runtime.size()) + "}";
  text += " -> (";
  for (std::size_t n = 0; n < map.results().size(); ++n) text += (n == 0 ? "" : ", ") + to_string(map.results()[n]);
  text += ")";
  std::string separator = ", domain: ";
  const auto add = [&](const std::string& what, const Interval& in) {
    text += separator + what + " in " + to_string(in);
    separator = ", ";
  };
  for (std::size_t n = 0; n < domain.dimensions.size(); ++n) add("d" + std::to_string(n), domain.dimensions[n]);
  for (std::size_t n = 0; n < domain.ranges.size(); ++n) add("s" + std::to_string(n), domain.ranges[n]);
  for (std::size_t n = 0; n < domain.runtime.size(); ++n) add("rt" + std::to_string(n), domain.runtime[n]);
  for (const Constraint& c : map.constraints()) add(to_string(c.expr), c.in);
  return text;
}

namespace {

// How deep parentheses may nest.
constexpr int kMaxDepth = 100;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Expected<IndexMap> parse() {
    Domain domain;
    TRY(declare('(', ')', VariableKind::Dimension, domain.dimensions));
    if (peek('[')) TRY(declare('[', ']', VariableKind::Range, domain.ranges));
    if (peek('{')) TRY(declare('{', '}', VariableKind::Runtime, domain.runtime));
    TRY(expect("->"));
    TRY(expect("("));
    std::vector<Expr> results;
    while (!take(")")) {
      if (!results.empty()) TRY(expect(","));
      results.push_back(TRY(sum()));
    }
    std::vector<Constraint> constraints;
    while (take(",")) {
      if (take("domain")) TRY(expect(":"));
      const Expr e = TRY(sum());
      TRY(expect("in"));
      const Interval in = TRY(interval());
      // The first interval of a variable is its own.
      if (Interval* own = undeclared(e, domain))
        *own = in;
      else
        constraints.push_back({e, in});
    }
    if (skip(); !text_.empty()) return wrong("the end");
    if (!undefined_.empty())
      return fail(Code::InvalidArgument, "index map: ", undefined_.begin()->first, " has no interval");
    return IndexMap(std::move(domain), std::move(results), std::move(constraints));
  }

 private:
  Error wrong(std::string_view wanted) {
    return fail(Code::InvalidArgument, "index map: expects ", wanted, " at '", text_.substr(0, 20), "'");
  }
  void skip() {
    while (!text_.empty() && text_.front() == ' ') text_.remove_prefix(1);
  }
  bool peek(char c) {
    skip();
    return text_.starts_with(c);
  }
  bool take(std::string_view word) {
    skip();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  Expected<> expect(std::string_view word) {
    if (!take(word)) return wrong(word);
    return {};
  }
  std::string_view identifier() {
    skip();
    std::size_t n = 0;
    while (n < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[n])) || text_[n] == '_')) ++n;
    const std::string_view word = text_.substr(0, n);
    text_.remove_prefix(n);
    return word;
  }
  Expected<std::int64_t> number() {
    skip();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc()) return wrong("a number");
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return value;
  }
  Expected<Interval> interval() {
    TRY(expect("["));
    const std::int64_t low = TRY(number());
    TRY(expect(","));
    const std::int64_t high = TRY(number());
    TRY(expect("]"));
    return Interval{low, high};
  }
  Expected<> declare(char open, char close, VariableKind kind, std::vector<Interval>& intervals) {
    TRY(expect({&open, 1}));
    while (!take({&close, 1})) {
      if (!intervals.empty()) TRY(expect(","));
      const std::string name(identifier());
      if (name.empty()) return wrong("a variable");
      variables_[name] = Expr::variable(kind, static_cast<std::int64_t>(intervals.size()));
      undefined_[name] = true;
      intervals.emplace_back();
    }
    return {};
  }
  Interval* undeclared(const Expr& e, Domain& domain) {
    if (!e.is_variable()) return nullptr;
    const auto found =
        std::ranges::find_if(undefined_, [&](const auto& entry) { return variables_.at(entry.first) == e; });
    if (found == undefined_.end()) return nullptr;
    undefined_.erase(found);
    const Atom& a = *e.terms()[0].atom;
    auto& list = a.variable == VariableKind::Dimension ? domain.dimensions
                 : a.variable == VariableKind::Range   ? domain.ranges
                                                       : domain.runtime;
    return &list[static_cast<std::size_t>(a.number)];
  }

  // sum = product (("+" | "-") product)*;  product = primary ("*" number | "floordiv" number | "mod" number)*
  Expected<Expr> sum() {
    Expr total = TRY(product());
    for (;;) {
      if (take("+"))
        total = total + TRY(product());
      else if (peek('-') && !text_.starts_with("->") && take("-"))
        total = total - TRY(product());
      else
        return total;
    }
  }
  Expected<Expr> product() {
    bool negative = false;
    while (take("-")) negative = !negative;
    Expr value = TRY(primary());
    if (negative) value = value * -1;
    for (;;) {
      if (take("*")) {
        value = value * TRY(number());
        continue;
      }
      const bool divides = take("floordiv");
      if (!divides && !take("mod")) return value;
      const std::int64_t d = TRY(number());
      if (d <= 0) return wrong("a positive divisor");
      value = divides ? value.floor_div(d) : value.mod(d);
    }
  }
  Expected<Expr> primary() {
    if (take("(")) {
      if (++depth_ > kMaxDepth) return wrong("fewer parentheses");
      Expr inner = TRY(sum());
      --depth_;
      TRY(expect(")"));
      return inner;
    }
    skip();
    if (!text_.empty() && (std::isdigit(static_cast<unsigned char>(text_.front())) || text_.front() == '-'))
      return Expr(TRY(number()));
    const auto found = variables_.find(std::string(identifier()));
    if (found == variables_.end()) return wrong("a variable");
    return found->second;
  }

  std::string_view text_;
  std::unordered_map<std::string, Expr> variables_;
  std::unordered_map<std::string, bool> undefined_;  // declared, without an interval yet
  int depth_ = 0;
};

}  // namespace

Expected<IndexMap> parse_map(std::string_view text) { return Parser(text).parse(); }

}  // namespace hloom::indexing
