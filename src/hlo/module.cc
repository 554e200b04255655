#include "hlo/module.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"

namespace hloom::hlo {

// --- Computation ---------------------------------------------------------------------------------------------------

Instruction* Computation::add(Opcode opcode, Shape shape, std::vector<Instruction*> operands, std::string_view name) {
  std::unique_ptr<Instruction> made(new Instruction);
  Instruction* i = made.get();
  i->opcode_ = opcode;
  i->id_ = module_->next_id();
  module_->instruction_names_.take(i->name_, name.empty() ? hlo::name(opcode) : name);
  i->shape_ = std::move(shape);
  i->parent_ = this;
  i->attributes_ = attributes_for(opcode);
  i->operands_ = std::move(operands);
  for (Instruction* operand : i->operands_) {
    HLOOM_CHECK(operand->parent_ == this);
    operand->users_.push_back(i);
  }
  instructions_.push_back(std::move(made));
  if (root_ == nullptr) root_ = i;
  return i;
}

Instruction* Computation::add_parameter(std::int64_t number, Shape shape, std::string_view name) {
  Instruction* i = add(Opcode::Parameter, std::move(shape), {}, name);
  i->mutable_attr<ParameterAttr>().number = number;
  if (static_cast<std::size_t>(number) >= parameters_.size()) parameters_.resize(static_cast<std::size_t>(number) + 1);
  parameters_[static_cast<std::size_t>(number)] = i;
  return i;
}

Instruction* Computation::add_constant(Literal literal, std::string_view name) {
  Instruction* i = add(Opcode::Constant, literal.shape(), {}, name);
  i->mutable_attr<ConstantAttr>().literal = std::move(literal);
  return i;
}

Instruction* Computation::add_tuple(std::vector<Instruction*> elements, std::string_view name) {
  std::vector<Shape> shapes;
  for (const Instruction* e : elements) shapes.push_back(e->shape());
  return add(Opcode::Tuple, Shape::tuple(std::move(shapes)), std::move(elements), name);
}

Instruction* Computation::add_get_tuple_element(Instruction* tuple, std::int64_t index, std::string_view name) {
  Instruction* i = add(Opcode::GetTupleElement, tuple->shape().element(index), {tuple}, name);
  i->mutable_attr<TupleElementAttr>().index = index;
  return i;
}

Instruction* Computation::add_transpose(Instruction* operand, Dims permutation, std::string_view name) {
  Dims dims;
  for (const std::int64_t d : permutation) dims.push_back(operand->shape().dim(d));
  Instruction* i = add(Opcode::Transpose, Shape::array(operand->shape().dtype(), std::move(dims)), {operand}, name);
  i->set_dimensions(std::move(permutation));
  return i;
}

Instruction* Computation::add_reshape(Instruction* operand, Dims dims, std::string_view name) {
  return add(Opcode::Reshape, Shape::array(operand->shape().dtype(), std::move(dims)), {operand}, name);
}

Instruction* Computation::add_broadcast(Instruction* operand, Dims result_dims, Dims dimensions,
                                        std::string_view name) {
  Instruction* i =
      add(Opcode::Broadcast, Shape::array(operand->shape().dtype(), std::move(result_dims)), {operand}, name);
  i->set_dimensions(std::move(dimensions));
  return i;
}

Instruction* Computation::add_clone(const Instruction& like, std::vector<Instruction*> operands,
                                    std::string_view name) {
  const std::string_view wanted = name.empty() ? std::string_view(like.name()) : name;
  Instruction* i = like.opcode() == Opcode::Parameter ? add_parameter(like.parameter_number(), like.shape(), wanted)
                                                      : add(like.opcode(), like.shape(), std::move(operands), wanted);
  i->attributes_ = like.attributes_;
  i->dimensions_ = like.dimensions_;
  i->set_called(like.called());
  i->set_place(like.line(), like.column());
  if (like.annotations_) i->annotations_ = std::make_unique<Annotations>(*like.annotations_);
  return i;
}

void Computation::replace_uses(Instruction* old, Instruction* with) {
  HLOOM_CHECK(old->parent_ == this && with->parent_ == this);
  if (old == with) return;
  std::vector<Instruction*> kept;
  for (Instruction* user : old->users_) {
    if (user == with) {
      kept.push_back(user);
      continue;
    }
    *std::ranges::find(user->operands_, old) = with;
    with->users_.push_back(user);
  }
  old->users_ = std::move(kept);
  if (root_ == old) root_ = with;
}

void Computation::unlink(Instruction& i) {
  HLOOM_CHECK(i.users_.empty() && root_ != &i);
  for (Instruction* operand : i.operands_) {
    auto& users = operand->users_;
    const auto found = std::find(users.rbegin(), users.rend(), &i);
    *found = users.back();
    users.pop_back();
  }
  i.drop_control_edges();
  module_->instruction_names_.taken.erase(i.name_);
  if (i.opcode_ == Opcode::Parameter) {
    // Later numbers move down, so that they stay without gaps.
    parameters_.erase(parameters_.begin() + static_cast<std::ptrdiff_t>(i.parameter_number()));
    for (std::size_t n = 0; n < parameters_.size(); ++n)
      parameters_[n]->mutable_attr<ParameterAttr>().number = static_cast<std::int64_t>(n);
  }
}

void Computation::remove(Instruction* i) {
  remove_all([&](const Instruction& candidate) { return &candidate == i; });
}

std::vector<Instruction*> Computation::post_order() const {
  std::vector<Instruction*> order;
  order.reserve(instructions_.size());
  enum class State : char { New, Open, Done };
  std::unordered_map<const Instruction*, State> state;
  state.reserve(instructions_.size());
  std::vector<Instruction*> stack;
  for (const auto& start : instructions_) {
    stack.push_back(start.get());
    while (!stack.empty()) {
      Instruction* top = stack.back();
      State& s = state[top];
      if (s != State::New) {
        stack.pop_back();
        if (s == State::Open) order.push_back(top);
        s = State::Done;
        continue;
      }
      s = State::Open;
      const auto push = [&](const std::vector<Instruction*>& before) {
        for (auto it = before.rbegin(); it != before.rend(); ++it)
          if (state[*it] == State::New) stack.push_back(*it);
      };
      push(top->control_predecessors());
      push(top->operands_);
    }
  }
  return order;
}

void Computation::set_order(const std::vector<Instruction*>& order) {
  HLOOM_CHECK(order.size() == instructions_.size());
  std::unordered_map<const Instruction*, std::unique_ptr<Instruction>> owners;
  for (auto& i : instructions_) {
    const Instruction* key = i.get();
    owners.emplace(key, std::move(i));
  }
  for (std::size_t n = 0; n < order.size(); ++n) {
    instructions_[n] = std::move(owners.at(order[n]));
    HLOOM_CHECK(instructions_[n] != nullptr);
  }
}

void Computation::sort() { set_order(post_order()); }

// --- Module --------------------------------------------------------------------------------------------------------

Module::~Module() = default;

// The base of `name` without a numeric suffix ".N".
static std::string_view without_suffix(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0 || dot + 1 == name.size()) return name;
  const std::string_view suffix = name.substr(dot + 1);
  return std::ranges::all_of(suffix, [](char c) { return c >= '0' && c <= '9'; }) ? name.substr(0, dot) : name;
}

void Module::Names::take(std::string& owner, std::string_view name) {
  const std::string wanted(name);  // `name` may be a view of the owner
  owner = wanted;
  if (taken.insert(owner)) return;
  const std::string base(without_suffix(wanted));
  std::int64_t& last = last_suffix[base];
  do owner = base + "." + std::to_string(++last);
  while (!taken.insert(owner));
}

Computation* Module::add_computation(std::string_view name) {
  std::unique_ptr<Computation> made(new Computation);
  made->module_ = this;
  computation_names_.take(made->name_, name);
  computations_.push_back(std::move(made));
  return computations_.back().get();
}

void Module::remove(Computation* computation) {
  for (const auto& i : computation->instructions_) instruction_names_.taken.erase(i->name_);
  computation_names_.taken.erase(computation->name_);
  std::erase_if(computations_, [&](const auto& owner) { return owner.get() == computation; });
}

void Module::rename(Instruction& i, std::string_view name) {
  instruction_names_.taken.erase(i.name_);
  instruction_names_.take(i.name_, name);
}

namespace {

// Callees before callers, from `from`. Call graphs are acyclic; depth is that of the nesting.
void visit_callees(Computation* from, std::unordered_set<const Computation*>& seen, std::vector<Computation*>& order) {
  if (!seen.insert(from).second) return;
  for (const Instruction& i : from->instructions())
    for (Computation* callee : i.called()) visit_callees(callee, seen, order);
  order.push_back(from);
}

}  // namespace

std::int64_t Module::remove_unreachable() {
  std::unordered_set<const Computation*> seen;
  std::vector<Computation*> order;
  visit_callees(entry_, seen, order);
  std::vector<Computation*> dead;
  for (const auto& c : computations_)
    if (!seen.contains(c.get())) dead.push_back(c.get());
  for (Computation* c : dead) remove(c);
  return static_cast<std::int64_t>(dead.size());
}

void Module::sort() {
  std::unordered_set<const Computation*> seen;
  std::vector<Computation*> order;
  for (const auto& c : computations_)
    if (c.get() != entry_) visit_callees(c.get(), seen, order);
  if (entry_ != nullptr) visit_callees(entry_, seen, order);
  std::unordered_map<const Computation*, std::unique_ptr<Computation>> owners;
  for (auto& c : computations_) {
    const Computation* key = c.get();
    owners.emplace(key, std::move(c));
  }
  computations_.clear();
  for (Computation* c : order) computations_.push_back(std::move(owners.at(c)));
}

namespace {

// Fills `to` with copies of the instructions of `from`, calling what `callee` gives for each called computation.
template <typename Callee>
void copy_into(const Computation& from, Computation& to, const Callee& callee) {
  std::unordered_map<const Instruction*, Instruction*> copies;
  for (const Instruction* i : from.post_order()) {
    std::vector<Instruction*> operands;
    for (const Instruction* operand : i->operands()) operands.push_back(copies.at(operand));
    Instruction* copy = to.add_clone(*i, std::move(operands));
    std::vector<Computation*> called;
    for (Computation* c : i->called()) called.push_back(callee(c));
    copy->set_called(std::move(called));
    for (Instruction* before : i->control_predecessors()) copy->add_control_predecessor(copies.at(before));
    copies.emplace(i, copy);
  }
  if (from.root() != nullptr) to.set_root(copies.at(from.root()));
  to.set_execution_thread(from.execution_thread());
  std::vector<Instruction*> order;
  for (const Instruction& i : from.instructions()) order.push_back(copies.at(&i));
  to.set_order(order);
}

}  // namespace

Computation* Module::clone_computation(const Computation& from, std::string_view name) {
  Computation* to = add_computation(name);
  copy_into(from, *to, [](Computation* c) { return c; });
  return to;
}

std::unique_ptr<Module> Module::clone() const {
  auto copy = std::make_unique<Module>(name_);
  copy->config_ = config_;
  std::unordered_map<const Computation*, Computation*> copies;
  std::unordered_set<const Computation*> seen;
  std::vector<Computation*> order;
  for (const auto& c : computations_) visit_callees(c.get(), seen, order);
  for (const auto& c : computations_) copies.emplace(c.get(), copy->add_computation(c->name()));
  for (const Computation* c : order)
    copy_into(*c, *copies.at(c), [&](Computation* callee) { return copies.at(callee); });
  if (entry_ != nullptr) copy->entry_ = copies.at(entry_);
  return copy;
}

std::unordered_map<const Computation*, std::vector<Instruction*>> callers(const Module& module) {
  std::unordered_map<const Computation*, std::vector<Instruction*>> result;
  for (Computation& c : module.computations())
    for (Instruction& i : c.instructions())
      for (const Computation* callee : i.called()) result[callee].push_back(&i);
  return result;
}

}  // namespace hloom::hlo
