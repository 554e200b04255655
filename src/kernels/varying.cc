#include "kernels/varying.h"

#include <algorithm>

#include "base/check.h"

namespace hloom::kernels {
namespace {

class Analysis {
 public:
  explicit Analysis(const Kernel& kernel) : varying_(kernel.values.size()) {}

  // Verification comes here too, so values may be wrong.
  bool exists(Value v) const { return v >= 0 && static_cast<std::size_t>(v) < varying_.size(); }
  void mark(Value v) {
    if (exists(v)) varying_[static_cast<std::size_t>(v)] = true;
  }
  void walk(const Block& block) {
    for (const Statement& s : block) std::visit([&](const auto& x) { visit(x); }, s.of);
  }
  std::vector<bool> take() { return std::move(varying_); }

 private:
  bool is(Value v) const { return exists(v) && varying_[static_cast<std::size_t>(v)]; }
  bool any(const std::vector<Value>& values) const {
    return std::ranges::any_of(values, [&](Value v) { return is(v); });
  }
  bool any(const Index& index) const {
    return std::ranges::any_of(index.terms, [&](const Index::Term& t) { return is(t.value); });
  }

  void visit(const Line& line) {
    if (any(line.operands)) mark(line.result);
  }
  void visit(const MultiplyAdd& m) {
    if (is(m.a) || is(m.b) || is(m.c)) mark(m.result);
  }
  void visit(const Transpose& t) {
    for (const Value v : t.results) mark(v);
  }
  void visit(const Affine& affine) {
    if (any(affine.index)) mark(affine.result);
  }
  void visit(const Load& load) {
    if (any(load.index) || is(load.mask)) mark(load.result);
  }
  void visit(const Store&) {}
  void visit(const Prefetch&) {}
  void visit(const Loop& loop) {
    // A carry that varies makes others vary: again, until none does.
    for (bool more = true; more;) {
      for (const Carry& c : loop.carries)
        if (is(c.initial)) mark(c.inside);
      walk(loop.body);
      more = false;
      for (const Carry& c : loop.carries)
        if (is(c.next) && !is(c.inside)) mark(c.inside), more = true;
    }
    for (const Carry& c : loop.carries)
      if (is(c.inside)) mark(c.result);
  }
  void visit(const While&) { HLOOM_CHECK(!"a while in a loop by lanes"); }
  void visit(const If&) { HLOOM_CHECK(!"an if in a loop by lanes"); }
  void visit(const Call&) { HLOOM_CHECK(!"a call in a loop by lanes"); }

  std::vector<bool> varying_;
};

}  // namespace

std::vector<bool> varying_values(const Kernel& kernel, const Loop& loop) {
  Analysis analysis(kernel);
  analysis.mark(loop.variable);
  for (const Fold& fold : loop.folds) analysis.mark(fold.carry.inside);
  analysis.walk(loop.body);
  return analysis.take();
}

}  // namespace hloom::kernels
