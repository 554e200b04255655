#include "text/attribute_rules.h"

#include <algorithm>
#include <array>

#include "text/annotations.h"
#include "text/rules_of_graph.h"
#include "text/rules_of_values.h"

namespace hloom::text {
namespace {

using namespace hlo;
using namespace rules;
using O = Opcode;

struct Entry {
  AttributeRule rule;
  std::vector<Opcode> opcodes;
};

// All attributes but those that any instruction accepts. For each opcode in the order in which they are written;
// computations come last.
std::vector<Entry> data_entries() {
  const std::vector<O> dots = {O::Dot, O::RaggedDot, O::ScaledDot};
  return {
      {parameter_replication(), {O::Parameter}},
      {number<&IotaAttr::dimension, kRequired>("iota_dimension"), {O::Iota}},
      {number<&TupleElementAttr::index, kRequired>("index"), {O::GetTupleElement}},
      {keyword<&CompareAttr::direction, kRequired>("direction"), {O::Compare}},
      {comparison_type(), {O::Compare}},
      {comparison_order(), {O::Compare}},
      {slice(), {O::Slice}},
      {ints<&DynamicSliceAttr::sizes, kRequired>("dynamic_slice_sizes"), {O::DynamicSlice}},
      {padding(), {O::Pad}},
      {number<&ReshapeAttr::inferred_dimension, false, -1>("inferred_dimension"), {O::Reshape}},
      {dimensions<kRequired>(),
       {O::Broadcast, O::Concatenate, O::Reverse, O::Reduce, O::Transpose, O::Sort, O::Scan, O::GetDimensionSize,
        O::SetDimensionSize}},
      {dimensions<false>(), {O::Map}},
      // gather, scatter
      {ints<&GatherAttr::offset_dims, kRequired>("offset_dims"), {O::Gather}},
      {ints<&GatherAttr::collapsed_slice_dims, kRequired>("collapsed_slice_dims"), {O::Gather}},
      {ints<&GatherAttr::start_index_map, kRequired>("start_index_map"), {O::Gather}},
      {ints<&GatherAttr::operand_batching_dims>("operand_batching_dims"), {O::Gather}},
      {ints<&GatherAttr::start_indices_batching_dims>("start_indices_batching_dims"), {O::Gather}},
      {number<&GatherAttr::index_vector_dim, kRequired>("index_vector_dim"), {O::Gather}},
      {ints<&GatherAttr::slice_sizes, kRequired>("slice_sizes"), {O::Gather}},
      {flag<&GatherAttr::indices_are_sorted>("indices_are_sorted"), {O::Gather}},
      {ints<&ScatterAttr::update_window_dims, kRequired>("update_window_dims"), {O::Scatter}},
      {ints<&ScatterAttr::inserted_window_dims, kRequired>("inserted_window_dims"), {O::Scatter}},
      {ints<&ScatterAttr::scatter_dims_to_operand_dims, kRequired>("scatter_dims_to_operand_dims"), {O::Scatter}},
      {ints<&ScatterAttr::input_batching_dims>("input_batching_dims"), {O::Scatter}},
      {ints<&ScatterAttr::scatter_indices_batching_dims>("scatter_indices_batching_dims"), {O::Scatter}},
      {number<&ScatterAttr::index_vector_dim, kRequired>("index_vector_dim"), {O::Scatter}},
      {flag<&ScatterAttr::indices_are_sorted>("indices_are_sorted"), {O::Scatter}},
      {flag<&ScatterAttr::unique_indices>("unique_indices"), {O::Scatter}},
      // contractions
      {ints<&DotAttr::lhs_batch>("lhs_batch_dims"), dots},
      {ints<&DotAttr::lhs_contracting>("lhs_contracting_dims"), dots},
      {ints<&DotAttr::rhs_batch>("rhs_batch_dims"), dots},
      {ints<&DotAttr::rhs_contracting>("rhs_contracting_dims"), dots},
      {ints<&DotAttr::lhs_ragged, kRequired>("lhs_ragged_dims"), {O::RaggedDot}},
      {ints<&DotAttr::rhs_group>("rhs_group_dims"), {O::RaggedDot}},
      {precision<&DotAttr::precision>(), dots},
      {dot_algorithm<&DotAttr::algorithm>(), dots},
      {window<&WindowAttr::window>(), {O::ReduceWindow, O::SelectAndScatter}},
      {window<&ConvolutionAttr::window>(), {O::Convolution}},
      {dim_labels(), {O::Convolution}},
      {number<&ConvolutionAttr::feature_groups, false, 1, 1>("feature_group_count"), {O::Convolution}},
      {number<&ConvolutionAttr::batch_groups, false, 1, 1>("batch_group_count"), {O::Convolution}},
      {convolution_kind(), {O::Convolution}},
      {precision<&ConvolutionAttr::precision>(), {O::Convolution}},
      {raw<&ConvolutionAttr::sparsity_config>("sparsity_config"), {O::Convolution}},
      {raw<&ConvolutionAttr::block_scaling_config>("block_scaling_config"), {O::Convolution}},
      {keyword<&FftAttr::type, kRequired>("fft_type"), {O::Fft}},
      {ints<&FftAttr::length, kRequired>("fft_length"), {O::Fft}},
      {flag<&TriangularSolveAttr::left_side>("left_side"), {O::TriangularSolve}},
      {flag<&TriangularSolveAttr::lower>("lower"), {O::TriangularSolve}},
      {flag<&TriangularSolveAttr::unit_diagonal>("unit_diagonal"), {O::TriangularSolve}},
      {keyword<&TriangularSolveAttr::transpose_a>("transpose_a"), {O::TriangularSolve}},
      {flag<&CholeskyAttr::lower>("lower"), {O::Cholesky}},
      {real<&BatchNormAttr::epsilon>("epsilon"), {O::BatchNormGrad, O::BatchNormInference, O::BatchNormTraining}},
      {number<&BatchNormAttr::feature_index, kRequired>("feature_index"),
       {O::BatchNormGrad, O::BatchNormInference, O::BatchNormTraining}},
      // reductions and orders
      {flag<&SortAttr::stable>("is_stable"), {O::Sort}},
      {number<&TopKAttr::k, kRequired>("k"), {O::Topk}},
      {flag<&TopKAttr::largest, true>("largest"), {O::Topk}},
      {flag<&TopKAttr::stable>("is_stable"), {O::Topk}},
      {number<&ScanAttr::num_carries, kRequired>("num_carries"), {O::Scan}},
      {flag<&ScanAttr::reverse>("is_reverse"), {O::Scan}},
      {associative(), {O::Scan}},
      {number<&ReducePrecisionAttr::exponent_bits, kRequired>("exponent_bits"), {O::ReducePrecision}},
      {number<&ReducePrecisionAttr::mantissa_bits, kRequired>("mantissa_bits"), {O::ReducePrecision}},
      // random numbers
      {keyword<&RngAttr::distribution, kRequired>("distribution"), {O::Rng}},
      {keyword<&RngBitsAttr::algorithm, kRequired>("algorithm"), {O::RngBitGenerator}},
      {number<&RngStateAttr::delta, kRequired>("delta"), {O::RngGetAndUpdateState}},
  };
}

std::vector<Entry> graph_entries() {
  const std::vector<O> gathers = {O::AllGather, O::AllGatherStart}, sums = {O::AllReduce, O::AllReduceStart};
  const std::vector<O> permutes = {O::CollectivePermute, O::CollectivePermuteStart};
  const std::vector<O> transfers = {O::Send, O::SendDone, O::Recv, O::RecvDone};
  const std::vector<O> chain = {O::AsyncStart, O::AsyncUpdate, O::AsyncDone};
  const std::vector<O> custom = {O::CustomCall};
  std::vector<O> collectives;
  for (int n = 0; n < kNumOpcodes; ++n)
    if (attributes_for(O(n)).get_if<CollectiveAttr>() != nullptr) collectives.push_back(O(n));
  return {
      {optional_number<&CollectiveAttr::channel_id, 0>("channel_id"), collectives},
      {replica_groups(), collectives},
      {flag<&CollectiveAttr::constrain_layout>("constrain_layout"),
       {O::AllGather, O::AllGatherStart, O::AllReduce, O::AllReduceStart, O::AllToAll, O::ReduceScatter,
        O::CollectiveReduce}},
      {dimensions<kRequired>(), gathers},
      {flag<&CollectiveAttr::use_global_device_ids>("use_global_device_ids"),
       {O::AllGather, O::AllGatherStart, O::AllReduce, O::AllReduceStart, O::ReduceScatter, O::CollectiveReduce}},
      {dimensions<kRequired>(), {O::ReduceScatter}},
      {all_to_all_dimensions(), {O::AllToAll}},
      {flag<&CollectiveAttr::has_dynamic_root>("has_dynamic_root"), {O::CollectiveBroadcast, O::CollectiveReduce}},
      {mode(), {O::AllReduce, O::AllReduceStart, O::ReduceScatter}},
      {optional_number<&PermuteAttr::channel_id, 0>("channel_id"), permutes},
      {source_target_pairs(), permutes},
      {permute_slice_sizes(), permutes},
      {optional_number<&TransferAttr::channel_id, 0>("channel_id"), transfers},
      {flag<&TransferAttr::is_host_transfer>("is_host_transfer"), transfers},
      {text_of<&FeedAttr::config>("infeed_config"), {O::Infeed}},
      {outfeed_shape(), {O::Outfeed}},
      {text_of<&FeedAttr::config>("outfeed_config"), {O::Outfeed}},
      {optional_number<&CopyStartAttr::cross_program_prefetch_index, 0>("cross_program_prefetch_index"),
       {O::CopyStart}},
      {domain(), {O::Domain}},
      // custom calls
      {optional_window(), custom},
      {optional_dim_labels(), custom},
      {number<&CustomCallAttr::feature_groups, false, 1, 1>("feature_group_count"), custom},
      {number<&CustomCallAttr::batch_groups, false, 1, 1>("batch_group_count"), custom},
      {precision<&CustomCallAttr::precision>(), custom},
      {dot_algorithm<&CustomCallAttr::algorithm>(), custom},
      {keyword<&CustomCallAttr::padding_type>("padding_type"), custom},
      {text_of<&CustomCallAttr::target, kRequired>("custom_call_target"), custom},
      {operand_layouts(), custom},
      {flag<&CustomCallAttr::has_side_effect>("custom_call_has_side_effect"), custom},
      {custom_call_literal(), custom},
      {aliasing<&CustomCallAttr::aliasing>(), custom},
      {keyword<&CustomCallAttr::schedule>("schedule"), custom},
      {keyword<&CustomCallAttr::api_version>("api_version"), custom},
      {callees<false>("called_computations"), custom},
      // calls
      {execution_thread(), chain},
      {aliasing<&AsyncAttr::aliasing>(), {O::AsyncStart}},
      {keyword<&FusionAttr::kind, kRequired>("kind"), {O::Fusion}},
      {aliasing<&FusionAttr::aliasing>(), {O::Fusion}},
      {callee<0>("calls"), {O::Fusion, O::AsyncStart}},
      {repeated_callee(), {O::AsyncUpdate, O::AsyncDone}},
      {callee<0>("to_apply"),
       {O::Call, O::Map, O::Reduce, O::ReduceWindow, O::Scatter, O::Sort, O::Scan, O::AllReduce, O::AllReduceStart,
        O::ReduceScatter, O::CollectiveReduce}},
      {flag<&CallAttr::is_composite>("is_composite"), {O::Call}},
      {callee<0>("condition"), {O::While}},
      {callee<1>("body"), {O::While}},
      {branch<0>("true_computation"), {O::Conditional}},
      {branch<1>("false_computation"), {O::Conditional}},
      {callees<kRequired>("branch_computations"), {O::Conditional}},
      {callee<0>("select"), {O::SelectAndScatter}},
      {callee<1>("scatter"), {O::SelectAndScatter}},
  };
}

struct Table {
  std::array<std::vector<AttributeRule>, kNumOpcodes> rules;
  std::array<std::size_t, kNumOpcodes> own{};
  std::array<std::uint64_t, kNumOpcodes> required{};
};

const Table& table() {
  static const Table* const made = [] {
    auto* t = new Table;
    for (const auto& entries : {data_entries(), graph_entries()})
      for (const Entry& e : entries)
        for (const Opcode opcode : e.opcodes) t->rules[static_cast<std::size_t>(opcode)].push_back(e.rule);
    for (std::size_t n = 0; n < t->rules.size(); ++n) {
      t->own[n] = t->rules[n].size();
      for (const AttributeRule& rule : common_rules())
        if (rule.name != "result_accuracy" || takes_result_accuracy(Opcode(n))) t->rules[n].push_back(rule);
      for (std::size_t r = 0; r < t->rules[n].size(); ++r)
        t->required[n] |= std::uint64_t{t->rules[n][r].required} << r;
    }
    return t;
  }();
  return *made;
}

}  // namespace

RuleList own_rules(Opcode opcode) {
  const auto n = static_cast<std::size_t>(opcode);
  return RuleList(table().rules[n]).first(table().own[n]);
}

RuleList rules_for(Opcode opcode) { return table().rules[static_cast<std::size_t>(opcode)]; }

std::uint64_t required_rules(Opcode opcode) { return table().required[static_cast<std::size_t>(opcode)]; }

bool is_required(const AttributeRule& rule, const Instruction& i) {
  if (!rule.required) return false;
  if (i.opcode() == Opcode::Broadcast) return i.operands().empty() || i.operand(0)->shape().rank() != 0;
  if (i.opcode() != Opcode::Conditional) return true;
  const bool pred = !i.operands().empty() && i.operand(0)->shape().dtype() == DType::Pred;
  const auto has = [&](std::size_t n) { return i.called().size() > n && i.called()[n] != nullptr; };
  if (rule.name == "true_computation") return (pred || !i.called().empty()) && !has(0);
  if (rule.name == "false_computation") return pred && !has(1);
  return !pred && i.called().empty();
}

}  // namespace hloom::text
