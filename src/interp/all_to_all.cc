// Collectives in which each device gets something else.

#include <algorithm>
#include <set>

#include "base/try.h"
#include "hlo/permute_slices.h"
#include "interp/collective.h"
#include "interp/index.h"
#include "interp/starts.h"
#include "interp/sums.h"

namespace hloom::interp {
namespace {

using hlo::Literal;
using hlo::PermuteSlice;
using Group = std::vector<std::int64_t>;

// The devices that are joined with this one by pairs, in order; others need not meet it.
Group connected(const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs, std::int64_t device) {
  std::set<std::int64_t> found{device};
  for (std::size_t before = 0; before != found.size();) {
    before = found.size();
    for (const auto& [source, target] : pairs)
      if (found.contains(source) || found.contains(target)) found.insert({source, target});
  }
  return {found.begin(), found.end()};
}

// One transfer of a ragged exchange: rows that a member sends here.
Expected<> receive_rows(const Call& call, const Value& member, std::int64_t entry, Literal& result) {
  const Literal& source = member.element(0).array();
  const std::int64_t from = hlo::element_as_int64(member.element(2).array(), entry),
                     size = hlo::element_as_int64(member.element(3).array(), entry),
                     to = hlo::element_as_int64(member.element(4).array(), entry);
  const std::int64_t had = source.shape().dim(0), room = result.shape().dim(0);
  if (size < 0 || from < 0 || from > had - size || to < 0 || to > room - size)
    return wrong(call, size, " rows from ", from, " of ", had, " do not fit at ", to, " of ", room);
  const std::int64_t row = had == 0 ? 0 : source.num_elements() / had * byte_width(source.dtype());
  std::copy_n(source.bytes().data() + from * row, size * row, result.mutable_bytes().data() + to * row);
  return {};
}

// Where a window of these sizes starts, clamped into the array.
Dims starts_of(const Value& offsets, const PermuteSlice& slice, const Dims& dims) {
  const Value* own = &offsets;
  for (const std::int64_t k : slice.offsets) own = &own->element(k);
  Dims starts;
  for (std::size_t d = 0; d < dims.size(); ++d)
    starts.push_back(std::clamp<std::int64_t>(start_index(own->element(static_cast<std::int64_t>(d)).array(), 0), 0,
                                              dims[d] - slice.sizes[d]));
  return starts;
}

const Literal& array_of(const Value& arrays, const PermuteSlice& slice) {
  return arrays.is_tuple() ? arrays.element(slice.array).array() : arrays.array();
}

// This device's output with the slices of `source`'s input: whose an array is, his offsets say where in it.
Expected<Value> with_slices(const Call& call, const Value& mine, const Value* source) {
  const std::vector<PermuteSlice> slices = TRY(hlo::permute_slices(call.instruction));
  const Value& output = mine.element(1);
  std::vector<Literal> results;
  for (std::size_t k = 0; k < (output.is_tuple() ? output.elements().size() : 1); ++k)
    results.push_back(output.is_tuple() ? output.elements()[k].array() : output.array());
  for (const PermuteSlice& slice : slices) {
    if (source == nullptr) break;
    const Literal& from = array_of(source->element(0), slice);
    Literal& to = results[static_cast<std::size_t>(slice.array)];
    Strided read{0, row_major(from.shape().dims())}, write{0, row_major(to.shape().dims())};
    read.offset = position(starts_of(source->element(2), slice, from.shape().dims()), read.strides);
    write.offset = position(starts_of(mine.element(3), slice, to.shape().dims()), write.strides);
    copy_box(to.mutable_bytes().data(), write, from.bytes().data(), read, slice.sizes, byte_width(to.dtype()));
  }
  if (!output.is_tuple()) return Value(std::move(results[0]));
  std::vector<Value> elements(results.begin(), results.end());
  return Value::tuple(std::move(elements));
}

}  // namespace

// With a dimension: piece j of member r goes to member j, at place r. Without: operand j does.
Expected<Value> all_to_all(const Call& call) {
  const Group group = TRY(group_of(call));
  const std::vector<Value> given = TRY(exchange(call, group, operands_of(call)));
  const std::int64_t rank = rank_in(call, group), size = static_cast<std::int64_t>(group.size());
  if (!call.instruction.attr<hlo::CollectiveAttr>().has_dimension) {
    if (call.num_operands() != size) return wrong(call, "has ", call.num_operands(), " pieces for ", size, " members");
    std::vector<Value> pieces;
    for (const Value& member : given) pieces.push_back(member.element(rank));
    return call.shape.is_tuple() ? Value::tuple(std::move(pieces)) : pieces[0];
  }
  const std::int64_t dimension = call.instruction.dimension(0);
  std::vector<Literal> results;
  for (std::int64_t i = 0; i < call.num_operands(); ++i) {
    if (call.dims(i)[static_cast<std::size_t>(dimension)] % size != 0)
      return wrong(call, "cannot split dimension ", dimension, " among ", size, " members");
    const std::vector<Literal> arrays = agreed(given, i);
    std::vector<Literal> pieces;
    for (const Literal& array : arrays) pieces.push_back(piece_of(array, dimension, rank, size));
    results.push_back(joined(pieces, dimension, Shape::array(arrays[0].dtype(), arrays[0].shape().dims())));
  }
  return tuple_unless_one(std::move(results));
}

// Rows [input_offsets[j], + send_sizes[j]) of a member go to member j, to output_offsets[j] there. With more offsets than members, in
// one dimension or two, each member has its share of them in row-major order.
Expected<Value> ragged_all_to_all(const Call& call) {
  const Group group = TRY(group_of(call));
  const std::vector<Value> given = TRY(exchange(call, group, operands_of(call)));
  const std::int64_t per_member = call.array(2).num_elements() / static_cast<std::int64_t>(group.size());
  const std::int64_t first = rank_in(call, group) * per_member;
  Literal result = call.array(1);
  for (const Value& member : given)
    for (std::int64_t k = 0; k < per_member; ++k) TRY(receive_rows(call, member, first + k, result));
  return Value(std::move(result));
}

// The value of the source that names this device as its target, or zeros.
Expected<Value> collective_permute(const Call& call) {
  const auto& attr = call.instruction.attr<hlo::PermuteAttr>();
  const bool slices = hlo::moves_slices(call.instruction);
  if (!attr.slice_sizes.empty() && !slices)
    return fail(Code::Unimplemented, call.instruction.name(), ": no meaning is known of slice_sizes at a permute of whole arrays");
  const Group all = TRY(everyone(call));  // device of each id
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  for (const auto& [source, target] : attr.pairs) {
    const auto count = static_cast<std::int64_t>(all.size());
    if (source < 0 || target < 0 || source >= count || target >= count)
      return wrong(call, "names the pair {", source, ",", target, "} among ", count);
    pairs.emplace_back(all[static_cast<std::size_t>(source)], all[static_cast<std::size_t>(target)]);
  }
  const Group group = connected(pairs, call.machine.place().device);
  const Value mine = operands_of(call);
  const std::vector<Value> given = TRY(exchange(call, group, mine));
  for (const auto& [source, target] : pairs) {
    if (target != call.machine.place().device) continue;
    const std::size_t rank = static_cast<std::size_t>(std::find(group.begin(), group.end(), source) - group.begin());
    if (slices) return with_slices(call, mine, &given[rank]);
    return call.num_operands() == 1 ? given[rank].element(0) : given[rank];
  }
  if (slices) return with_slices(call, mine, nullptr);
  std::vector<Literal> zeros;
  for (std::int64_t i = 0; i < call.num_operands(); ++i) zeros.emplace_back(call.array(i).shape());
  return tuple_unless_one(std::move(zeros));
}

}  // namespace hloom::interp
