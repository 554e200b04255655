#include <algorithm>
#include <bit>
#include <charconv>
#include <map>

#include "base/fail.h"
#include "base/try.h"
#include "kernels/lexer.h"
#include "kernels/print.h"
#include "kernels/text_words.h"

namespace hloom::kernels {
namespace {

using hlo::Opcode;

// Loops in loops: more than any plan has, and less than the stack holds.
constexpr int kMaxDepth = 200;

class Parser {
 public:
  explicit Parser(Lexer& lexer) : lexer_(lexer) {}

  Expected<Kernel> kernel() {
    TRY(lexer_.expect("kernel"));
    kernel_.name = TRY(lexer_.name("a kernel's name"));
    TRY(arguments(false));
    if (lexer_.accept("->")) TRY(arguments(true));
    TRY(options());
    TRY(block(kernel_.body));
    return std::move(kernel_);
  }

 private:
  Expected<DType> type() {
    const Lexer before = lexer_;
    const std::string word = TRY(lexer_.name("an element type"));
    const std::optional<DType> found = dtype_named(word);
    if (!found || !is_array_type(*found)) return before.error("no element type is called '", word, "'");
    return *found;
  }
  Expected<std::int64_t> optional_integer(std::string_view word, std::int64_t otherwise) {
    if (!lexer_.accept(word)) return otherwise;
    return lexer_.integer();
  }

  Expected<> arguments(bool written) {
    TRY(lexer_.expect("("));
    for (bool first = true; !lexer_.accept(")"); first = false) {
      if (!first) TRY(lexer_.expect(","));
      Argument a;
      a.name = TRY(lexer_.name("an argument's name"));
      TRY(lexer_.expect(":"));
      if (!lexer_.accept("bytes")) a.type = TRY(type());
      TRY(lexer_.expect("["));
      a.num_elements = TRY(lexer_.integer());
      TRY(lexer_.expect("]"));
      a.alignment = TRY(optional_integer("align", 1));
      a.written = lexer_.accept("written") || written;
      a.may_overlap = lexer_.accept("overlap");
      a.memory_space = TRY(optional_integer("space", 0));
      while (lexer_.accept("split")) {
        Layout::Split split;
        split.dimension = TRY(lexer_.integer());
        while (lexer_.accept("at")) split.indices.push_back(TRY(lexer_.integer()));
        a.splits.push_back(std::move(split));
      }
      if (!arguments_.emplace(a.name, static_cast<int>(kernel_.arguments.size())).second)
        return lexer_.error("two arguments are called '", a.name, "'");
      kernel_.arguments.push_back(std::move(a));
    }
    return {};
  }
  Expected<> options() {
    if (lexer_.accept("scratch")) {
      kernel_.scratch_bytes = TRY(lexer_.integer());
      if (dtype_named(lexer_.peek_name())) kernel_.scratch_type = TRY(type());
    }
    kernel_.blocks = TRY(optional_integer("blocks", 1));
    kernel_.block_cost = TRY(optional_integer("cost", 0));
    kernel_.checks_bounds = lexer_.accept("checked");
    while (lexer_.accept("cut")) kernel_.cuts.push_back(TRY(lexer_.integer()));
    return {};
  }

  Expected<Value> define(std::string name, DType type) {
    if (values_.contains(name)) return lexer_.error("two values are called '", name, "'");
    const Value v = kernel_.add_value(type, name);
    values_.emplace(std::move(name), v);
    return v;
  }
  Expected<Value> use() {
    const Lexer before = lexer_;
    const std::string name = TRY(lexer_.name("a value's name"));
    const auto found = values_.find(name);
    if (found == values_.end()) return before.error("no value is called '", name, "' here");
    return found->second;
  }
  Expected<Value> optional_mask() {
    if (!lexer_.accept("where")) return kNoValue;
    return use();
  }
  Expected<int> argument() {
    const Lexer before = lexer_;
    const std::string name = TRY(lexer_.name("an argument's name"));
    if (name == "scratch") return static_cast<int>(kernel_.arguments.size());
    const auto found = arguments_.find(name);
    if (found == arguments_.end()) return before.error("no argument is called '", name, "'");
    return found->second;
  }

  // One term with its sign taken off.
  Expected<> term(Index& index, bool negative) {
    std::int64_t factor = 1;
    if (lexer_.sees_number()) {
      factor = TRY(lexer_.integer());
      if (negative) factor = static_cast<std::int64_t>(-static_cast<std::uint64_t>(factor));
      if (!lexer_.accept("*")) {
        index = index + factor;
        return {};
      }
    } else if (negative) {
      factor = -1;
    }
    const Value v = TRY(use());
    index = index + index_of(v, factor);
    return {};
  }
  Expected<Index> index() {
    Index result;
    TRY(term(result, false));
    while (lexer_.sees("+") || lexer_.sees("-")) {
      const bool negative = lexer_.accept("-");
      if (!negative) TRY(lexer_.expect("+"));
      TRY(term(result, negative));
    }
    return result;
  }

  // Values that go round, or out of branches.
  Expected<std::vector<Value>> next(std::size_t count) {
    std::vector<Value> values;
    if (count == 0) return values;
    TRY(lexer_.expect("next"));
    for (std::size_t i = 0; i < count; ++i) {
      if (i) TRY(lexer_.expect(","));
      values.push_back(TRY(use()));
    }
    return values;
  }
  Expected<std::vector<Value>> results(const std::vector<Value>& like) {
    std::vector<Value> values;
    if (like.empty()) return values;
    TRY(lexer_.expect("->"));
    for (std::size_t i = 0; i < like.size(); ++i) {
      if (i) TRY(lexer_.expect(","));
      std::string name = TRY(lexer_.name("a result's name"));
      values.push_back(TRY(define(std::move(name), kernel_.type(like[i]))));
    }
    return values;
  }

  // From the brace that opens up to "next" or the one that closes.
  Expected<> statements(Block& body) {
    TRY(lexer_.expect("{"));
    if (++depth_ > kMaxDepth) return lexer_.error("blocks nest deeper than ", kMaxDepth);
    while (!lexer_.sees("}") && !lexer_.sees("next")) {
      Statement s = TRY(statement());
      body.push_back(std::move(s));
    }
    --depth_;
    return {};
  }
  Expected<> block(Block& body) {
    TRY(statements(body));
    return lexer_.expect("}");
  }

  Expected<Statement> statement() {
    if (lexer_.accept("store")) return store();
    if (lexer_.accept("prefetch")) return prefetch();
    if (lexer_.accept("for")) return loop();
    if (lexer_.accept("while")) return while_loop();
    if (lexer_.accept("if")) return choice();
    if (lexer_.accept("call")) return call();
    std::string name = TRY(lexer_.name("a statement"));
    if (lexer_.sees(",")) return transpose(std::move(name));
    TRY(lexer_.expect("="));
    if (lexer_.accept("index")) return affine(std::move(name));
    if (lexer_.accept("load")) return load(std::move(name));
    if (lexer_.accept("multiply-add")) return multiply_add(std::move(name));
    return line(std::move(name));
  }

  Expected<Statement> transpose(std::string first) {
    std::vector<std::string> names = {std::move(first)};
    while (lexer_.accept(",")) names.push_back(TRY(lexer_.name("a result's name")));
    TRY(lexer_.expect("="));
    TRY(lexer_.expect("transpose"));
    Transpose t;
    const DType result = TRY(type());
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (i) TRY(lexer_.expect(","));
      t.operands.push_back(TRY(use()));
    }
    for (std::string& name : names) t.results.push_back(TRY(define(std::move(name), result)));
    return Statement{std::move(t)};
  }
  Expected<Statement> affine(std::string name) {
    Affine a;
    a.index = TRY(index());
    a.result = TRY(define(std::move(name), DType::S64));
    return Statement{std::move(a)};
  }
  Expected<Statement> load(std::string name) {
    Load l;
    const DType result = TRY(type());
    l.argument = TRY(argument());
    TRY(lexer_.expect("["));
    l.index = TRY(index());
    TRY(lexer_.expect("]"));
    l.mask = TRY(optional_mask());
    l.result = TRY(define(std::move(name), result));
    return Statement{std::move(l)};
  }
  Expected<Statement> store() {
    Store s;
    s.argument = TRY(argument());
    TRY(lexer_.expect("["));
    s.index = TRY(index());
    TRY(lexer_.expect("]"));
    TRY(lexer_.expect(","));
    s.value = TRY(use());
    s.mask = TRY(optional_mask());
    s.streamed = lexer_.accept("streamed");
    return Statement{std::move(s)};
  }
  Expected<Statement> prefetch() {
    Prefetch p;
    p.type = TRY(type());
    p.argument = TRY(argument());
    TRY(lexer_.expect("["));
    p.index = TRY(index());
    TRY(lexer_.expect("]"));
    return Statement{std::move(p)};
  }
  Expected<Statement> multiply_add(std::string name) {
    MultiplyAdd m;
    const DType result = TRY(type());
    m.a = TRY(use());
    TRY(lexer_.expect(","));
    m.b = TRY(use());
    TRY(lexer_.expect(","));
    m.c = TRY(use());
    m.result = TRY(define(std::move(name), result));
    return Statement{m};
  }

  Expected<std::uint64_t> constant_part(DType type) {
    const Lexer before = lexer_;
    if (type == DType::Pred) {
      if (lexer_.accept("true")) return std::uint64_t{1};
      TRY(lexer_.expect("false"));
      return std::uint64_t{0};
    }
    const std::string_view digits = TRY(lexer_.number());
    const auto read = [&](auto x, auto... base) -> Expected<decltype(x)> {
      const std::size_t skipped = sizeof...(base) == 0 ? 0 : 2;
      const auto [end, code] = std::from_chars(digits.begin() + skipped, digits.end(), x, base...);
      if (code != std::errc() || end != digits.end()) return before.error("is no ", name(type));
      return x;
    };
    if (digits.starts_with("0x")) return read(std::uint64_t{}, 16);
    if (type == DType::F32) return std::uint64_t{std::bit_cast<std::uint32_t>(TRY(read(float{})))};
    if (type == DType::F64) return std::bit_cast<std::uint64_t>(TRY(read(double{})));
    if (is_unsigned(type)) return read(std::uint64_t{});
    const std::int64_t x = TRY(read(std::int64_t{}));
    // Only the element's own bytes count.
    const int width = static_cast<int>(8 * byte_width(type));
    return static_cast<std::uint64_t>(x) & (~0ull >> (64 - width));
  }
  Expected<> constant(Line& line, DType type) {
    if (!is_complex(type)) {
      line.constant[0] = TRY(constant_part(type));
      return {};
    }
    TRY(lexer_.expect("("));
    const std::uint64_t real = TRY(constant_part(real_type(type)));
    TRY(lexer_.expect(","));
    const std::uint64_t imag = TRY(constant_part(real_type(type)));
    line.constant[0] = type == DType::C64 ? real | imag << 32 : real;
    line.constant[1] = type == DType::C64 ? 0 : imag;
    return lexer_.expect(")");
  }
  Expected<> attributes(Line& line) {
    const Lexer before = lexer_;
    if (line.opcode == Opcode::Compare) {
      const std::string direction = TRY(lexer_.name("a direction"));
      const auto d = named<hlo::Direction>(kDirections, direction);
      if (!d) return before.error("no direction is called '", direction, "'");
      const std::string type = TRY(lexer_.name("a comparison type"));
      const auto t = named<hlo::Comparison>(kComparisons, type);
      if (!t) return before.error("no comparison is called '", type, "'");
      line.compare = {*d, *t};
    } else if (line.opcode == Opcode::ReducePrecision) {
      TRY(lexer_.expect("exponent"));
      line.reduce_precision.exponent_bits = TRY(lexer_.integer());
      TRY(lexer_.expect("mantissa"));
      line.reduce_precision.mantissa_bits = TRY(lexer_.integer());
    }
    return {};
  }
  Expected<Statement> line(std::string name) {
    Line l;
    const Lexer before = lexer_;
    const std::string word = TRY(lexer_.name("an opcode"));
    const std::optional<Opcode> opcode = hlo::opcode_named(word);
    if (!opcode || hlo::arity(*opcode) < 0) return before.error("no line has the opcode '", word, "'");
    l.opcode = *opcode;
    const DType result = TRY(type());
    if (l.opcode == Opcode::Constant) TRY(constant(l, result));
    for (int i = 0; i < hlo::arity(*opcode); ++i) {
      if (i) TRY(lexer_.expect(","));
      l.operands.push_back(TRY(use()));
    }
    TRY(attributes(l));
    l.result = TRY(define(std::move(name), result));
    return Statement{std::move(l)};
  }

  Expected<> bound(std::int64_t& constant, Value& value) {
    if (lexer_.sees_number())
      constant = TRY(lexer_.integer());
    else
      value = TRY(use());
    return {};
  }
  Expected<Carry> carry() {
    Carry c;
    std::string name = TRY(lexer_.name("a value's name"));
    TRY(lexer_.expect("="));
    c.initial = TRY(use());
    c.inside = TRY(define(std::move(name), kernel_.type(c.initial)));
    return c;
  }
  Expected<> carries(std::vector<Carry>& plain, std::vector<Fold>* folds) {
    while (true) {
      if (lexer_.accept("carry")) {
        plain.push_back(TRY(carry()));
      } else if (folds && lexer_.accept("fold")) {
        const Lexer before = lexer_;
        const std::string word = TRY(lexer_.name("an opcode"));
        const std::optional<Opcode> combine = hlo::opcode_named(word);
        if (!combine) return before.error("no opcode is called '", word, "'");
        const Carry c = TRY(carry());
        folds->push_back({*combine, c});
      } else {
        return {};
      }
    }
  }
  Expected<> bests(std::vector<Best>& all) {
    while (lexer_.accept("best")) {
      Best best;
      best.least = lexer_.accept("least");
      if (!best.least) TRY(lexer_.expect("greatest"));
      best.last = lexer_.accept("last");
      if (!best.last) TRY(lexer_.expect("first"));
      all.push_back(best);
    }
    return {};
  }
  // The body, and what it carries on and gives; `best` are places, as `variable` is.
  Expected<> body_and_results(Block& body, const std::vector<Carry*>& all, std::span<Best> best = {}, Value variable = kNoValue) {
    std::vector<Value> like;
    for (const Carry* c : all) like.push_back(c->inside);
    like.insert(like.end(), best.size(), variable);
    TRY(statements(body));
    const std::vector<Value> carried_on = TRY(next(like.size()));
    TRY(lexer_.expect("}"));
    const std::vector<Value> given = TRY(results(like));
    for (std::size_t i = 0; i < all.size(); ++i) all[i]->next = carried_on[i], all[i]->result = given[i];
    for (std::size_t i = 0; i < best.size(); ++i) best[i].value = carried_on[all.size() + i], best[i].result = given[all.size() + i];
    return {};
  }
  Expected<Statement> loop() {
    Loop l;
    std::string variable = TRY(lexer_.name("a loop's variable")), end;
    const bool has_end = lexer_.accept("until");
    if (has_end) end = TRY(lexer_.name("a loop's end"));
    TRY(lexer_.expect("in"));
    TRY(bound(l.from, l.from_value));
    TRY(lexer_.expect(".."));
    TRY(bound(l.to, l.to_value));
    l.block = TRY(optional_integer("block", 0));
    l.first_block = TRY(optional_integer("after", 0));
    const std::int64_t lanes = TRY(optional_integer("by", 0));
    if (lanes < 0 || lanes > INT32_MAX) return lexer_.error("loop by ", lanes, " lanes");
    l.lanes = static_cast<int>(lanes);
    l.variable = TRY(define(std::move(variable), DType::S64));
    if (has_end) l.end = TRY(define(std::move(end), DType::S64));
    TRY(carries(l.carries, &l.folds));
    TRY(bests(l.bests));
    std::vector<Carry*> all;
    for (Carry& c : l.carries) all.push_back(&c);
    for (Fold& fold : l.folds) all.push_back(&fold.carry);
    TRY(body_and_results(l.body, all, l.bests, l.variable));
    return Statement{std::move(l)};
  }
  Expected<Statement> while_loop() {
    While w;
    TRY(carries(w.carries, nullptr));
    TRY(block(w.condition));
    TRY(lexer_.expect("test"));
    w.predicate = TRY(use());
    TRY(lexer_.expect("do"));
    std::vector<Carry*> all;
    for (Carry& c : w.carries) all.push_back(&c);
    TRY(body_and_results(w.body, all));
    return Statement{std::move(w)};
  }

  // As many as come: the first branch says how many results there are.
  Expected<std::vector<Value>> any_next() {
    std::vector<Value> values;
    if (!lexer_.accept("next")) return values;
    do values.push_back(TRY(use()));
    while (lexer_.accept(","));
    return values;
  }
  Expected<Statement> choice() {
    If c;
    c.selector = TRY(use());
    std::vector<std::vector<Value>> given;
    do {
      c.branches.emplace_back();
      TRY(statements(c.branches.back()));
      given.push_back(TRY(any_next()));
      if (given.back().size() != given.front().size())
        return lexer_.error("expects ", given.front().size(), " results, as the first branch has");
      TRY(lexer_.expect("}"));
    } while (lexer_.accept("else"));
    const std::vector<Value> made = TRY(results(given.front()));
    for (std::size_t k = 0; k < made.size(); ++k) {
      If::Result r;
      r.result = made[k];
      for (const std::vector<Value>& branch : given) r.from.push_back(branch[k]);
      c.results.push_back(std::move(r));
    }
    return Statement{std::move(c)};
  }

  Expected<Statement> call() {
    Call c;
    std::string callee = TRY(lexer_.name("a kernel's name"));
    const auto found = std::ranges::find(kernel_.callees, callee);
    c.callee = static_cast<int>(found - kernel_.callees.begin());
    if (found == kernel_.callees.end()) kernel_.callees.push_back(std::move(callee));
    TRY(lexer_.expect("("));
    for (bool first = true; !lexer_.accept(")"); first = false) {
      if (!first) TRY(lexer_.expect(","));
      Call::Pointer p;
      p.argument = TRY(argument());
      p.byte_offset = TRY(optional_integer("+", 0));
      c.arguments.push_back(p);
    }
    c.blocks = TRY(optional_integer("blocks", 1));
    c.scratch_bytes = TRY(optional_integer("scratch", 0));
    return Statement{std::move(c)};
  }

  Lexer& lexer_;
  Kernel kernel_;
  int depth_ = 0;
  std::map<std::string, int, std::less<>> arguments_;
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace

Expected<Kernel> parse(std::string_view text) {
  std::vector<Kernel> kernels = TRY(parse_kernels(text));
  if (kernels.size() != 1) return fail(Code::InvalidArgument, "expects one kernel, found ", kernels.size());
  return std::move(kernels.front());
}

Expected<std::vector<Kernel>> parse_kernels(std::string_view text) {
  Lexer lexer(text);
  std::vector<Kernel> kernels;
  while (!lexer.at_end()) {
    Kernel kernel = TRY(Parser(lexer).kernel());
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

}  // namespace hloom::kernels
