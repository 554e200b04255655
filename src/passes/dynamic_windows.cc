#include "passes/dynamic_windows.h"

#include <algorithm>

#include "base/fail.h"
#include "base/try.h"
#include "passes/expand_batch_norm.h"

namespace hloom::passes {
namespace {

bool contains(const Dims& list, std::int64_t d) { return std::ranges::find(list, d) != list.end(); }
Instruction*& at(DimSizes& sizes, std::int64_t d) { return sizes[static_cast<std::size_t>(d)]; }
bool any_size(const DimSizes& sizes) {
  return std::ranges::any_of(sizes, [](const Instruction* s) { return s != nullptr; });
}

class WindowRules {
 public:
  WindowRules(Instruction& i, const SizesOf& sizes_of) : i_(i), make_(i), sizes_of_(sizes_of) {}

  Expected<Sized> apply() {
    switch (i_.opcode()) {
      case Opcode::Convolution: return convolution();
      case Opcode::Scatter: return scatter();
      case Opcode::Fft: return batched(std::ssize(i_.attr<hlo::FftAttr>().length));
      case Opcode::Cholesky: return batched(2);
      case Opcode::TriangularSolve: return triangular_solve();
      case Opcode::BatchNormGrad:
      case Opcode::BatchNormInference:
      case Opcode::BatchNormTraining: return batch_norm();
      case Opcode::SelectAndScatter: return select_and_scatter();
      default: return no_dynamic_form(i_);
    }
  }

 private:
  DimSizes sizes(std::int64_t operand) const { return sizes_of_(i_.operand(operand)); }
  Instruction* smaller(Instruction* a, Instruction* b) {
    if (a == nullptr || a == b) return b;
    return b == nullptr ? a : make_.binary(Opcode::Minimum, a, b);
  }
  Expected<Sized> on_bounds(std::vector<DimSizes> sizes) {
    i_.set_shape(with_bounds(i_.shape()));
    return Sized{&i_, std::move(sizes)};
  }

  // What counts is whole problems, each by itself; only the last dimensions are of one.
  Expected<Sized> batched(std::int64_t own_dims) {
    DimSizes own = sizes(0);
    if (any_size(DimSizes(own.end() - own_dims, own.end()))) return no_dynamic_form(i_);
    return on_bounds({std::move(own)});
  }

  Expected<Sized> triangular_solve() {
    const DimSizes a = sizes(0);
    DimSizes b = sizes(1);
    const std::int64_t rank = std::ssize(b), equations = i_.attr<hlo::TriangularSolveAttr>().left_side ? rank - 2 : rank - 1;
    if (at(b, equations) != nullptr || any_size(DimSizes(a.end() - 2, a.end()))) return no_dynamic_form(i_);
    for (std::int64_t d = 0; d < rank - 2; ++d) at(b, d) = smaller(at(b, d), a[static_cast<std::size_t>(d)]);
    return on_bounds({std::move(b)});
  }

  // Sums of what counts, over as many elements as count.
  Expected<Sized> batch_norm() {
    DimSizes own = sizes(0);
    if (i_.opcode() == Opcode::BatchNormGrad) {
      const DimSizes given = sizes(4);
      for (std::size_t d = 0; d < own.size(); ++d) own[d] = smaller(own[d], given[d]);
    }
    if (at(own, i_.attr<hlo::BatchNormAttr>().feature_index) != nullptr) return no_dynamic_form(i_);
    for (std::int64_t k = 1; k < i_.num_operands(); ++k)
      if (i_.operand(k)->shape().rank() == 1 && any_size(sizes(k))) return no_dynamic_form(i_);
    std::vector<DimSizes> results{own};
    if (i_.opcode() != Opcode::BatchNormInference) results.insert(results.end(), 2, DimSizes(1, nullptr));
    return Sized{expanded_batch_norm(i_, own), std::move(results)};
  }

  // A dimension with a size has windows of one element: others may end inside.
  Expected<Sized> select_and_scatter() {
    DimSizes own = sizes(0);
    const DimSizes given = sizes(1);
    const auto& window = i_.attr<hlo::WindowAttr>().window;
    for (std::size_t d = 0; d < own.size(); ++d) {
      own[d] = smaller(own[d], given[d]);
      if (own[d] != nullptr && !(window[d] == hlo::WindowDim())) return no_dynamic_form(i_);
    }
    return on_bounds({std::move(own)});
  }

  // Zeros where the input ends, and on both sides where what is summed does.
  Expected<Sized> convolution() {
    const auto& attr = i_.attr<hlo::ConvolutionAttr>();
    const hlo::ConvolutionDims& dims = attr.dims;
    DimSizes input = sizes(0), kernel = sizes(1), result(static_cast<std::size_t>(i_.shape().rank()), nullptr);
    const auto is_dynamic_at = [&](DimSizes& of, std::int64_t d) { return at(of, d) != nullptr; };
    for (const std::int64_t d : dims.kernel_spatial)
      if (is_dynamic_at(kernel, d)) return no_dynamic_form(i_);
    const bool in_groups = attr.feature_groups > 1 || attr.batch_groups > 1;
    if (in_groups && (is_dynamic_at(kernel, dims.kernel_input) || is_dynamic_at(kernel, dims.kernel_output) ||
                      is_dynamic_at(input, dims.input_feature)))
      return no_dynamic_form(i_);
    if (attr.batch_groups > 1 && is_dynamic_at(input, dims.input_batch)) return no_dynamic_form(i_);
    at(result, dims.output_batch) = at(input, dims.input_batch);
    at(result, dims.output_feature) = at(kernel, dims.kernel_output);
    DimSizes cut_input(input.size(), nullptr), cut_kernel(kernel.size(), nullptr);
    if (Instruction* features = smaller(at(input, dims.input_feature), at(kernel, dims.kernel_input)); features != nullptr)
      at(cut_input, dims.input_feature) = at(cut_kernel, dims.kernel_input) = features;
    for (std::size_t k = 0; k < dims.input_spatial.size(); ++k) {
      Instruction* size = at(input, dims.input_spatial[k]);
      if (size == nullptr) continue;
      at(cut_input, dims.input_spatial[k]) = size;
      at(result, dims.output_spatial[k]) = window_count(make_, size, attr.window[k]);
    }
    mask(0, cut_input), mask(1, cut_kernel);
    return on_bounds({std::move(result)});
  }

  void mask(std::int64_t operand, const DimSizes& cut) {
    Instruction* x = i_.operand(operand);
    if (any_size(cut)) i_.replace_operand(operand, masked(make_, x, cut, make_.zeros(Shape::scalar(x->shape().dtype()))));
  }

  // What goes past a run-time size of what is updated goes where nothing counts; updates that do not count go nowhere.
  Expected<Sized> scatter() {
    const auto& attr = i_.attr<hlo::ScatterAttr>();
    const std::int64_t n = i_.num_operands() / 2;
    std::vector<DimSizes> results;
    DimSizes indices = sizes(n);
    for (std::int64_t k = 0; k < n; ++k) {
      results.push_back(sizes(k));
      if (!windows_fit(k, n + 1 + k)) return no_dynamic_form(i_);
      add_batch_sizes(sizes(n + 1 + k), indices);
    }
    if (attr.index_vector_dim < std::ssize(indices) && at(indices, attr.index_vector_dim) != nullptr) return no_dynamic_form(i_);
    if (any_size(indices)) {
      Instruction* vectors = i_.operand(n);
      const DType type = vectors->shape().dtype();
      // -1 is outside of any array, and so is the largest number if it is large.
      if (attr.scatter_dims_to_operand_dims.empty() || (!is_signed(type) && bit_width(type) < 32)) return no_dynamic_form(i_);
      i_.replace_operand(n, masked(make_, vectors, indices, make_.integer(type, -1)));
      i_.mutable_attr<hlo::ScatterAttr>().indices_are_sorted = false;
      i_.mutable_attr<hlo::ScatterAttr>().unique_indices = false;
    }
    return on_bounds(std::move(results));
  }

  // A window is one element of a dimension with a run-time size, or all of it. Else it may end inside.
  bool windows_fit(std::int64_t base, std::int64_t updates) {
    const auto& attr = i_.attr<hlo::ScatterAttr>();
    DimSizes own = sizes(base), given = sizes(updates);
    std::size_t next = 0;
    for (std::int64_t d = 0; d < std::ssize(own); ++d) {
      if (contains(attr.inserted_window_dims, d)) continue;
      if (contains(attr.input_batching_dims, d)) {
        if (at(own, d) != nullptr) return false;
        continue;
      }
      if (at(own, d) != at(given, attr.update_window_dims[next++])) return false;
      if (at(own, d) != nullptr && contains(attr.scatter_dims_to_operand_dims, d)) return false;
    }
    return true;
  }

  // Dimensions of updates that are of no window are those of the indices in order.
  void add_batch_sizes(DimSizes updates, DimSizes& indices) {
    const auto& attr = i_.attr<hlo::ScatterAttr>();
    std::int64_t next = 0;
    for (std::int64_t d = 0; d < std::ssize(updates); ++d) {
      if (contains(attr.update_window_dims, d)) continue;
      if (next == attr.index_vector_dim) ++next;
      at(indices, next) = smaller(at(indices, next), at(updates, d));
      ++next;
    }
  }

  Instruction& i_;
  Make make_;
  const SizesOf& sizes_of_;
};

}  // namespace

Instruction* window_count(Make& make, Instruction* size, const hlo::WindowDim& w) {
  if (w == hlo::WindowDim()) return size;
  const auto number = [&](std::int64_t n) { return make.integer(DType::S32, n); };
  const auto subtract = [&](Instruction* a, std::int64_t b) { return make.binary(Opcode::Subtract, a, number(b)); };
  Instruction* spread = make.binary(Opcode::Multiply, subtract(size, 1), number(w.lhs_dilate));
  spread = make.binary(Opcode::Maximum, make.binary(Opcode::Add, spread, number(1)), number(0));
  const std::int64_t extent = w.size == 0 ? 0 : (w.size - 1) * w.rhs_dilate + 1;
  Instruction* room = subtract(spread, extent - w.pad_low - w.pad_high);
  Instruction* count = make.binary(Opcode::Add, make.binary(Opcode::Divide, room, number(w.stride)), number(1));
  Instruction* none = make.compare(hlo::Direction::Lt, room, number(0));
  return make.select(none, number(0), count);
}

Error no_dynamic_form(const Instruction& i) {
  const std::string target = i.opcode() == Opcode::CustomCall ? " target \"" + i.attr<hlo::CustomCallAttr>().target + "\"" : "";
  return fail(Code::Unimplemented, i.name(), ": no code yet for ", i.opcode(), target, " of arrays with run-time sizes, ", i.shape());
}

Expected<Sized> apply_window_sizes(Instruction& i, const SizesOf& sizes_of) { return WindowRules(i, sizes_of).apply(); }

}  // namespace hloom::passes
