#include "kernels/evaluate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/fail.h"
#include "base/try.h"
#include "functions/evaluate.h"

namespace hloom::kernels {
namespace {

using functions::Scalar;
using hlo::Opcode;

// One element for all lanes, or one for each.
using Elements = std::vector<Scalar>;

// The low bits as an element of a type that counts as 8 bits: pred, and integers that fill no byte.
std::uint64_t as_storage(DType type, std::uint64_t bits) {
  if (type == DType::Pred) return bits != 0 ? 1 : 0;
  const int width = bit_width(type);
  if (width >= 8) return bits;
  const std::uint64_t low = bits & ((1u << width) - 1);
  const bool negative = is_signed(type) && (low >> (width - 1)) != 0;
  return (negative ? low | (0xFFu << width) : low) & 0xFF;
}

Scalar byte_products(Scalar a, Scalar b, Scalar c) {
  auto sum = static_cast<std::uint32_t>(c.real);
  for (int byte = 0; byte < 4; ++byte) {
    const auto u = static_cast<std::uint8_t>(a.real >> (8 * byte));
    const auto s = static_cast<std::int8_t>(b.real >> (8 * byte));
    sum += static_cast<std::uint32_t>(int{u} * int{s});
  }
  return functions::scalar_of(static_cast<std::int32_t>(sum));
}

class Evaluation {
 public:
  Evaluation(const Kernel& kernel, void* const* buffers, std::int64_t begin, std::int64_t end, void* scratch,
             const EvaluateOptions& options)
      : kernel_(kernel), buffers_(buffers), begin_(begin), end_(end), scratch_(scratch), options_(options),
        values_(kernel.values.size()) {}

  Expected<> run() {
    if (begin_ >= end_) return {};
    return block(kernel_.body);
  }

 private:
  Elements& value(Value v) { return values_[static_cast<std::size_t>(v)]; }
  Scalar lane(Value v, std::size_t l) const {
    const Elements& elements = values_[static_cast<std::size_t>(v)];
    HLOOM_CHECK(!elements.empty());
    return elements.size() == 1 ? elements[0] : elements[l];
  }
  std::int64_t integer(Value v, std::size_t l = 0) const { return static_cast<std::int64_t>(lane(v, l).real); }
  std::size_t lanes() const { return active_.size(); }
  bool runs(std::size_t l, Value mask) const { return active_[l] && (mask == kNoValue || lane(mask, l).real != 0); }
  // Values differ from lane to lane inside loops by lanes only.
  template <typename F>
  void set(Value v, const F& of_lane) {
    Elements elements(lanes());
    for (std::size_t l = 0; l < lanes(); ++l) elements[l] = of_lane(l);
    value(v) = std::move(elements);
  }
  std::int64_t index(const Index& index, std::size_t l) const {
    auto sum = static_cast<std::uint64_t>(index.offset);
    for (const Index::Term& t : index.terms)
      sum += static_cast<std::uint64_t>(t.coefficient) * static_cast<std::uint64_t>(integer(t.value, l));
    return static_cast<std::int64_t>(sum);
  }

  Expected<> block(const Block& body) {
    for (const Statement& s : body) TRY(std::visit([&](const auto& x) { return run(x); }, s.of));
    return {};
  }

  Scalar constant(const Line& line) const {
    const DType type = kernel_.type(line.result);
    if (type == DType::C64) return {line.constant[0] & 0xFFFFFFFF, line.constant[0] >> 32};
    if (type == DType::C128) return {line.constant[0], line.constant[1]};
    const int width = static_cast<int>(8 * byte_width(type));
    const std::uint64_t bits = width == 64 ? line.constant[0] : line.constant[0] & ((1ull << width) - 1);
    return {type == DType::Pred ? as_storage(type, bits) : bits, 0};
  }
  Scalar apply(const Line& line, std::size_t l) const {
    if (line.opcode == Opcode::Constant) return constant(line);
    const DType type = kernel_.type(line.operands[0]), to = kernel_.type(line.result);
    Scalar v[3];
    for (std::size_t i = 0; i < line.operands.size(); ++i) v[i] = lane(line.operands[i], l);
    switch (line.opcode) {
      case Opcode::Convert: return functions::evaluate_convert(type, to, v[0]);
      case Opcode::Compare:
        return functions::evaluate_compare(line.compare.direction, line.compare.type, type, v[0], v[1]);
      case Opcode::Select: return functions::evaluate_select(to, v[0], v[1], v[2]);
      case Opcode::Clamp: return functions::evaluate_clamp(to, v[0], v[1], v[2]);
      case Opcode::ReducePrecision:
        return functions::evaluate_reduce_precision(type, static_cast<int>(line.reduce_precision.exponent_bits),
                                                    static_cast<int>(line.reduce_precision.mantissa_bits), v[0]);
      case Opcode::StochasticConvert: return functions::evaluate_stochastic_convert(type, to, v[0], v[1]);
      case Opcode::BitcastConvert: return {is_complex(to) ? v[0].real : as_storage(to, v[0].real), v[0].imag};
      default: break;
    }
    if (line.operands.size() == 1) return functions::evaluate_unary(line.opcode, type, v[0]);
    return functions::evaluate_binary(line.opcode, type, v[0], v[1]);
  }
  Expected<> run(const Line& line) {
    set(line.result, [&](std::size_t l) { return apply(line, l); });
    return {};
  }
  Expected<> run(const MultiplyAdd& m) {
    set(m.result, [&](std::size_t l) {
      const auto as = [&]<typename T>(T) {
        return functions::scalar_of(std::fma(functions::value_of_scalar<T>(lane(m.a, l)),
                                             functions::value_of_scalar<T>(lane(m.b, l)),
                                             functions::value_of_scalar<T>(lane(m.c, l))));
      };
      if (kernel_.type(m.result) == DType::S32) return byte_products(lane(m.a, l), lane(m.b, l), lane(m.c, l));
      return kernel_.type(m.result) == DType::F64 ? as(double{}) : as(float{});
    });
    return {};
  }
  Expected<> run(const Transpose& t) {
    for (std::size_t k = 0; k < t.results.size(); ++k)
      set(t.results[k], [&](std::size_t l) { return lane(t.operands[l], k); });
    return {};
  }
  Expected<> run(const Affine& a) {
    set(a.result, [&](std::size_t l) { return functions::scalar_of(index(a.index, l)); });
    return {};
  }

  // The address of an element, checked.
  Expected<std::byte*> address(int argument, const Index& where, std::size_t l, DType type) const {
    const auto i = static_cast<std::size_t>(argument);
    const bool in_scratch = i == kernel_.arguments.size();
    const std::int64_t width = byte_width(type), at = index(where, l);
    if (options_.check_bounds) {
      const std::int64_t size =
          in_scratch ? kernel_.scratch_bytes : argument_bytes(kernel_.arguments[i]);
      if (at < 0 || at >= size / width)
        return fail(Code::OutOfRange, kernel_.name, ": element ", at, " of type ", name(type), " of ",
                    in_scratch ? "scratch" : kernel_.arguments[i].name, ", which has ", size, " bytes");
    }
    return static_cast<std::byte*>(in_scratch ? scratch_ : buffers_[i]) + at * width;
  }
  Expected<> run(const Load& load) {
    const DType type = kernel_.type(load.result);
    Elements elements(lanes());
    for (std::size_t l = 0; l < lanes(); ++l) {
      if (!runs(l, load.mask)) continue;
      const std::byte* from = TRY(address(load.argument, load.index, l, type));
      const auto part = static_cast<std::size_t>(byte_width(real_type(type)));
      std::memcpy(&elements[l].real, from, part);
      if (is_complex(type)) std::memcpy(&elements[l].imag, from + part, part);
      elements[l].real = as_storage(type, elements[l].real);
    }
    value(load.result) = std::move(elements);
    return {};
  }
  Expected<> run(const Store& store) {
    const DType type = kernel_.type(store.value);
    for (std::size_t l = 0; l < lanes(); ++l) {
      if (!runs(l, store.mask)) continue;
      std::byte* to = TRY(address(store.argument, store.index, l, type));
      const Scalar x = lane(store.value, l);
      const auto part = static_cast<std::size_t>(byte_width(real_type(type)));
      std::memcpy(to, &x.real, part);
      if (is_complex(type)) std::memcpy(to + part, &x.imag, part);
    }
    return {};
  }

  // Nothing is to be seen of it, but where it points.
  Expected<> run(const Prefetch& p) {
    TRY(address(p.argument, p.index, 0, p.type));
    return {};
  }

  Elements held(Value v) { return value(v); }

  // The iterations of this call.
  std::pair<std::int64_t, std::int64_t> bounds(const Loop& loop) const {
    const std::int64_t from = loop.from_value == kNoValue ? loop.from : integer(loop.from_value);
    const std::int64_t to = loop.to_value == kNoValue ? loop.to : integer(loop.to_value);
    if (loop.block == 0) return {from, to};
    const std::int64_t begin = std::max<std::int64_t>(begin_ - loop.first_block, 0);
    const std::int64_t end = std::max<std::int64_t>(end_ - loop.first_block, 0);
    return {from + begin * loop.block, std::min(from + end * loop.block, to)};
  }
  Expected<> run(const Loop& loop) {
    const auto [from, to] = bounds(loop);
    if (loop.end != kNoValue) {
      if (from >= to) return {};
      value(loop.end) = {functions::scalar_of(to)};
      return serial(loop, from, from + 1);
    }
    return loop.lanes == 0 ? serial(loop, from, to) : by_lanes(loop, from, to);
  }
  Expected<> serial(const Loop& loop, std::int64_t from, std::int64_t to) {
    std::vector<Elements> carried;
    for (const Carry& c : loop.carries) carried.push_back(held(c.initial));
    for (std::int64_t i = from; i < to; ++i) {
      value(loop.variable) = {functions::scalar_of(i)};
      for (std::size_t k = 0; k < carried.size(); ++k) value(loop.carries[k].inside) = carried[k];
      TRY(block(loop.body));
      for (std::size_t k = 0; k < carried.size(); ++k) carried[k] = held(loop.carries[k].next);
    }
    for (std::size_t k = 0; k < carried.size(); ++k) value(loop.carries[k].result) = carried[k];
    return {};
  }
  Expected<> by_lanes(const Loop& loop, std::int64_t from, std::int64_t to) {
    const auto count = static_cast<std::size_t>(loop.lanes);
    std::vector<Elements> partial;
    for (const Fold& fold : loop.folds) partial.emplace_back(count, lane(fold.carry.initial, 0));
    std::vector<std::pair<Scalar, std::int64_t>> best(loop.bests.size());
    for (std::int64_t first = from; first < to; first += loop.lanes) {
      active_.resize(count);
      for (std::size_t l = 0; l < count; ++l) active_[l] = first + static_cast<std::int64_t>(l) < to;
      set(loop.variable, [&](std::size_t l) { return functions::scalar_of(first + static_cast<std::int64_t>(l)); });
      for (std::size_t k = 0; k < partial.size(); ++k) value(loop.folds[k].carry.inside) = partial[k];
      TRY(block(loop.body));
      for (std::size_t k = 0; k < partial.size(); ++k)
        for (std::size_t l = 0; l < count; ++l)
          if (active_[l]) partial[k][l] = lane(loop.folds[k].carry.next, l);
      for (std::size_t k = 0; k < best.size(); ++k)
        for (std::size_t l = 0; l < count; ++l) {
          const Scalar x = lane(loop.bests[k].value, l);
          const std::int64_t i = first + static_cast<std::int64_t>(l);
          if (active_[l] && (i == from || is_better(loop.bests[k], x, best[k].first))) best[k] = {x, i};
        }
    }
    active_ = {true};
    for (std::size_t k = 0; k < partial.size(); ++k) value(loop.folds[k].carry.result) = {halved(loop.folds[k], partial[k])};
    for (std::size_t k = 0; k < best.size(); ++k) value(loop.bests[k].result) = {functions::scalar_of(best[k].second)};
    return {};
  }
  // Whether a later iteration's value takes the place of an earlier one's.
  bool is_better(const Best& best, Scalar later, Scalar earlier) const {
    const DType type = kernel_.type(best.value);
    const auto holds = [&](hlo::Direction direction, Scalar x, Scalar y) {
      return functions::evaluate_compare(direction, order_of(type), type, x, y).real != 0;
    };
    const bool earlier_is_nan = holds(hlo::Direction::Ne, earlier, earlier), later_is_nan = holds(hlo::Direction::Ne, later, later);
    if (earlier_is_nan || later_is_nan) return later_is_nan && (best.last || !earlier_is_nan);
    if (best.last && holds(hlo::Direction::Eq, later, earlier)) return true;
    return holds(best.least ? hlo::Direction::Lt : hlo::Direction::Gt, later, earlier);
  }
  static hlo::Comparison order_of(DType type) {
    if (is_floating(type)) return hlo::Comparison::Float;
    return is_signed(type) ? hlo::Comparison::Signed : hlo::Comparison::Unsigned;
  }
  Scalar halved(const Fold& fold, Elements elements) const {
    const DType type = kernel_.type(fold.carry.result);
    for (std::size_t half = elements.size() / 2; half > 0; half /= 2)
      for (std::size_t l = 0; l < half; ++l)
        elements[l] = functions::evaluate_binary(fold.combine, type, elements[l], elements[l + half]);
    return elements[0];
  }

  Expected<> run(const While& loop) {
    std::vector<Elements> carried;
    for (const Carry& c : loop.carries) carried.push_back(held(c.initial));
    while (true) {
      for (std::size_t k = 0; k < carried.size(); ++k) value(loop.carries[k].inside) = carried[k];
      TRY(block(loop.condition));
      if (lane(loop.predicate, 0).real == 0) break;
      TRY(block(loop.body));
      for (std::size_t k = 0; k < carried.size(); ++k) carried[k] = held(loop.carries[k].next);
    }
    for (std::size_t k = 0; k < carried.size(); ++k) value(loop.carries[k].result) = carried[k];
    return {};
  }
  Expected<> run(const If& choice) {
    const std::uint64_t selector = lane(choice.selector, 0).real;
    const std::size_t last = choice.branches.size() - 1;
    std::uint64_t chosen = selector;
    if (kernel_.type(choice.selector) == DType::Pred) chosen = selector != 0 ? 0 : 1;
    const std::size_t branch = chosen > last ? last : static_cast<std::size_t>(chosen);
    TRY(block(choice.branches[branch]));
    for (const If::Result& r : choice.results) value(r.result) = held(r.from[branch]);
    return {};
  }
  Expected<> run(const Call& call) {
    const std::string& callee_name = kernel_.callees[static_cast<std::size_t>(call.callee)];
    const auto callee = std::ranges::find(options_.callees, callee_name, &Kernel::name);
    if (callee == options_.callees.end())
      return fail(Code::NotFound, kernel_.name, ": calls ", callee_name, ", which is not given");
    std::vector<void*> pointers;
    for (const Call::Pointer& p : call.arguments) {
      const auto i = static_cast<std::size_t>(p.argument);
      void* base = i == kernel_.arguments.size() ? scratch_ : buffers_[i];
      pointers.push_back(static_cast<std::byte*>(base) + p.byte_offset);
    }
    std::vector<std::byte> scratch(static_cast<std::size_t>(callee->scratch_bytes));
    return evaluate(*callee, pointers.data(), 0, callee->blocks, scratch.data(), options_);
  }

  const Kernel& kernel_;
  void* const* buffers_;
  const std::int64_t begin_, end_;
  void* scratch_;
  const EvaluateOptions& options_;
  std::vector<Elements> values_;
  std::vector<bool> active_ = {true};  // the lanes that run; one outside of loops by lanes
};

}  // namespace

Expected<> evaluate(const Kernel& kernel, void* const* buffers, std::int64_t begin, std::int64_t end, void* scratch,
                    const EvaluateOptions& options) {
  return Evaluation(kernel, buffers, begin, end, scratch, options).run();
}

}  // namespace hloom::kernels
