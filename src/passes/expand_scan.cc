#include "passes/expand_scan.h"

#include <limits>

#include "hlo/inline.h"
#include "passes/expand.h"
#include "passes/make.h"

namespace hloom::passes {
namespace {

// The loop's state: counter, inputs, outputs, carries.
class ScanLoop {
 public:
  explicit ScanLoop(Instruction& i) : i_(i), along_(i.dimension(0)) {
    const auto& attr = i.attr<hlo::ScanAttr>();
    inputs_ = i.num_operands() - attr.num_carries;
    outputs_ = static_cast<std::int64_t>(i.shape().elements().size()) - attr.num_carries;
    steps_ = i.operand(0)->shape().dim(along_);
    counter_ = steps_ > std::numeric_limits<std::int32_t>::max() ? DType::S64 : DType::S32;
  }

  Instruction* build() {
    Make make(i_);
    std::vector<Instruction*> results = initial(make);
    if (steps_ > 0) {
      Instruction* state = make.tuple(results);
      Instruction* loop = make.op(Opcode::While, state->shape(), {state});
      hlo::Module& module = i_.module();
      hlo::Computation* condition = module.add_computation(i_.name() + "_condition");
      hlo::Computation* body = module.add_computation(i_.name() + "_body");
      write_condition(*condition, state->shape());
      write_body(*body, state->shape());
      loop->set_called({condition, body});
      for (std::size_t k = 0; k < results.size(); ++k) results[k] = make.element(loop, static_cast<std::int64_t>(k));
    }
    results.erase(results.begin(), results.begin() + 1 + inputs_);
    return make.tuple(results);
  }

 private:
  std::vector<Instruction*> initial(Make& make) const {
    std::vector<Instruction*> state = {make.integer(counter_, 0)};
    state.insert(state.end(), i_.operands().begin(), i_.operands().begin() + inputs_);
    for (std::int64_t k = 0; k < outputs_; ++k) state.push_back(make.zeros(i_.shape().element(k)));
    state.insert(state.end(), i_.operands().begin() + inputs_, i_.operands().end());
    return state;
  }

  void write_condition(hlo::Computation& c, const Shape& state) const {
    Make make(i_, c);
    Instruction* at = make.element(c.add_parameter(0, state), 0);
    c.set_root(make.compare(hlo::Direction::Lt, at, make.integer(counter_, steps_)));
  }

  // Where the slice of this step lies in an array of `rank` dimensions.
  std::vector<Instruction*> starts(Make& make, Instruction* step, std::int64_t rank) const {
    std::vector<Instruction*> at;
    for (std::int64_t d = 0; d < rank; ++d) at.push_back(d == along_ ? step : make.integer(counter_, 0));
    return at;
  }

  Instruction* slice(Make& make, Instruction* input, Instruction* step) const {
    Dims sizes = input->shape().dims(), dims = sizes;
    sizes[static_cast<std::size_t>(along_)] = 1;
    dims.erase(dims.begin() + along_);
    return make.reshape(make.dynamic_slice(input, starts(make, step, input->shape().rank()), sizes), dims);
  }

  Instruction* with_slice(Make& make, Instruction* output, Instruction* slice, Instruction* step) const {
    Dims dims = slice->shape().dims();
    dims.insert(dims.begin() + along_, 1);
    return make.dynamic_update_slice(output, make.reshape(slice, dims), starts(make, step, output->shape().rank()));
  }

  void write_body(hlo::Computation& c, const Shape& state) const {
    Make make(i_, c);
    Instruction* p = c.add_parameter(0, state);
    const auto leaf = [&](std::int64_t k) { return make.element(p, k); };
    Instruction* at = leaf(0);
    Instruction* step = at;
    if (i_.attr<hlo::ScanAttr>().reverse) step = make.binary(Opcode::Subtract, make.integer(counter_, steps_ - 1), at);
    std::vector<Instruction*> arguments;
    for (std::int64_t k = 0; k < inputs_; ++k) arguments.push_back(slice(make, leaf(1 + k), step));
    for (std::int64_t k = inputs_; k < i_.num_operands(); ++k) arguments.push_back(leaf(1 + outputs_ + k));
    Instruction* results = inline_computation(*i_.to_apply(), arguments, c);
    const auto result = [&](std::int64_t k) { return results->shape().is_tuple() ? make.element(results, k) : results; };
    std::vector<Instruction*> next = {make.binary(Opcode::Add, at, make.integer(counter_, 1))};
    for (std::int64_t k = 0; k < inputs_; ++k) next.push_back(leaf(1 + k));
    for (std::int64_t k = 0; k < outputs_; ++k)
      next.push_back(with_slice(make, leaf(1 + inputs_ + k), result(k), step));
    for (std::int64_t k = outputs_; k < std::ssize(i_.shape().elements()); ++k) next.push_back(result(k));
    c.set_root(make.tuple(next));
  }

  Instruction& i_;
  std::int64_t along_, inputs_ = 0, outputs_ = 0, steps_ = 0;
  DType counter_ = DType::S32;
};

Expected<Instruction*> as_loop(Instruction& i) { return ScanLoop(i).build(); }

}  // namespace

// A scan in the computation of another comes first, as callees do.
Expected<Changed> expand_scan(hlo::Module& module) { return expand(module, Opcode::Scan, as_loop); }

}  // namespace hloom::passes
