#include "text/module_parser.h"

#include "hlo/infer_shape.h"
#include "hlo/verify.h"

namespace hloom::text {

using hlo::Computation;

std::unique_ptr<hlo::Module> ModuleParser::parse() {
  module_ = std::make_unique<hlo::Module>("module");
  read_module();
  if (errors_.empty() && c_.ok()) finish_module();
  if (!errors_.empty()) return nullptr;
  HLOOM_CHECK(c_.ok());  // no failure without a word
  return std::move(module_);
}

namespace {

// Whether computations begin here without a header: ENTRY, `name {`, `name (…) ->`.
bool at_computation(Cursor c) {
  if (c.eat_word("ENTRY")) return true;
  c.eat('%');
  const std::string_view word = c.peek_word();
  c.skip(word.empty() ? std::string_view(c.position(), 0) : word);
  if (c.peek() == '{') return !word.empty();
  if (c.peek() != '(' || word.empty()) return false;
  const char* end = group_end(c.position(), c.end());
  if (end == nullptr) return false;
  c.set_position(end);
  return c.looking_at("->");
}

}  // namespace

void ModuleParser::read_module() {
  if (c_.peek_word() == "HloModule") {
    read_header();
    if (c_.ok()) read_computations();
    return;
  }
  if (c_.at_end()) return c_.fail("H201", c_.at(), "the text holds no module");
  if (!at_computation(c_)) return read_single_instruction();
  read_computations();
  Computation* entry = module_->entry() != nullptr ? module_->entry() : last_computation_;
  if (entry != nullptr) module_->set_name("module_" + entry->name());
}

// An instruction alone: the entry of a module of its own, whose parameters are the operands.
void ModuleParser::read_single_instruction() {
  Computation* computation = module_->add_computation("entry");
  last_computation_ = computation;
  Scope scope(*computation, part_);
  scope.free_operands = true;
  scopes_.push_back(&scope);
  Cursor ahead = c_;
  ahead.eat_word("ROOT");
  ahead.eat('%');
  const std::string_view word = ahead.peek_word();
  ahead.skip(word.empty() ? std::string_view(ahead.position(), 0) : word);
  if (ahead.peek() == '=') {
    read_instruction(scope);
  } else {
    c_.eat_word("ROOT");
    Operation op;
    read_operation(scope, op);
    if (op.made != nullptr) {
      read_attributes(op);
      complete(op);
    }
    scope.last = op.made;
  }
  scopes_.pop_back();
  if (!c_.ok()) return;
  if (!c_.at_end())
    return c_.fail("H203", c_.at(),
                   words("unexpected ", c_.found(),
                         " after a single instruction; a module begins with "
                         "'HloModule name', a computation with its name and '{'"));
  finish_computation(scope, c_.at());
  module_->set_name("module_" + computation->name());
  module_->config().is_scheduled = true;
}

void ModuleParser::finish_module() {
  if (module_->entry() == nullptr) module_->set_entry(last_computation_);
  if (out_of_order_) module_->sort();
  if (c_.options().replica_count > 0) module_->config().replica_count = c_.options().replica_count;
  if (c_.options().num_partitions > 0) module_->config().num_partitions = c_.options().num_partitions;
  check_entry_layout();
  check_places();
  if (errors_.empty() && c_.options().verify) verify();
}

namespace {

// The parser's number for a rule of the verifier: declared and inferred shapes that differ, signatures of called
// computations. The others have numbers of their own.
std::string_view code_of(const hlo::Diagnostic& d) {
  if (d.code == "H704") return "H612";
  if (d.code != "H701" || d.instruction == nullptr) return d.code;
  return hlo::infer_shape(*d.instruction) ? "H602" : "H611";
}

}  // namespace

void ModuleParser::verify() {
  for (const hlo::Diagnostic& d : hlo::verify(*module_)) {
    Place place = errors_.place(part_.data());
    const hlo::Instruction* at = d.instruction;
    if (at == nullptr && d.computation != nullptr) at = d.computation->root();
    if (at != nullptr && at->line() != 0) place = {at->line(), at->column()};
    errors_.add(code_of(d), place, d.message);
  }
}

}  // namespace hloom::text
