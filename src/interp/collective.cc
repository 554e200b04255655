// Collectives (hlo-ops 12): each device gives its operands to its group, and works out its own result from what all
// gave.

#include <algorithm>

#include "base/try.h"
#include "hlo/reduce_order.h"
#include "interp/collective.h"
#include "interp/index.h"
#include "interp/scalar_function.h"
#include "interp/sums.h"

namespace hloom::interp {
namespace {

using hlo::Literal;
using Group = std::vector<std::int64_t>;

Value zeros(const Call& call) { return Value(Literal(call.shape)); }

Value number(const Call& call, std::int64_t n) {
  Literal result(call.shape);
  result.mutable_data<std::uint32_t>()[0] = static_cast<std::uint32_t>(n);
  return result;
}

// Operand i of all members reduced element by element, in the order of ranks.
Expected<Literal> reduced(const Call& call, const std::vector<Value>& given, std::int64_t i) {
  ScalarFunction& function = call.machine.scalar_function(*call.instruction.to_apply());
  const std::vector<Literal> arrays = agreed(given, i);
  Literal sum = arrays[0];
  if (arrays.size() == 1) return sum;
  if (is_float_sum(function, call.machine.options()) && is_floating(sum.dtype())) {
    std::vector<double> total = widen<double>(sum);
    for (std::size_t m = 1; m < arrays.size(); ++m) {
      const std::vector<double> x = widen<double>(arrays[m]);
      for (std::size_t k = 0; k < total.size(); ++k) total[k] += x[k];
    }
    return rounded(sum.shape(), total);
  }
  // Narrow floats are folded in f32 and rounded once; only of sums and products is that another value.
  const hlo::Opcode op = hlo::reducer_op(*call.instruction.to_apply());
  if (is_floating(sum.dtype()) && bit_width(sum.dtype()) < 32 && (op == hlo::Opcode::Add || op == hlo::Opcode::Multiply)) {
    std::vector<double> total = widen<double>(sum);
    for (std::size_t m = 1; m < arrays.size(); ++m) {
      const std::vector<double> x = widen<double>(arrays[m]);
      for (std::size_t k = 0; k < total.size(); ++k)
        total[k] = static_cast<float>(op == hlo::Opcode::Add ? total[k] + x[k] : total[k] * x[k]);
    }
    return rounded(sum.shape(), total);
  }
  std::byte* out[] = {sum.mutable_bytes().data()};
  for (std::size_t m = 1; m < arrays.size(); ++m) {
    const std::byte* in[] = {out[0], arrays[m].bytes().data()};
    TRY(function(out, in, sum.num_elements()));
  }
  return sum;
}

// The first id of the group, or the one that the last operand names, in the group's numbering of devices.
Expected<std::int64_t> root_of(const Call& call, const Group& group) {
  if (!call.instruction.attr<hlo::CollectiveAttr>().has_dynamic_root) return 0;
  const std::int64_t root = hlo::element_as_int64(call.array(call.num_operands() - 1), 0);
  const auto found = std::find(group.begin(), group.end(), root);
  if (found == group.end()) return wrong(call, "the root ", root, " is not in the group");
  return found - group.begin();
}

std::int64_t num_data_operands(const Call& call) {
  return call.num_operands() - (call.instruction.attr<hlo::CollectiveAttr>().has_dynamic_root ? 1 : 0);
}

}  // namespace

Expected<Value> partition_id(const Call& call) { return number(call, call.machine.place().partition()); }
Expected<Value> replica_id(const Call& call) { return number(call, call.machine.place().replica()); }

Expected<Value> all_gather(const Call& call) {
  const Group group = TRY(group_of(call));
  const std::vector<Value> given = TRY(exchange(call, group, operands_of(call)));
  const std::int64_t dimension = call.instruction.dimension(0);
  std::vector<Literal> results;
  for (std::int64_t i = 0; i < call.num_operands(); ++i) {
    const std::vector<Literal> pieces = agreed(given, i);
    Dims dims = pieces[0].shape().dims();
    dims[static_cast<std::size_t>(dimension)] *= static_cast<std::int64_t>(given.size());
    results.push_back(joined(pieces, dimension, Shape::array(call.array(i).dtype(), dims)));
  }
  return tuple_unless_one(std::move(results));
}

Expected<Value> all_reduce(const Call& call) {
  const Group group = TRY(group_of(call));
  const std::vector<Value> given = TRY(exchange(call, group, operands_of(call)));
  std::vector<Literal> results;
  for (std::int64_t i = 0; i < call.num_operands(); ++i) results.push_back(TRY(reduced(call, given, i)));
  return tuple_unless_one(std::move(results));
}

Expected<Value> reduce_scatter(const Call& call) {
  const Group group = TRY(group_of(call));
  const std::vector<Value> given = TRY(exchange(call, group, operands_of(call)));
  std::vector<Literal> results;
  for (std::int64_t i = 0; i < call.num_operands(); ++i) {
    const Literal whole = TRY(reduced(call, given, i));
    results.push_back(
        piece_of(whole, call.instruction.dimension(0), rank_in(call, group), static_cast<std::int64_t>(group.size())));
  }
  return tuple_unless_one(std::move(results));
}

// The root's operands; zeros for devices in no group.
Expected<Value> collective_broadcast(const Call& call) {
  const Group group = TRY(group_of(call));
  if (group.empty()) {
    std::vector<Literal> none;
    for (std::int64_t i = 0; i < num_data_operands(call); ++i) none.emplace_back(Shape::array(call.array(i).dtype(), call.dims(i)));
    return tuple_unless_one(std::move(none));
  }
  const std::int64_t root = TRY(root_of(call, group));
  const std::vector<Value> given = TRY(exchange(call, group, operands_of(call)));
  std::vector<Literal> results;
  for (std::int64_t i = 0; i < num_data_operands(call); ++i)
    results.push_back(given[static_cast<std::size_t>(root)].element(i).array());
  return tuple_unless_one(std::move(results));
}

// The sum for the root, zeros for the others.
Expected<Value> collective_reduce(const Call& call) {
  const Group group = TRY(group_of(call));
  const std::int64_t root = TRY(root_of(call, group));
  const std::vector<Value> given = TRY(exchange(call, group, operands_of(call)));
  if (rank_in(call, group) != root) return zeros(call);
  std::vector<Literal> results;
  for (std::int64_t i = 0; i < num_data_operands(call); ++i) results.push_back(TRY(reduced(call, given, i)));
  return tuple_unless_one(std::move(results));
}

}  // namespace hloom::interp
