#include "hlo/module.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace hloom::hlo {
namespace {

bool same_names(const std::vector<Instruction*>& a, const std::vector<Instruction*>& b) {
  return std::ranges::equal(a, b, {}, &Instruction::name, &Instruction::name);
}

bool equal_instructions(const Instruction& a, const Instruction& b) {
  return a.opcode() == b.opcode() && a.name() == b.name() && a.shape() == b.shape() &&
         a.dimensions() == b.dimensions() && same_names(a.operands(), b.operands()) &&
         same_names(a.control_predecessors(), b.control_predecessors()) &&
         std::ranges::equal(a.called(), b.called(), {}, &Computation::name, &Computation::name) &&
         a.attributes() == b.attributes() && a.annotations() == b.annotations();
}

bool equal_computations(const Computation& a, const Computation& b) {
  return a.name() == b.name() && a.execution_thread() == b.execution_thread() &&
         (a.root() == nullptr ? b.root() == nullptr : b.root() != nullptr && a.root()->name() == b.root()->name()) &&
         std::ranges::equal(a.instructions(), b.instructions(), equal_instructions);
}

// FNV-1a over words.
class Hash {
 public:
  void add(std::uint64_t v) {
    state_ = (state_ ^ v) * 0x9E3779B97F4A7C15ull;
    state_ ^= state_ >> 29;
  }
  void add(std::string_view s) { add(std::hash<std::string_view>()(s)); }
  void add(std::span<const std::byte> b) {
    add(std::string_view(reinterpret_cast<const char*>(b.data()), b.size()));
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0xCBF29CE484222325ull;
};

void add_literal(Hash& h, const Literal& literal) {
  h.add(literal.bytes());
  for (const Literal& e : literal.elements()) add_literal(h, e);
}

void add_list(Hash& h, const Dims& dims) {
  h.add(dims.size());
  for (const std::int64_t d : dims) h.add(static_cast<std::uint64_t>(d));
}

// What passes change of attributes: enough to tell any two states of a module that a pass may leave.
struct AddAttributes {
  Hash& h;
  void operator()(const ConstantAttr& a) const { add_literal(h, a.literal); }
  void operator()(const ParameterAttr& a) const { h.add(static_cast<std::uint64_t>(a.number)); }
  void operator()(const TupleElementAttr& a) const { h.add(static_cast<std::uint64_t>(a.index)); }
  void operator()(const IotaAttr& a) const { h.add(static_cast<std::uint64_t>(a.dimension)); }
  void operator()(const CompareAttr& a) const { h.add(static_cast<std::uint64_t>(a.direction) * 8 + static_cast<std::uint64_t>(a.type)); }
  void operator()(const SliceAttr& a) const { add_list(h, a.starts), add_list(h, a.limits), add_list(h, a.strides); }
  void operator()(const DynamicSliceAttr& a) const { add_list(h, a.sizes); }
  void operator()(const PadAttr& a) const {
    for (const PadDim& d : a.dims) add_list(h, {d.low, d.high, d.interior});
  }
  void operator()(const DotAttr& a) const {
    add_list(h, a.lhs_batch), add_list(h, a.lhs_contracting), add_list(h, a.rhs_batch), add_list(h, a.rhs_contracting);
  }
  void operator()(const GatherAttr& a) const {
    add_list(h, a.offset_dims), add_list(h, a.collapsed_slice_dims), add_list(h, a.start_index_map),
        add_list(h, a.operand_batching_dims), add_list(h, a.start_indices_batching_dims), add_list(h, a.slice_sizes);
    h.add(static_cast<std::uint64_t>(a.index_vector_dim) * 2 + a.indices_are_sorted);
  }
  void operator()(const ScatterAttr& a) const {
    add_list(h, a.update_window_dims), add_list(h, a.inserted_window_dims),
        add_list(h, a.scatter_dims_to_operand_dims), add_list(h, a.input_batching_dims),
        add_list(h, a.scatter_indices_batching_dims);
    h.add(static_cast<std::uint64_t>(a.index_vector_dim) * 4 + a.indices_are_sorted * 2 + a.unique_indices);
  }
  void operator()(const WindowAttr& a) const { add_window(a.window); }
  void operator()(const ConvolutionAttr& a) const {
    add_window(a.window);
    add_list(h, a.dims.input_spatial), add_list(h, a.dims.kernel_spatial), add_list(h, a.dims.output_spatial);
    add_list(h, {a.dims.input_batch, a.dims.input_feature, a.dims.kernel_input, a.dims.kernel_output,
                 a.dims.output_batch, a.dims.output_feature, a.feature_groups, a.batch_groups});
  }
  void operator()(const FusionAttr& a) const { h.add(static_cast<std::uint64_t>(a.kind)); }
  void operator()(const CustomCallAttr& a) const { h.add(a.target); }
  void operator()(const auto&) const {}
  void add_window(const Window& window) const {
    for (const WindowDim& d : window)
      add_list(h, {d.size, d.stride, d.pad_low, d.pad_high, d.lhs_dilate, d.rhs_dilate, d.reversal});
  }
};

void add_instruction(Hash& h, const Instruction& i) {
  h.add(static_cast<std::uint64_t>(i.opcode()));
  h.add(i.name());
  h.add(to_string(i.shape()));
  add_list(h, i.dimensions());
  for (const Instruction* operand : i.operands()) h.add(operand->name());
  for (const Instruction* before : i.control_predecessors()) h.add(before->name());
  for (const Computation* callee : i.called()) h.add(callee->name());
  i.attributes().visit(AddAttributes{h});
  const Annotations& a = i.annotations();
  h.add(a.backend_config);
  for (const auto& [key, value] : a.decisions) h.add(key), h.add(value);
  for (const auto& [key, value] : a.frontend_attributes) h.add(key), h.add(value);
}

}  // namespace

namespace {

// The header's words, the entry's layouts included where it does not say them.
ModuleConfig full_config(const Module& module) {
  ModuleConfig config = module.config();
  if (config.has_entry_layout || module.entry() == nullptr || module.entry()->root() == nullptr) return config;
  config.has_entry_layout = true;
  config.entry_parameters.clear();
  for (const Instruction* p : module.entry()->parameters()) config.entry_parameters.push_back(p->shape());
  config.entry_result = module.entry()->root()->shape();
  return config;
}

}  // namespace

bool equal(const Module& a, const Module& b) {
  return a.name() == b.name() && full_config(a) == full_config(b) &&
         (a.entry() == nullptr ? b.entry() == nullptr : b.entry() && a.entry()->name() == b.entry()->name()) &&
         std::ranges::equal(a.computations(), b.computations(), equal_computations);
}

std::uint64_t fingerprint(const Module& module) {
  Hash h;
  h.add(module.name());
  for (const Computation& c : module.computations()) {
    h.add(c.name());
    if (c.root() != nullptr) h.add(c.root()->name());
    for (const Instruction& i : c.instructions()) add_instruction(h, i);
  }
  return h.value();
}

}  // namespace hloom::hlo
