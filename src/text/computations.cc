// Computations: their order, names, bodies, parameters and roots.
#include <algorithm>

#include "text/module_parser.h"

namespace hloom::text {

using hlo::Computation;

namespace {

// Whether an instruction begins at `p`: [ROOT] name `=`, or with a `%` before the name.
bool begins_instruction(const char* p, const char* end) {
  const auto spaces = [&] {
    while (p < end && (*p == ' ' || *p == '\t')) ++p;
  };
  const auto name = [&] {
    const char* start = p;
    while (p < end && chars::is(*p, chars::kName)) ++p;
    return std::string_view(start, static_cast<std::size_t>(p - start));
  };
  bool percent = p < end && *p == '%';
  if (percent) ++p;
  if (!percent && name() == "ROOT") {
    spaces();
    percent = p < end && *p == '%';
    if (percent) ++p;
    name();
  } else if (percent) {
    name();
  }
  const char* after = p;
  spaces();
  return p < end && *p == '=' && (percent || p > after);
}

// The first place after `p` where a line begins (spaces aside) for which `wanted` holds; `end` if there is none.
template <typename Wanted>
const char* find_line(const char* p, const char* end, const Wanted& wanted) {
  while ((p = std::find(p, end, '\n')) < end) {
    while (p < end && chars::is(*p, chars::kSpace)) ++p;
    if (p < end && wanted(p)) return p;
  }
  return end;
}

}  // namespace

// After an error: goes on with the next line that begins an instruction or closes the body.
void ModuleParser::recover_instruction() {
  const char* end = c_.end();
  c_.resume(find_line(c_.failed_at(), end, [&](const char* p) { return *p == '}' || begins_instruction(p, end); }));
}

// After an error outside of instructions: goes on after the next line that begins with a brace.
void ModuleParser::recover_computation() {
  const char* brace = find_line(c_.failed_at(), c_.end(), [](const char* p) { return *p == '}'; });
  c_.resume(brace < c_.end() ? brace + 1 : brace);
}

void ModuleParser::read_computations() {
  body_at_ = c_.at();
  while (c_.ok() && !c_.at_end() && !errors_.full()) read_computation();
  if (c_.ok() && module_->num_computations() == 0) c_.fail("H201", c_.at(), "the module has no computations");
}

// Leaves the cursor good, unless there are errors enough.
void ModuleParser::read_computation() {
  const char* start = c_.at();
  const bool entry = c_.eat_word("ENTRY");
  const std::string_view name = c_.take_name("the name of a computation");
  const auto found = computations_.find(name);
  if (c_.ok() && found != computations_.end()) {
    if (found->second.at == name.data() && found->second.end != nullptr) {  // has been read ahead
      c_.set_position(found->second.end);
      last_computation_ = found->second.computation;
      return;
    }
    c_.fail("H210", name.data(), words("the computation '", name, "' is defined twice"),
            {{found->second.at, "the first definition"}});
  } else if (c_.ok()) {
    if (entry && entry_at_ != nullptr) {
      c_.fail("H202", start, "a second ENTRY", {{entry_at_, "the first ENTRY"}});
    } else {
      if (entry) entry_at_ = start;
      read_definition(name, entry);
    }
  }
  if (!c_.ok() && !errors_.full()) recover_computation();
}

void ModuleParser::read_definition(std::string_view name, bool entry) {
  const Cursor::Depth depth(c_);
  Computation* computation = module_->add_computation(name);
  if (entry) module_->set_entry(computation);
  Known& known = computations_.emplace(name, Known{computation, name.data(), nullptr, 1}).first->second;
  const std::size_t errors = errors_.size();
  const char* result_at = nullptr;
  const std::optional<Shape> result = read_signature(result_at);
  c_.expect('{');
  Scope scope(*computation, part_);
  read_body(scope);
  if (c_.ok() && errors_.size() == errors) {
    finish_computation(scope, name.data());
    if (c_.ok() && result && !compatible(*result, computation->root()->shape()))
      c_.fail("H215", result_at,
              words("the signature's result ", to_string(*result, false), " is not the root's shape ",
                    to_string(computation->root()->shape(), false)));
  }
  if (c_.eat(',')) {
    const char* at = c_.at();
    if (c_.take_key("'execution_thread='") != "execution_thread")
      c_.fail("H503", at, "a computation accepts execution_thread alone");
    computation->set_execution_thread(c_.string("the name of a thread"));
  }
  known.call_depth = scope.call_depth;
  if (!c_.ok() && !errors_.full()) recover_computation();
  known.end = c_.at();
  last_computation_ = computation;
}

// ( name: shape, … ) -> shape. The parameters repeat what the body says.
std::optional<Shape> ModuleParser::read_signature(const char*& result_at) {
  if (c_.peek() != '(') return std::nullopt;
  const ShapeRules rules{.fill_layouts = true, .empty_layout = false};
  c_.list('(', ')', [&] {
    c_.take_name("the name of a parameter");
    c_.eat(':');
    read_shape(c_, rules);
  });
  if (!c_.eat("->")) c_.fail_expected("'->'");
  result_at = c_.at();
  return read_shape(c_, rules);
}

// The instructions and the closing brace.
void ModuleParser::read_body(Scope& scope) {
  scopes_.push_back(&scope);
  bool recovered = false;
  while (c_.ok() && !c_.eat('}')) {
    if (c_.at_end()) {
      if (recovered)
        c_.give_up();
      else
        c_.fail_expected("'}'");
      break;
    }
    read_instruction(scope);
    if (c_.ok() || errors_.full()) continue;
    recover_instruction();
    recovered = true;
  }
  scopes_.pop_back();
}

void ModuleParser::finish_computation(Scope& scope, const char* at) {
  if (scope.last == nullptr)
    return c_.fail("H213", at, words("the computation '", scope.computation.name(), "' has no instructions"));
  scope.computation.set_root(scope.root != nullptr ? scope.root : scope.last);
  check_parameters(scope, at);
}

void ModuleParser::check_parameters(Scope& scope, const char* at) {
  const auto missing = std::ranges::find(scope.parameter_at, nullptr);
  if (missing != scope.parameter_at.end())
    c_.fail("H214", at,
            words("parameter ", missing - scope.parameter_at.begin(), " of '", scope.computation.name(),
                  "' is missing: the numbers go from 0 to ", scope.parameter_at.size() - 1));
}

Computation* ModuleParser::read_callee() {
  const char* at = c_.at();
  if (c_.peek() == '{') return read_inline_body();
  const std::string_view name = c_.take_name("a computation");
  if (!c_.ok()) return nullptr;
  const Known* known = find_computation(name);
  if (known == nullptr || !c_.ok()) return nullptr;
  if (known->end == nullptr) {
    c_.fail("H209", at, words("the computation '", name, "' would call itself"));
    return nullptr;
  }
  count_call(known->call_depth, at);
  return known->computation;
}

ModuleParser::Known* ModuleParser::find_computation(std::string_view name) {
  const auto known = computations_.find(name);
  if (known != computations_.end()) return &known->second;
  if (!outline_ && body_at_ != nullptr)
    outline_.emplace(std::string_view(body_at_, static_cast<std::size_t>(c_.end() - body_at_)),
                     errors_.places(body_at_));
  if (const Outline::Entry* ahead = outline_ ? outline_->find(name) : nullptr) {
    read_ahead(*ahead);
    const auto read = computations_.find(name);
    if (read != computations_.end()) return &read->second;
    c_.give_up();
    return nullptr;
  }
  std::vector<std::string_view> names;
  for (const auto& [other, value] : computations_) names.push_back(other);
  c_.fail("H209", name.data(), words("there is no computation '", name, "'", did_you_mean(name, names)));
  return nullptr;
}

// Reads a computation that stands further on, and comes back.
void ModuleParser::read_ahead(const Outline::Entry& entry) {
  out_of_order_ = true;
  const Cursor::Depth depth(c_);
  if (!c_.ok()) return;
  const char* const back = c_.position();
  const PlaceFinder places = places_;
  c_.set_position(entry.at);
  places_ = entry.places;
  Computation* const last = last_computation_;
  read_computation();
  last_computation_ = last;
  places_ = places;
  if (errors_.full()) return c_.give_up();
  c_.resume(back);
}

Computation* ModuleParser::read_inline_body() {
  const Cursor::Depth depth(c_);
  out_of_order_ = true;
  const char* at = c_.at();
  const std::size_t errors = errors_.size();
  Computation* computation = module_->add_computation("_");
  Scope scope(*computation, part_);
  c_.expect('{');
  read_body(scope);
  if (c_.ok() && errors_.size() == errors) finish_computation(scope, at);
  if (c_.ok() && errors_.size() != errors) c_.give_up();
  count_call(scope.call_depth, at);
  return c_.ok() ? computation : nullptr;
}

// Call chains are as deep as other nesting may be: who walks them may do so recursively.
void ModuleParser::count_call(int depth, const char* at) {
  Scope& scope = *scopes_.back();
  scope.call_depth = std::max(scope.call_depth, depth + 1);
  if (scope.call_depth > c_.options().max_depth)
    c_.fail("H110", at, words("calls are nested deeper than ", c_.options().max_depth));
}

}  // namespace hloom::text
