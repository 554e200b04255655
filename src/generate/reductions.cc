// Sums, windows, scans, sorts.
#include <algorithm>
#include <array>

#include "generate/reducers.h"
#include "generate/scope.h"

namespace hloom::generate {
namespace {

bool has_dims(const Instruction& i) { return i.shape().rank() > 0; }

double combined(Combiner combiner, double bound, double terms) {
  if (combiner == Combiner::Add) return bound * (terms + 1);
  return combiner == Combiner::Multiply ? kUnbounded : bound;
}

// Products of many numbers stay exact where the numbers are -1, 0 and 1.
Instruction* ready_for(Scope& s, Combiner combiner, Instruction* x, double terms) {
  if (combiner == Combiner::Add) return s.tame(x, terms + 1);
  const bool product = combiner == Combiner::Multiply && is_floating(x->shape().dtype()) && !s.draw().wild;
  return product ? s.keep(s.add(Opcode::Sign, {s.tame(x)}), 1) : x;
}

Instruction* initial(Scope& s, Combiner combiner, DType type) {
  const bool other = s.random().chance(15) && combiner != Combiner::Multiply;
  return other ? s.scalar(type, s.random().pick(-1, 3)) : neutral(s, combiner, type);
}

bool draw_reduce(Scope& s) {
  Instruction* x = s.pick(has_dims);
  if (x == nullptr) return false;
  const DType type = x->shape().dtype();
  Dims dims;
  double terms = 1;
  for (std::int64_t d = 0; d < x->shape().rank(); ++d)
    if (s.random().chance(55)) {
      dims.push_back(d);
      terms *= static_cast<double>(x->shape().dim(d));
    }
  const Combiner combiner = draw_combiner(s, type, false);
  x = ready_for(s, combiner, x, terms);
  if (x == nullptr) return false;
  Instruction* r = s.add(Opcode::Reduce, {x, initial(s, combiner, type)}, [&](Instruction& i) {
    i.set_dimensions(dims);
    i.set_called({reducer(s, combiner, type)});
  });
  return s.keep(r, combined(combiner, std::max(s.bound(x), 4.0), terms)) != nullptr;
}

// The index of the greatest, as jnp.argmax is lowered.
bool draw_argmax(Scope& s) {
  Instruction* x = s.pick([](const Instruction& i) {
    return i.shape().rank() > 0 && !is_complex(i.shape().dtype()) && i.shape().dtype() != DType::Pred;
  });
  if (x == nullptr) return false;
  const std::int64_t along = s.random().pick(0, x->shape().rank() - 1);
  Instruction* numbers = s.add(
      Opcode::Iota, {}, [&](Instruction& i) { i.mutable_attr<hlo::IotaAttr>().dimension = along; },
      Shape::array(DType::S32, x->shape().dims()));
  const bool minimum = s.random().chance(30);
  const DType type = x->shape().dtype();
  Instruction* worst = neutral(s, minimum ? Combiner::Minimum : Combiner::Maximum, type);
  Instruction* r = s.add(Opcode::Reduce, {x, numbers, worst, s.scalar(DType::S32, 0)}, [&](Instruction& i) {
    i.set_dimensions({along});
    i.set_called({argmax_reducer(s, type, DType::S32, minimum)});
  });
  if (r == nullptr) return false;
  for (std::int64_t n = 0; n < 2; ++n)
    s.keep(s.computation().add_get_tuple_element(r, n), n == 0 ? s.bound(x) : kUnbounded);
  return true;
}

hlo::Window draw_window(Scope& s, const Dims& dims, bool dilated) {
  hlo::Window window;
  for (const std::int64_t n : dims) {
    hlo::WindowDim w;
    if (s.random().chance(60)) {
      w.size = s.random().pick(1, std::min<std::int64_t>(std::max<std::int64_t>(n, 1), 5));
      w.stride = s.random().chance(60) ? 1 : s.random().pick(2, 3);
      if (s.random().chance(50))
        w.pad_low = s.random().pick(0, w.size - 1), w.pad_high = s.random().pick(0, w.size - 1);
      if (dilated && s.random().chance(15)) w.lhs_dilate = 2;
      if (dilated && s.random().chance(15)) w.rhs_dilate = 2;
    }
    window.push_back(w);
  }
  return window;
}

double window_terms(const hlo::Window& window) {
  double terms = 1;
  for (const hlo::WindowDim& w : window) terms *= static_cast<double>(w.size);
  return terms;
}

bool windowed(Scope& s, Instruction* x, const hlo::Window& window, Combiner combiner) {
  const DType type = x->shape().dtype();
  const double terms = window_terms(window);
  x = ready_for(s, combiner, x, terms);
  if (x == nullptr) return false;
  Instruction* r = s.add(Opcode::ReduceWindow, {x, initial(s, combiner, type)}, [&](Instruction& i) {
    i.mutable_attr<hlo::WindowAttr>().window = window;
    i.set_called({reducer(s, combiner, type)});
  });
  return s.keep(r, combined(combiner, std::max(s.bound(x), 4.0), terms)) != nullptr;
}

bool draw_reduce_window(Scope& s) {
  Instruction* x = s.pick(has_dims);
  if (x == nullptr) return false;
  return windowed(s, x, draw_window(s, x->shape().dims(), true), draw_combiner(s, x->shape().dtype(), false));
}

// A window as long as the array: what comes before each element.
bool draw_cumulative(Scope& s) {
  Instruction* x = s.pick([](const Instruction& i) { return i.shape().rank() > 0 && i.shape().num_elements() > 0; });
  if (x == nullptr) return false;
  const std::int64_t along = s.random().pick(0, x->shape().rank() - 1), n = x->shape().dim(along);
  if (count(x->shape().dims()) * n > 40 * s.draw().max_elements) return false;
  hlo::Window window(static_cast<std::size_t>(x->shape().rank()));
  hlo::WindowDim& w = window[static_cast<std::size_t>(along)];
  w.size = n;
  (s.random().chance(70) ? w.pad_low : w.pad_high) = n - 1;
  return windowed(s, x, window, draw_combiner(s, x->shape().dtype(), false));
}

bool draw_select_and_scatter(Scope& s) {
  Instruction* x = s.pick([](const Instruction& i) {
    return i.shape().rank() > 0 && is_floating(i.shape().dtype()) && i.shape().num_elements() > 0;
  });
  if (x == nullptr) return false;
  const DType type = x->shape().dtype();
  const hlo::Window window = draw_window(s, x->shape().dims(), false);
  Dims dims;
  for (std::int64_t d = 0; d < x->shape().rank(); ++d) {
    const hlo::WindowDim& w = window[static_cast<std::size_t>(d)];
    const std::int64_t room = x->shape().dim(d) + w.pad_low + w.pad_high - w.size;
    dims.push_back(room < 0 ? 0 : room / w.stride + 1);
  }
  if (count(dims) > s.draw().max_elements) return false;
  const double terms = window_terms(window) + 1;
  Instruction* source = s.tame(s.make(type, dims), terms);
  Instruction* r = s.add(Opcode::SelectAndScatter, {x, source, s.scalar(type, 0)}, [&](Instruction& i) {
    i.mutable_attr<hlo::WindowAttr>().window = window;
    i.set_called({selector(s, type), reducer(s, Combiner::Add, type)});
  });
  return s.keep(r, source == nullptr ? kUnbounded : terms * s.bound(source)) != nullptr;
}

bool draw_sort(Scope& s) {
  Instruction* x = s.pick([](const Instruction& i) { return i.shape().rank() > 0 && !is_complex(i.shape().dtype()); });
  if (x == nullptr) return false;
  std::vector<Instruction*> operands{x};
  std::vector<DType> types{x->shape().dtype()};
  const std::int64_t more = s.random().chance(40) ? 0 : s.random().pick(1, 2);
  for (std::int64_t n = 0; n < more; ++n) {
    operands.push_back(s.make(s.random().chance(60) ? DType::S32 : s.type(), x->shape().dims()));
    if (operands.back() == nullptr) return false;
    types.push_back(operands.back()->shape().dtype());
  }
  const std::int64_t along = s.random().pick(0, x->shape().rank() - 1);
  // Only a total order sorts what may be a NaN.
  const bool total = is_floating(types[0]) && (s.bound(x) == kUnbounded || s.random().chance(30));
  Instruction* r = s.add(Opcode::Sort, operands, [&](Instruction& i) {
    i.set_dimensions({along});
    i.mutable_attr<hlo::SortAttr>().stable = true;
    i.set_called({comparator(s, types, total, s.random().chance(40))});
  });
  if (r == nullptr) return false;
  if (operands.size() == 1) return s.keep(r, s.bound(x)) != nullptr;
  for (std::size_t n = 0; n < operands.size(); ++n)
    s.keep(s.computation().add_get_tuple_element(r, static_cast<std::int64_t>(n)), s.bound(operands[n]));
  return true;
}

bool draw_top_k(Scope& s) {
  Instruction* x = s.pick([](const Instruction& i) {
    const DType t = i.shape().dtype();
    return i.shape().rank() > 0 && (t == DType::F32 || t == DType::S32 || t == DType::BF16);
  });
  if (x == nullptr || (is_floating(x->shape().dtype()) && s.bound(x) == kUnbounded)) return false;
  const std::int64_t n = x->shape().dim(x->shape().rank() - 1);
  Instruction* r = s.add(Opcode::Topk, {x}, [&](Instruction& i) {
    auto& attr = i.mutable_attr<hlo::TopKAttr>();
    attr.k = s.random().pick(0, std::min<std::int64_t>(n, 9));
    attr.largest = s.random().chance(80);
    attr.stable = true;
  });
  if (r == nullptr) return false;
  for (std::int64_t e = 0; e < 2; ++e)
    s.keep(s.computation().add_get_tuple_element(r, e), e == 0 ? s.bound(x) : static_cast<double>(n));
  return true;
}

bool draw_random_bits(Scope& s) {
  const auto algorithm =
      s.random().of({hlo::RngAlgorithm::ThreeFry, hlo::RngAlgorithm::Philox, hlo::RngAlgorithm::Default});
  const std::int64_t words = algorithm == hlo::RngAlgorithm::ThreeFry || s.random().chance(50) ? 2 : 3;
  Instruction* state = s.make(DType::U64, {words});
  const Shape bits = Shape::array(s.random().of({DType::U32, DType::U32, DType::U64, DType::U8, DType::U16}),
                                  s.dims(s.random().pick(0, 3)));
  Instruction* r = s.add(
      Opcode::RngBitGenerator, {state},
      [&](Instruction& i) { i.mutable_attr<hlo::RngBitsAttr>().algorithm = algorithm; },
      Shape::tuple({Shape::array(DType::U64, {words}), bits}));
  if (r == nullptr) return false;
  for (std::int64_t n = 0; n < 2; ++n) s.keep(s.computation().add_get_tuple_element(r, n), kUnbounded);
  return true;
}

constexpr std::array kFamilies = {
    Family{50, draw_reduce},
    Family{10, draw_argmax},
    Family{14, draw_reduce_window},
    Family{8, draw_cumulative},
    Family{4, draw_select_and_scatter},
    Family{12, draw_sort},
    Family{3, draw_top_k},
    Family{6, draw_random_bits},
};

}  // namespace

std::span<const Family> reduction_families() { return kFamilies; }

}  // namespace hloom::generate
