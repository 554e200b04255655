#include "hlo/sort_form.h"

namespace hloom::hlo {

std::optional<SortForm> sliced_sort(const Instruction& slice) {
  if (slice.opcode() != Opcode::Slice) return std::nullopt;
  const Instruction* from = slice.operand(0);
  const bool is_one = from->opcode() == Opcode::Sort;
  if (!is_one && (from->opcode() != Opcode::GetTupleElement || from->operand(0)->opcode() != Opcode::Sort)) return std::nullopt;
  const Instruction* sort = is_one ? from : from->operand(0);
  SortForm form{sort, {is_one ? 0 : from->tuple_index()}, sort->dimension(0), 0, 0};
  const auto& a = slice.attr<SliceAttr>();
  for (std::int64_t d = 0; d < slice.shape().rank(); ++d) {
    const auto at = static_cast<std::size_t>(d);
    const std::int64_t n = from->shape().dim(d), kept = slice.shape().dim(d);
    if (a.strides[at] != 1 && kept > 1) return std::nullopt;
    if (d != form.dimension && kept != n) return std::nullopt;
    if (d != form.dimension) continue;
    form.first = a.starts[at];
    form.kept = kept;
    if (kept == 0 || (form.first != 0 && form.first + kept != n)) return std::nullopt;
  }
  return form;
}

std::optional<SortForm> sort_form(const Instruction& root) {
  if (root.opcode() == Opcode::Topk) {
    const std::int64_t last = root.operand(0)->shape().rank() - 1;
    return SortForm{&root, {0, -1}, last, 0, root.attr<TopKAttr>().k};
  }
  if (root.opcode() == Opcode::Sort) {
    SortForm form{&root, {}, root.dimension(0), 0, root.operand(0)->shape().dim(root.dimension(0))};
    for (std::int64_t k = 0; k < root.num_operands(); ++k) form.results.push_back(k);
    return form;
  }
  if (root.opcode() != Opcode::Tuple) return sliced_sort(root);
  std::optional<SortForm> all;
  for (const Instruction* part : root.operands()) {
    const auto form = sliced_sort(*part);
    if (!form) return std::nullopt;
    if (!all) {
      all = form;
    } else if (form->sort == all->sort && form->first == all->first && form->kept == all->kept) {
      all->results.push_back(form->results[0]);
    } else {
      return std::nullopt;
    }
  }
  return all;
}

}  // namespace hloom::hlo
