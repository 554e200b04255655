// Kernels drawn by a seed, for tests: all forms of statements, most opcodes and types, indices that stay inside.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/verify.h"

namespace hloom::emit {

/// Draws one kernel. Two runs of a seed give the same. Values that tell one NaN from another are left out.
class RandomKernel {
 public:
  explicit RandomKernel(unsigned seed) : random_(seed) { kernel_.name = "random." + std::to_string(seed); }

  kernels::Kernel draw() {
    for (const DType type : kTypes) {
      kernel_.arguments.push_back({"in_" + std::string(name(type)), type, kSize, false, 1, false});
      kernel_.arguments.push_back({"out_" + std::string(name(type)), type, kSize, true, 1, false});
    }
    kernel_.scratch_bytes = 1024;
    kernel_.scratch_type = DType::F32;
    const bool blocks = below(2) == 0;
    kernel_.blocks = blocks ? 1 + below(4) : 1;
    for (int i = 0; i < 3; ++i) line(kernel_.body);
    const int count = 1 + static_cast<int>(below(3));
    for (int i = 0; i < count; ++i) {
      if (blocks)
        blocked_loop(kernel_.body);
      else
        statement(kernel_.body);
    }
    return std::move(kernel_);
  }

 private:
  using Block = kernels::Block;
  using Value = kernels::Value;
  using Opcode = hlo::Opcode;

  static constexpr std::int64_t kSize = 160;
  static constexpr DType kTypes[] = {DType::Pred, DType::S4,  DType::U8,  DType::S32,  DType::S64,
                                     DType::U16,  DType::F32, DType::F64, DType::BF16, DType::F16,
                                     DType::F8E4M3FN, DType::C64};

  /// A S64 value that lies in [low, high].
  struct Ranged {
    Value value;
    std::int64_t low, high;
    bool varying;  // its lanes differ by a constant that is not 0
  };

  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<unsigned>(n)); }
  bool one_in(int n) { return below(n) == 0; }
  DType any_type() { return kTypes[below(std::size(kTypes))]; }
  DType any_fold_type() { return one_in(2) ? DType::F32 : any_type(); }

  Value make(DType type) { return kernel_.add_value(type, std::string(name(type)) + std::to_string(kernel_.values.size())); }
  void see(Value v) { seen_.push_back(v); }
  std::vector<Value> seen(DType type) const {
    std::vector<Value> result;
    for (const Value v : seen_)
      if (kernel_.type(v) == type) result.push_back(v);
    return result;
  }
  // A value of the type: one that is seen, or a constant.
  Value operand(Block& block, DType type) {
    const std::vector<Value> choice = seen(type);
    if (!choice.empty() && !one_in(8)) return choice[static_cast<std::size_t>(below(static_cast<std::int64_t>(choice.size())))];
    kernels::Line line;
    line.opcode = Opcode::Constant;
    line.result = make(type);
    for (std::uint64_t& part : line.constant) part = random_();
    // Of small size, and in range for pred and s4: 0, 1, or about 2 in most floats.
    if (type == DType::Pred) line.constant[0] &= 1;
    if (is_integral(type)) line.constant[0] &= 7;
    if (type == DType::F32 || type == DType::C64) line.constant[0] = 0x3f8000003fc00000;
    if (type == DType::F64) line.constant[0] = 0x3ff8000000000000;
    see(line.result);
    block.push_back({line});
    return line.result;
  }

  // An index that stays in [0, kSize) for values of any width here; its lanes differ if `varying`.
  bool index(kernels::Index& result, bool varying) {
    std::int64_t low = 0, high = 0;
    bool differs = false;
    for (int i = 0; i < 3 && !ranged_.empty(); ++i) {
      const Ranged r = ranged_[static_cast<std::size_t>(below(static_cast<std::int64_t>(ranged_.size())))];
      const std::int64_t c = one_in(2) ? 1 : below(9) - 4;
      const std::int64_t a = low + std::min(c * r.low, c * r.high), b = high + std::max(c * r.low, c * r.high);
      if (b - a >= kSize) continue;
      result = result + kernels::index_of(r.value, c);
      low = a, high = b;
    }
    for (const auto& term : result.terms)
      for (const Ranged& r : ranged_) differs |= r.value == term.value && r.varying;
    result = result + (-low + below(kSize - (high - low)));
    return differs || !varying;
  }
  Value mask(Block& block) { return one_in(3) ? operand(block, DType::Pred) : kernels::kNoValue; }

  void load(Block& block) {
    const DType type = any_type();
    const auto place = static_cast<int>(std::ranges::find(kTypes, type) - std::begin(kTypes));
    kernels::Load load;
    load.mask = mask(block);
    load.argument = 2 * place + (one_in(3) ? 1 : 0);
    if (type == DType::F32 && one_in(4)) load.argument = static_cast<int>(kernel_.arguments.size());
    index(load.index, false);
    load.result = make(type);
    see(load.result);
    // Integers in memory are small, so they may be indices.
    if (type == DType::S64 && load.argument == 2 * place) ranged_.push_back({load.result, 0, 63, false});
    block.push_back({load});
  }
  void store(Block& block) {
    const DType type = any_type();
    const auto place = static_cast<int>(std::ranges::find(kTypes, type) - std::begin(kTypes));
    kernels::Store store;
    store.argument = 2 * place + 1;
    if (type == DType::F32 && one_in(6) && kernel_.blocks == 1) store.argument = static_cast<int>(kernel_.arguments.size());
    if (!index(store.index, in_lanes_)) return;
    store.value = operand(block, type);
    store.mask = mask(block);
    store.streamed = one_in(3);
    block.push_back({store});
  }
  void prefetch(Block& block) {
    kernels::Prefetch p;
    const std::int64_t place = below(std::size(kTypes));
    p.type = kTypes[place];
    p.argument = static_cast<int>(2 * place + below(2));
    index(p.index, false);
    block.push_back({p});
  }
  void affine(Block& block) {
    kernels::Affine affine;
    const bool differs = index(affine.index, true);
    affine.result = make(DType::S64);
    see(affine.result);
    ranged_.push_back({affine.result, 0, kSize - 1, differs});
    block.push_back({affine});
  }
  void line(Block& block) {
    while (true) {
      kernels::Line line;
      line.opcode = static_cast<Opcode>(below(hlo::kNumOpcodes));
      // Not NaN's bits, and not what takes long to compile.
      if (line.opcode == Opcode::BitcastConvert || line.opcode == Opcode::Constant) continue;
      if (hlo::arity(line.opcode) < 1 || (hlo::kind(line.opcode) != hlo::OpcodeKind::Elementwise)) continue;
      const DType type = any_type();
      const std::vector<DType> results = {type, any_type(), DType::Pred, real_type(type), DType::S32, DType::C64};
      for (int i = 0; i < hlo::arity(line.opcode); ++i) line.operands.push_back(kernel_.add_value(type));
      if (line.opcode == Opcode::Select) kernel_.values[static_cast<std::size_t>(line.operands[0])].type = DType::Pred;
      if (line.opcode == Opcode::StochasticConvert)
        kernel_.values[static_cast<std::size_t>(line.operands[1])].type = type == DType::BF16 ? DType::U16 : DType::U8;
      line.compare = {static_cast<hlo::Direction>(below(6)),
                      static_cast<hlo::Comparison>(one_in(2) ? 0 : 2 + below(2))};
      line.reduce_precision = {1 + below(8), 1 + below(10)};
      const std::vector<Value> stand_ins = line.operands;
      bool good = false;
      for (const DType result : results) {
        line.result = make(result);
        good = kernels::verify_line(kernel_, line).has_value();
        kernel_.values.pop_back();
        if (good) {
          for (Value& v : line.operands) v = operand(block, kernel_.type(v));
          line.result = make(result);
          break;
        }
      }
      if (!good) {
        kernel_.values.resize(kernel_.values.size() - stand_ins.size());
        continue;
      }
      see(line.result);
      block.push_back({line});
      return;
    }
  }
  void multiply_add(Block& block) {
    const DType type = one_in(3) ? DType::S32 : one_in(2) ? DType::F32 : DType::F64;
    kernels::MultiplyAdd m;
    m.a = operand(block, type), m.b = operand(block, type), m.c = operand(block, type);
    m.result = make(type);
    see(m.result);
    block.push_back({m});
  }

  // What is seen inside a block ends with it.
  template <typename F>
  void scoped(const F& body) {
    const std::size_t values = seen_.size(), ranges = ranged_.size();
    ++depth_;
    body();
    --depth_;
    seen_.resize(values), ranged_.resize(ranges);
  }
  void some(Block& block, int count) {
    for (int i = 0; i < count; ++i) statement(block);
  }
  std::vector<kernels::Carry> open(Block& before) {
    std::vector<kernels::Carry> carries;
    for (std::int64_t i = below(3); i > 0; --i) {
      kernels::Carry c;
      const DType type = any_type();
      c.initial = operand(before, type);
      c.inside = make(type);
      carries.push_back(c);
    }
    return carries;
  }
  void close(Block& body, std::vector<kernels::Carry>& carries) {
    for (kernels::Carry& c : carries) c.next = operand(body, kernel_.type(c.inside));
  }
  void give(std::vector<kernels::Carry>& carries) {
    for (kernels::Carry& c : carries) {
      c.result = make(kernel_.type(c.inside));
      see(c.result);
    }
  }

  void serial_loop(Block& block) {
    kernels::Loop loop;
    loop.carries = open(block);
    loop.variable = make(DType::S64);
    loop.from = below(3);
    loop.to = loop.from + below(4);
    Ranged variable{loop.variable, loop.from, std::max(loop.from, loop.to - 1), false};
    // A bound that memory holds.
    const auto known = std::ranges::find_if(ranged_, [](const Ranged& r) { return r.high == 63; });
    if (known != ranged_.end() && one_in(2) && !in_lanes_) {
      loop.to_value = known->value;
      variable.high = 63;
    }
    scoped([&] {
      ranged_.push_back(variable);
      see(loop.variable);
      for (const kernels::Carry& c : loop.carries) see(c.inside);
      some(loop.body, 1 + static_cast<int>(below(4)));
      close(loop.body, loop.carries);
    });
    give(loop.carries);
    block.push_back({loop});
  }
  std::vector<kernels::Fold> open_folds(Block& before) {
    static constexpr Opcode kCombine[] = {Opcode::Add, Opcode::Multiply, Opcode::Maximum, Opcode::Minimum,
                                          Opcode::And, Opcode::Or,       Opcode::Xor};
    std::vector<kernels::Fold> folds;
    for (std::int64_t i = below(3); i > 0; --i) {
      kernels::Fold fold;
      const DType type = any_fold_type();
      kernels::Line line;
      line.operands = {make(type), make(type)};
      line.result = make(type);
      do line.opcode = fold.combine = kCombine[below(std::size(kCombine))];
      while (!kernels::verify_line(kernel_, line));
      kernel_.values.resize(kernel_.values.size() - 3);
      fold.carry.initial = operand(before, type);
      fold.carry.inside = make(type);
      folds.push_back(fold);
    }
    return folds;
  }
  // Of values by lanes and of some that all lanes share.
  void transpose(Block& block, int lanes) {
    kernels::Transpose t;
    const DType type = any_type();
    for (int l = 0; l < lanes; ++l) {
      t.operands.push_back(operand(block, type));
      t.results.push_back(make(type));
    }
    for (const Value v : t.results) see(v);
    block.push_back({t});
  }
  void lanes_body(kernels::Loop& loop) {
    const Ranged variable{loop.variable, loop.from, std::max(loop.from, loop.to - 1), true};
    scoped([&] {
      in_lanes_ = true;
      ranged_.push_back(variable);
      see(loop.variable);
      for (const kernels::Fold& fold : loop.folds) see(fold.carry.inside);
      some(loop.body, 3 + static_cast<int>(below(8)));
      const bool whole = (loop.to - loop.from) % loop.lanes == 0 && loop.block % loop.lanes == 0;
      if (whole && loop.lanes <= 16) transpose(loop.body, loop.lanes);
      store(loop.body);
      for (kernels::Fold& fold : loop.folds) {
        const DType type = kernel_.type(fold.carry.inside);
        kernels::Line line;
        line.opcode = fold.combine;
        line.operands = {fold.carry.inside, operand(loop.body, type)};
        line.result = fold.carry.next = make(type);
        loop.body.push_back({line});
      }
      for (kernels::Best& best : loop.bests) {
        static constexpr DType kCompared[] = {DType::F32, DType::F64, DType::S32, DType::U8, DType::S64, DType::U64, DType::S16};
        best = {one_in(2), one_in(2), operand(loop.body, kCompared[below(std::size(kCompared))])};
      }
      in_lanes_ = false;
    });
  }
  void lanes_loop(Block& block) {
    kernels::Loop loop;
    loop.folds = open_folds(block);
    loop.lanes = 2 << below(6);
    loop.variable = make(DType::S64);
    loop.from = below(5);
    loop.to = loop.from + (one_in(3) ? loop.lanes * below(4) : below(90));
    if (loop.from < loop.to && one_in(3)) loop.bests.resize(static_cast<std::size_t>(1 + below(2)));
    lanes_body(loop);
    for (kernels::Fold& fold : loop.folds) {
      fold.carry.result = make(kernel_.type(fold.carry.inside));
      see(fold.carry.result);
    }
    for (kernels::Best& best : loop.bests) {
      best.result = make(DType::S64);
      see(best.result);
    }
    block.push_back({loop});
  }
  void blocked_loop(Block& block) {
    kernels::Loop loop;
    loop.variable = make(DType::S64);
    loop.from = below(5);
    loop.to = loop.from + 1 + below(90);
    if (one_in(3)) loop.first_block = below(kernel_.blocks);
    const std::int64_t blocks = kernel_.blocks - loop.first_block;
    loop.block = (loop.to - loop.from + blocks - 1) / blocks + below(3);
    if (one_in(4)) {
      if (one_in(2)) loop.end = make(DType::S64);
      scoped([&] {
        ranged_.push_back({loop.variable, loop.from, loop.to - 1, false});
        if (loop.end != kernels::kNoValue) ranged_.push_back({loop.end, loop.from + 1, loop.to, false});
        some(loop.body, 3);
      });
    } else {
      loop.lanes = 2 << below(6);
      lanes_body(loop);
    }
    block.push_back({loop});
  }
  // Counts down from a small number.
  void while_loop(Block& block) {
    kernels::While loop;
    kernels::Line start, zero;
    start.opcode = zero.opcode = Opcode::Constant;
    start.result = make(DType::S64), zero.result = make(DType::S64);
    start.constant[0] = static_cast<std::uint64_t>(below(4));
    loop.carries = open(block);
    kernels::Carry counter;
    counter.initial = start.result;
    counter.inside = make(DType::S64);
    block.push_back({start});
    block.push_back({zero});
    kernels::Line goes;
    goes.opcode = Opcode::Compare;
    goes.operands = {counter.inside, zero.result};
    goes.compare = {hlo::Direction::Gt, hlo::Comparison::Signed};
    goes.result = loop.predicate = make(DType::Pred);
    scoped([&] {
      for (const kernels::Carry& c : loop.carries) see(c.inside);
      scoped([&] { some(loop.condition, static_cast<int>(below(2))); });
      loop.condition.push_back({goes});
      some(loop.body, 1 + static_cast<int>(below(3)));
      kernels::Affine fewer;
      fewer.index = kernels::index_of(counter.inside) + -1;
      fewer.result = counter.next = make(DType::S64);
      loop.body.push_back({fewer});
      close(loop.body, loop.carries);
    });
    loop.carries.push_back(counter);
    give(loop.carries);
    block.push_back({loop});
  }
  void choice(Block& block) {
    kernels::If choice;
    choice.selector = operand(block, one_in(2) ? DType::Pred : DType::S64);
    choice.branches.resize(static_cast<std::size_t>(1 + below(3)));
    for (std::int64_t i = below(3); i > 0; --i) choice.results.push_back({make(any_type()), {}});
    for (Block& branch : choice.branches)
      scoped([&] {
        some(branch, 1 + static_cast<int>(below(3)));
        for (kernels::If::Result& r : choice.results) r.from.push_back(operand(branch, kernel_.type(r.result)));
      });
    for (const kernels::If::Result& r : choice.results) see(r.result);
    block.push_back({choice});
  }

  void statement(Block& block) {
    switch (below(depth_ < 3 ? 16 : 10)) {
      case 0: case 1: case 2: return line(block);
      case 3: case 4: case 5: return load(block);
      case 6: case 7:
        if (!in_lanes_ && one_in(8)) return prefetch(block);
        return store(block);
      case 8: return affine(block);
      case 9: return multiply_add(block);
      case 10: case 11: return serial_loop(block);
      case 12: case 13: case 14:
        if (!in_lanes_) return lanes_loop(block);
        return load(block);
      default:
        if (in_lanes_) return line(block);
        return one_in(2) ? while_loop(block) : choice(block);
    }
  }

  std::mt19937 random_;
  kernels::Kernel kernel_;
  std::vector<Value> seen_;
  std::vector<Ranged> ranged_;
  int depth_ = 0;
  bool in_lanes_ = false;
};

}  // namespace hloom::emit
