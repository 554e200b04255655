// Transforms, factors, solutions, batch norms; collectives of the one device there is.
#include <algorithm>
#include <array>

#include "generate/reducers.h"
#include "generate/scope.h"

namespace hloom::generate {
namespace {

constexpr std::int64_t kLongestTransform = 140;  // the interpreter goes by the definition

DType wide_type(Scope& s) { return s.random().of({DType::F32, DType::F32, DType::F32, DType::F64}); }
DType complex_of(DType part) { return part == DType::F64 ? DType::C128 : DType::C64; }

bool draw_fft(Scope& s) {
  const DType part = wide_type(s);
  const auto type = s.random().of({hlo::FftType::Fft, hlo::FftType::Ifft, hlo::FftType::Rfft, hlo::FftType::Irfft});
  Dims dims = s.dims(s.random().pick(1, 4));
  for (std::int64_t& d : dims) d = std::min(d, kLongestTransform);
  const std::int64_t transformed = s.random().pick(1, std::min<std::int64_t>(3, std::ssize(dims)));
  const Dims length(dims.end() - transformed, dims.end());
  if (std::ranges::find(length, 0) != length.end()) return false;
  if (type == hlo::FftType::Irfft) dims.back() = dims.back() / 2 + 1;
  Instruction* x = s.make(type == hlo::FftType::Rfft ? part : complex_of(part), dims);
  return s.add(Opcode::Fft, {x}, [&](Instruction& i) {
           auto& attr = i.mutable_attr<hlo::FftAttr>();
           attr.type = type;
           attr.length = length;
         }) != nullptr;
}

DType matrix_type(Scope& s) {
  return s.random().of({DType::F32, DType::F32, DType::F32, DType::F64, DType::C64, DType::C128, DType::BF16, DType::F16});
}

// Batches, then the matrix.
Dims batched(Scope& s, std::int64_t rows, std::int64_t columns) {
  Dims dims;
  for (std::int64_t d = s.random().of({0, 0, 0, 1, 1, 2}); d > 0; --d) dims.push_back(s.random().pick(1, 4));
  dims.push_back(rows);
  dims.push_back(columns);
  return dims;
}

// Square matrices of small numbers whose diagonal outweighs the rest: their factors and inverses are tame.
Instruction* heavy_diagonal(Scope& s, DType type, const Dims& dims) {
  Instruction* m = s.tame(s.make(type, dims));
  const auto number = [&](std::int64_t d) {
    return s.add(Opcode::Iota, {}, [&](Instruction& i) { i.mutable_attr<hlo::IotaAttr>().dimension = d; },
                 Shape::array(DType::S32, dims));
  };
  const std::int64_t rank = std::ssize(dims);
  Instruction* on_diagonal = s.add(Opcode::Compare, {number(rank - 2), number(rank - 1)}, [](Instruction& i) {
    i.mutable_attr<hlo::CompareAttr>() = {hlo::Direction::Eq, hlo::Comparison::Signed};
  });
  return s.add(Opcode::Select, {on_diagonal, s.splat(type, 8 * dims.back() + 1, dims), m});
}

std::int64_t order(Scope& s) { return s.random().of({1, 2, 3, 3, 4, 5, 8, 17, 33}); }

bool draw_cholesky(Scope& s) {
  const std::int64_t n = order(s);
  Instruction* a = heavy_diagonal(s, matrix_type(s), batched(s, n, n));
  return s.add(Opcode::Cholesky, {a}, [&](Instruction& i) {
           i.mutable_attr<hlo::CholeskyAttr>().lower = s.random().chance(50);
         }) != nullptr;
}

bool draw_triangular_solve(Scope& s) {
  const std::int64_t n = order(s), others = s.random().of({1, 2, 5, 16, 19});
  const DType type = matrix_type(s);
  const bool left = s.random().chance(60);
  const Dims square = batched(s, n, n);
  Dims right = square;
  right[right.size() - 2] = left ? n : others;
  right.back() = left ? others : n;
  Instruction* a = heavy_diagonal(s, type, square);
  Instruction* b = s.tame(s.make(type, right));
  using Form = hlo::Transposition;
  return s.add(Opcode::TriangularSolve, {a, b}, [&](Instruction& i) {
           auto& attr = i.mutable_attr<hlo::TriangularSolveAttr>();
           attr.left_side = left;
           attr.lower = s.random().chance(50);
           attr.unit_diagonal = s.random().chance(20);
           attr.transpose_a = s.random().of({Form::None, Form::None, Form::Transpose, Form::Adjoint});
         }) != nullptr;
}

bool draw_batch_norm(Scope& s) {
  Instruction* x = s.pick([](const Instruction& i) {
    return i.shape().rank() > 0 && is_floating(i.shape().dtype()) && bit_width(i.shape().dtype()) >= 16;
  });
  if (x == nullptr) return false;
  const std::int64_t feature = s.random().pick(0, x->shape().rank() - 1);
  const DType type = x->shape().dtype();
  const Dims features{x->shape().dim(feature)};
  const auto vector = [&] { return s.tame(s.make(type, features)); };
  const auto set = [&](Instruction& i) {
    auto& attr = i.mutable_attr<hlo::BatchNormAttr>();
    attr.feature_index = feature;
    attr.epsilon = 0.5;
  };
  x = s.tame(x);
  Instruction* variance = s.add(Opcode::Abs, {vector()});
  switch (s.random().pick(0, 2)) {
    case 0: return s.add(Opcode::BatchNormInference, {x, vector(), vector(), vector(), variance}, set) != nullptr;
    case 1: {
      Instruction* r = s.add(Opcode::BatchNormTraining, {x, vector(), vector()}, set);
      if (r == nullptr) return false;
      for (std::int64_t k = 0; k < 3; ++k) s.keep(s.computation().add_get_tuple_element(r, k), kUnbounded);
      return true;
    }
    default: {
      Instruction* dy = s.tame(s.make(type, x == nullptr ? features : x->shape().dims()));
      Instruction* r = s.add(Opcode::BatchNormGrad, {x, vector(), vector(), variance, dy}, set);
      if (r == nullptr) return false;
      for (std::int64_t k = 0; k < 3; ++k) s.keep(s.computation().add_get_tuple_element(r, k), kUnbounded);
      return true;
    }
  }
}

// Of one device: each gives what it takes, or zeros.
bool draw_collective(Scope& s) {
  Instruction* x = s.pick([](const Instruction& i) { return i.shape().rank() > 0; });
  if (x == nullptr) return false;
  const double bound = s.bound(x);
  const std::int64_t along = s.random().pick(0, x->shape().rank() - 1);
  const DType type = x->shape().dtype();
  const auto folds = [&](Instruction& i) { i.set_called({reducer(s, draw_combiner(s, type, false), type)}); };
  const auto dimension = [&](Instruction& i) { i.set_dimensions({along}); };
  const auto one_pair = [&](Instruction& i) {
    if (s.random().chance(70)) i.mutable_attr<hlo::PermuteAttr>().pairs = {{0, 0}};
  };
  switch (s.random().pick(0, 5)) {
    case 0: return s.keep(s.add(Opcode::AllReduce, {x}, folds), bound) != nullptr;
    case 1: return s.keep(s.add(Opcode::AllGather, {x}, dimension, Shape::array(type, x->shape().dims())), bound) != nullptr;
    case 2:
      return s.keep(s.add(Opcode::ReduceScatter, {x}, [&](Instruction& i) { folds(i), dimension(i); }, Shape::array(type, x->shape().dims())), bound) != nullptr;
    case 3:
      return s.keep(s.add(Opcode::AllToAll, {x}, [&](Instruction& i) {
                      dimension(i);
                      i.mutable_attr<hlo::CollectiveAttr>().has_dimension = true;
                    }), bound) != nullptr;
    case 4: return s.keep(s.add(Opcode::CollectivePermute, {x}, one_pair), bound) != nullptr;
    default: return s.keep(s.add(Opcode::CollectiveBroadcast, {x}), bound) != nullptr;
  }
}

constexpr std::array kFamilies = {
    Family{30, draw_fft},        Family{20, draw_cholesky},   Family{25, draw_triangular_solve},
    Family{15, draw_batch_norm}, Family{20, draw_collective},
};

}  // namespace

std::span<const Family> transform_families() { return kFamilies; }

}  // namespace hloom::generate
