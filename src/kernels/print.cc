#include "kernels/print.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "base/check.h"
#include "kernels/text_words.h"

namespace hloom::kernels {
namespace {

using hlo::Opcode;

std::string number(std::int64_t x) { return std::to_string(x); }

std::string hex(std::uint64_t bits) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), bits, 16).ptr;
  return "0x" + std::string(digits.begin(), end);
}

template <typename T>
std::string shortest(T x) {
  std::array<char, 32> digits{};
  return {digits.begin(), std::to_chars(digits.begin(), digits.end(), x).ptr};
}

// One part of a constant from its bits: readable where that says all of it.
std::string constant_part(DType type, std::uint64_t bits) {
  const int width = static_cast<int>(8 * byte_width(type));
  if (width < 64) bits &= (1ull << width) - 1;
  if (type == DType::Pred) return bits != 0 ? "true" : "false";
  if (type == DType::F32) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    return std::isfinite(x) ? shortest(x) : hex(bits);
  }
  if (type == DType::F64) {
    const auto x = std::bit_cast<double>(bits);
    return std::isfinite(x) ? shortest(x) : hex(bits);
  }
  if (is_unsigned(type)) return std::to_string(bits);
  if (is_signed(type)) return number(static_cast<std::int64_t>(bits << (64 - width)) >> (64 - width));
  return hex(bits);
}

std::string quoted(const std::string& name) {
  if (is_plain_name(name)) return name;
  std::string result = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

class Printer {
 public:
  Printer(const Kernel& kernel, bool anonymous)
      : kernel_(kernel), anonymous_(anonymous), names_(kernel.values.size()), order_(kernel.values.size(), -1) {}

  std::string print() {
    header();
    block(kernel_.body);
    text_ += "\n";
    return std::move(text_);
  }

 private:
  // A name that nothing else has: `wanted`, with a number if need be.
  std::string unused(const std::string& wanted, char otherwise) {
    const bool named = !wanted.empty() && !anonymous_;
    std::string name = named ? wanted : otherwise + number(++unnamed_);
    for (int n = 1; !used_.insert(name).second; ++n)
      name = named ? wanted + "." + number(n) : otherwise + number(++unnamed_);
    return name;
  }

  void argument(std::size_t i, bool result) {
    const Argument& a = kernel_.arguments[i];
    arguments_.push_back(quoted(unused(a.name, 'a')));
    text_ += arguments_.back() + ": " + (a.type == DType::Invalid ? "bytes" : std::string(name(a.type))) + "[" +
             number(a.num_elements) + "]";
    if (a.alignment != 1) text_ += " align " + number(a.alignment);
    if (a.written && !result) text_ += " written";
    if (a.may_overlap) text_ += " overlap";
    if (a.memory_space != 0) text_ += " space " + number(a.memory_space);
    for (const Layout::Split& s : a.splits) {
      text_ += " split " + number(s.dimension);
      for (const std::int64_t at : s.indices) text_ += " at " + number(at);
    }
  }
  void arguments(std::size_t from, std::size_t to, bool results) {
    text_ += "(";
    for (std::size_t i = from; i < to; ++i) {
      if (i > from) text_ += ", ";
      argument(i, results);
    }
    text_ += ")";
  }
  void header() {
    used_ = {"scratch", "next", "store", "prefetch", "for", "while", "if", "call",  // what statements begin with
             "streamed"};                                          // and what one may end with
    text_ += "kernel " + (anonymous_ ? "_" : quoted(kernel_.name));
    const std::size_t count = kernel_.arguments.size();
    std::size_t first_result = count;
    while (first_result > 0 && kernel_.arguments[first_result - 1].written) --first_result;
    arguments(0, first_result, false);
    if (first_result < count) {
      text_ += " -> ";
      arguments(first_result, count, true);
    }
    if (kernel_.scratch_bytes != 0) text_ += " scratch " + number(kernel_.scratch_bytes);
    if (kernel_.scratch_bytes != 0 && kernel_.scratch_type != DType::Invalid)
      text_ += " " + std::string(name(kernel_.scratch_type));
    if (kernel_.blocks != 1) text_ += " blocks " + number(kernel_.blocks);
    if (kernel_.block_cost != 0) text_ += " cost " + number(kernel_.block_cost);
    if (kernel_.checks_bounds) text_ += " checked";
    for (const std::int64_t cut : kernel_.cuts) text_ += " cut " + number(cut);
    text_ += " ";
  }

  // A value where it is made, and where it is used.
  const std::string& define(Value v) {
    const auto i = static_cast<std::size_t>(v);
    order_[i] = ++made_;
    return names_[i] = quoted(unused(kernel_.values[i].name, 'v'));
  }
  std::string use(Value v) const {
    if (v < 0 || static_cast<std::size_t>(v) >= names_.size()) return "?";
    const std::string& name = names_[static_cast<std::size_t>(v)];
    return name.empty() ? "?" + number(v) : name;
  }
  std::string type_of(Value v) const { return std::string(name(kernel_.type(v))); }
  const std::string& argument_name(int i) {
    static const std::string scratch = "scratch";
    const auto k = static_cast<std::size_t>(i);
    return k < arguments_.size() ? arguments_[k] : scratch;
  }

  std::string index(const Index& index) const {
    std::vector<Index::Term> terms = index.terms;
    // What is taken away stands last.
    std::ranges::sort(terms, {}, [&](const Index::Term& t) {
      const auto i = static_cast<std::size_t>(t.value);
      return std::pair(t.coefficient < 0, i < order_.size() ? order_[i] : -1);
    });
    std::string text;
    for (const Index::Term& t : terms) {
      const std::int64_t c = t.coefficient;
      if (text.empty()) {
        if (c != 1) text = number(c) + "*";
      } else {
        text += c < 0 ? " - " : " + ";
        // The lowest number has no positive counterpart.
        if (c != 1 && c != -1) text += (c < 0 ? number(c).substr(1) : number(c)) + "*";
      }
      text += use(t.value);
    }
    if (text.empty()) return number(index.offset);
    if (index.offset > 0) text += " + " + number(index.offset);
    if (index.offset < 0) text += " - " + number(index.offset).substr(1);
    return text;
  }

  void line_start() { text_ += std::string(2 * depth_, ' '); }
  void block_open() {
    text_ += "{\n";
    ++depth_;
  }
  void block_close() {
    --depth_;
    line_start();
    text_ += "}";
  }
  void statements(const Block& block) {
    for (const Statement& s : block) {
      line_start();
      std::visit([&](const auto& x) { print(x); }, s.of);
      text_ += "\n";
    }
  }
  void block(const Block& body) {
    block_open();
    statements(body);
    block_close();
  }
  void names(const char* word, const std::vector<std::string>& list) {
    if (list.empty()) return;
    text_ += word;
    for (std::size_t i = 0; i < list.size(); ++i) text_ += (i ? ", " : " ") + list[i];
  }

  void carries(const std::vector<const Carry*>& all, const std::vector<Fold>& folds, const std::vector<Best>& bests) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string initial = use(all[i]->initial);
      const bool is_fold = i >= all.size() - folds.size();
      if (is_fold)
        text_ += " fold " + std::string(hlo::name(folds[i + folds.size() - all.size()].combine)) + " ";
      else
        text_ += " carry ";
      text_ += define(all[i]->inside) + " = " + initial;
    }
    for (const Best& best : bests) text_ += std::string(" best ") + (best.least ? "least " : "greatest ") + (best.last ? "last" : "first");
    text_ += " ";
  }
  // The body of a loop with what is carried on, and what comes out.
  void body_and_results(const Block& body, const std::vector<const Carry*>& all, const std::vector<Best>& bests) {
    block_open();
    statements(body);
    std::vector<std::string> next, results;
    for (const Carry* c : all) next.push_back(use(c->next));
    for (const Best& best : bests) next.push_back(use(best.value));
    if (!next.empty()) line_start();
    names("next", next);
    if (!next.empty()) text_ += "\n";
    block_close();
    for (const Carry* c : all) results.push_back(define(c->result));
    for (const Best& best : bests) results.push_back(define(best.result));
    names(" ->", results);
  }

  void print(const Line& line) {
    const std::string operands = line.opcode == Opcode::Constant ? constant(line) : operands_of(line);
    text_ += define(line.result) + " = " + std::string(hlo::name(line.opcode)) + " " + type_of(line.result) + operands;
    if (line.opcode == Opcode::Compare) {
      text_ += " " + std::string(name(line.compare.direction)) + " " + std::string(name(line.compare.type));
    } else if (line.opcode == Opcode::ReducePrecision) {
      text_ += " exponent " + number(line.reduce_precision.exponent_bits) + " mantissa " +
               number(line.reduce_precision.mantissa_bits);
    }
  }
  std::string operands_of(const Line& line) const {
    std::string text;
    for (std::size_t i = 0; i < line.operands.size(); ++i) text += (i ? ", " : " ") + use(line.operands[i]);
    return text;
  }
  std::string constant(const Line& line) const {
    const DType type = kernel_.type(line.result), part = real_type(type);
    if (!is_complex(type)) return " " + constant_part(type, line.constant[0]);
    const std::uint64_t imag = part == DType::F32 ? line.constant[0] >> 32 : line.constant[1];
    return " (" + constant_part(part, line.constant[0]) + ", " + constant_part(part, imag) + ")";
  }
  void print(const MultiplyAdd& m) {
    const std::string operands = use(m.a) + ", " + use(m.b) + ", " + use(m.c);
    text_ += define(m.result) + " = multiply-add " + type_of(m.result) + " " + operands;
  }
  void print(const Transpose& t) {
    std::string operands, results;
    for (const Value v : t.operands) operands += (operands.empty() ? " " : ", ") + use(v);
    for (const Value v : t.results) results += (results.empty() ? "" : ", ") + define(v);
    text_ += results + " = transpose " + type_of(t.results[0]) + operands;
  }
  void print(const Affine& affine) {
    const std::string what = index(affine.index);
    text_ += define(affine.result) + " = index " + what;
  }
  void print(const Load& load) {
    std::string what = type_of(load.result) + " " + argument_name(load.argument) + "[" + index(load.index) + "]";
    if (load.mask != kNoValue) what += " where " + use(load.mask);
    text_ += define(load.result) + " = load " + what;
  }
  void print(const Store& store) {
    text_ += "store " + argument_name(store.argument) + "[" + index(store.index) + "], " + use(store.value);
    if (store.mask != kNoValue) text_ += " where " + use(store.mask);
    if (store.streamed) text_ += " streamed";
  }
  void print(const Prefetch& p) {
    text_ += "prefetch " + std::string(name(p.type)) + " " + argument_name(p.argument) + "[" + index(p.index) + "]";
  }
  void print(const Loop& loop) {
    const auto bound = [&](Value v, std::int64_t x) { return v == kNoValue ? number(x) : use(v); };
    const std::string bounds = bound(loop.from_value, loop.from) + ".." + bound(loop.to_value, loop.to);
    text_ += "for " + define(loop.variable);
    if (loop.end != kNoValue) text_ += " until " + define(loop.end);
    text_ += " in " + bounds;
    if (loop.block != 0) text_ += " block " + number(loop.block);
    if (loop.first_block != 0) text_ += " after " + number(loop.first_block);
    if (loop.lanes != 0) text_ += " by " + number(loop.lanes);
    std::vector<const Carry*> all;
    for (const Carry& c : loop.carries) all.push_back(&c);
    for (const Fold& fold : loop.folds) all.push_back(&fold.carry);
    carries(all, loop.folds, loop.bests);
    body_and_results(loop.body, all, loop.bests);
  }
  void print(const While& loop) {
    text_ += "while";
    std::vector<const Carry*> all;
    for (const Carry& c : loop.carries) all.push_back(&c);
    carries(all, {}, {});
    block(loop.condition);
    text_ += " test " + use(loop.predicate) + " do ";
    body_and_results(loop.body, all, {});
  }
  void print(const If& choice) {
    text_ += "if " + use(choice.selector) + " ";
    for (std::size_t i = 0; i < choice.branches.size(); ++i) {
      if (i) text_ += " else ";
      block_open();
      statements(choice.branches[i]);
      std::vector<std::string> next;
      for (const If::Result& r : choice.results) next.push_back(i < r.from.size() ? use(r.from[i]) : "?");
      if (!next.empty()) line_start();
      names("next", next);
      if (!next.empty()) text_ += "\n";
      block_close();
    }
    std::vector<std::string> results;
    for (const If::Result& r : choice.results) results.push_back(define(r.result));
    names(" ->", results);
  }
  void print(const Call& call) {
    text_ += "call " + quoted(kernel_.callees[static_cast<std::size_t>(call.callee)]) + "(";
    for (std::size_t i = 0; i < call.arguments.size(); ++i) {
      if (i) text_ += ", ";
      text_ += argument_name(call.arguments[i].argument);
      if (call.arguments[i].byte_offset != 0) text_ += " + " + number(call.arguments[i].byte_offset);
    }
    text_ += ")";
    if (call.blocks != 1) text_ += " blocks " + number(call.blocks);
    if (call.scratch_bytes != 0) text_ += " scratch " + number(call.scratch_bytes);
  }

  const Kernel& kernel_;
  const bool anonymous_;
  std::string text_;
  std::size_t depth_ = 0;
  std::set<std::string> used_;
  std::int64_t unnamed_ = -1;
  std::vector<std::string> arguments_;
  std::vector<std::string> names_;
  std::vector<std::int64_t> order_;  // in which values are made
  std::int64_t made_ = 0;
};

}  // namespace

std::string print(const Kernel& kernel, bool anonymous) { return Printer(kernel, anonymous).print(); }

}  // namespace hloom::kernels
