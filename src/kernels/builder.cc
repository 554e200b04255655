#include "kernels/builder.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <set>

#include "base/check.h"

namespace hloom::kernels {
namespace {

void append_key(std::string& key, std::int64_t v) {
  key += std::to_string(v);
  key += ',';
}

void append_key(std::string& key, const Index& index) {
  append_key(key, index.offset);
  for (const Index::Term& t : index.terms) {
    append_key(key, t.value);
    append_key(key, t.coefficient);
  }
  key += ';';
}

}  // namespace

std::vector<std::int64_t> strides_of(const Shape& shape) {
  std::vector<std::int64_t> strides(shape.dims().size());
  std::int64_t stride = 1;
  for (const std::int64_t d : shape.layout().minor_to_major) {
    strides[static_cast<std::size_t>(d)] = stride;
    stride *= shape.dim(d);
  }
  return strides;
}

// --- Values --------------------------------------------------------------------------------------------------------

Value Builder::add_value(DType type, std::size_t depth, std::string name) {
  const Value v = kernel_.add_value(type, std::move(name));
  depths_.push_back(depth);
  follows_.emplace_back();
  ranges_.emplace_back();
  return v;
}

Value Builder::define(DType type, std::string name) { return add_value(type, scopes_.size() - 1, std::move(name)); }

std::size_t Builder::depth_of(const std::vector<Value>& values) const {
  std::size_t deepest = 0;
  for (std::size_t s = scopes_.size(); s-- > 0;)
    if (scopes_[s].barrier) {
      deepest = s;
      break;
    }
  for (const Value v : values)
    if (v != kNoValue) deepest = std::max(deepest, depth(v));
  return deepest;
}

std::vector<Value> Builder::followed_by(const std::vector<Value>& values) const {
  std::set<Value> all;
  for (const Value v : values) {
    if (v == kNoValue) continue;
    const auto& own = follows_[static_cast<std::size_t>(v)];
    all.insert(own.begin(), own.end());
  }
  return {all.begin(), all.end()};
}

Value Builder::find(const std::string& key) const {
  for (std::size_t s = scopes_.size(); s-- > 0;) {
    const auto found = scopes_[s].known.find(key);
    if (found != scopes_[s].known.end()) return found->second;
  }
  return kNoValue;
}

template <typename S>
Value Builder::emit(std::string key, DType type, const std::vector<Value>& operands, S statement) {
  if (const Value known = find(key); known != kNoValue) return known;
  const std::size_t at = depth_of(operands);
  statement.result = add_value(type, at);
  const Value result = statement.result;
  if (findings) follows_[static_cast<std::size_t>(result)] = followed_by(operands);
  scopes_[at].block->push_back(Statement{std::move(statement)});
  scopes_[at].known.emplace(std::move(key), result);
  if (findings && at > 0) ++findings->num_lines;
  return result;
}

Value Builder::constant(DType type, std::uint64_t low, std::uint64_t high) {
  Line line;
  line.opcode = hlo::Opcode::Constant;
  line.constant[0] = low;
  line.constant[1] = high;
  std::string key = "c";
  append_key(key, static_cast<std::int64_t>(type));
  append_key(key, static_cast<std::int64_t>(low));
  append_key(key, static_cast<std::int64_t>(high));
  return emit(std::move(key), type, {}, std::move(line));
}

Value Builder::constant_index(std::int64_t v) {
  const Value value = constant(DType::S64, static_cast<std::uint64_t>(v));
  set_range(value, {v, v});
  return value;
}

Value Builder::line(hlo::Opcode opcode, DType type, std::vector<Value> operands) {
  Line line;
  line.opcode = opcode;
  line.operands = std::move(operands);
  line.result = kNoValue;
  std::string key = "l";
  append_key(key, static_cast<std::int64_t>(opcode));
  append_key(key, static_cast<std::int64_t>(type));
  for (const Value v : line.operands) append_key(key, v);
  const std::vector<Value> from = line.operands;
  return emit(std::move(key), type, from, std::move(line));
}

Value Builder::line(Line line, DType type) {
  std::string key = "L";
  append_key(key, static_cast<std::int64_t>(line.opcode));
  append_key(key, static_cast<std::int64_t>(type));
  append_key(key, static_cast<std::int64_t>(line.compare.direction) * 8 + static_cast<std::int64_t>(line.compare.type));
  append_key(key, line.reduce_precision.exponent_bits);
  append_key(key, line.reduce_precision.mantissa_bits);
  for (const Value v : line.operands) append_key(key, v);
  const std::vector<Value> from = line.operands;
  return emit(std::move(key), type, from, std::move(line));
}

Value Builder::multiply_add(Value a, Value b, Value c) {
  std::string key = "f";
  append_key(key, a);
  append_key(key, b);
  append_key(key, c);
  return emit(std::move(key), kernel_.type(c), {a, b, c}, MultiplyAdd{kNoValue, a, b, c});
}

std::vector<Value> Builder::transpose(const std::vector<Value>& operands) {
  // Where the lanes are, though all operands may be the same in all of them.
  const std::size_t at = std::max(depth_of(operands), depth(square_->lane));
  Transpose t;
  t.operands = operands;
  for (const Value v : operands) t.results.push_back(add_value(kernel_.type(v), at));
  std::vector<Value> results = t.results;
  scopes_[at].block->push_back(Statement{std::move(t)});
  return results;
}

Value Builder::affine(const Index& given) {
  const Index index = recombine(given);
  note_opaque(index);
  if (index.terms.empty()) return constant_index(index.offset);
  if (index.terms.size() == 1 && index.offset == 0 && index.terms[0].coefficient == 1) return index.terms[0].value;
  std::vector<Value> operands;
  for (const Index::Term& t : index.terms) operands.push_back(t.value);
  std::string key = "a";
  append_key(key, index);
  const Value v = emit(std::move(key), DType::S64, operands, Affine{kNoValue, index});
  set_range(v, range(index));
  return v;
}

Value Builder::load_linear(int argument, const Index& given, DType type, Value mask) {
  const Index index = recombine(given);
  note_access(index, type, false, mask != kNoValue);
  if (const std::int64_t stride = mask == kNoValue ? lane_stride(index) : 0; stride != 0)
    if (const Value v = load_turned(argument, index, type, stride); v != kNoValue) return v;
  std::vector<Value> operands = {mask};
  for (const Index::Term& t : index.terms) operands.push_back(t.value);
  std::string key = "m";
  append_key(key, load_epoch_);
  append_key(key, argument);
  append_key(key, static_cast<std::int64_t>(type));
  append_key(key, mask);
  append_key(key, index);
  return emit(std::move(key), type, operands, Load{kNoValue, argument, index, mask});
}

namespace {
Index linear_index(const Place& place, const std::vector<Index>& point) {
  const std::vector<std::int64_t> strides = strides_of(place.shape);
  Index linear;
  linear.offset = place.byte_offset / byte_width(place.shape.dtype());
  for (std::size_t d = 0; d < point.size(); ++d) linear = linear + point[d] * strides[d];
  return linear;
}
}  // namespace

namespace {
bool is_one_element(const Place& place) { return place.shape.num_elements() == 1; }
}  // namespace

void Builder::forget_stored(int argument, std::int64_t from, std::int64_t to) {
  std::erase_if(stored_, [&](const Stored& s) { return s.argument == argument && s.from < to && from < s.to; });
  if (!stored_outside_.empty()) stored_outside_.back().second.push_back({argument, from, to});
}

void Builder::set_stored(const Place& place, Value v) {
  const std::int64_t to = place.byte_offset + place.shape.size_bytes();
  forget_stored(place.argument, place.byte_offset, to);
  stored_.push_back({place.argument, place.byte_offset, to, place.shape.dtype(), v});
}

Value Builder::load_after(const Place& place, const std::vector<Index>& point, const Index& after) {
  return load_linear(place.argument, linear_index(place, point) + after, place.shape.dtype());
}

Value Builder::load(const Place& place, const std::vector<Index>& point, Value mask) {
  if (is_one_element(place))
    for (const Stored& s : stored_)
      if (s.argument == place.argument && s.from == place.byte_offset && s.type == place.shape.dtype()) return s.value;
  return load_linear(place.argument, linear_index(place, point), place.shape.dtype(), mask);
}

Value Builder::load_word(const Place& place, const std::vector<Index>& point) {
  Index index = recombine(linear_index(place, point));
  const auto divides = [](const Index::Term& t) { return t.coefficient % 4 == 0; };
  if (index.offset % 4 != 0 || !std::ranges::all_of(index.terms, divides)) return kNoValue;
  index.offset /= 4;
  for (Index::Term& t : index.terms) t.coefficient /= 4;
  return load_linear(place.argument, index, DType::S32);
}

void Builder::store_linear(int argument, const Index& given, Value value, Value mask) {
  const Index index = recombine(given);
  note_access(index, kernel_.type(value), true, mask != kNoValue);
  append(Statement{Store{argument, index, value, mask}});
}

void Builder::store(const Place& place, const std::vector<Index>& point, Value value, Value mask) {
  // Only what is stored outside of loops is known after.
  if (is_one_element(place) && mask == kNoValue && open_loops_.empty())
    set_stored(place, value);
  else
    forget_stored(place.argument, place.byte_offset, place.byte_offset + place.shape.size_bytes());
  store_linear(place.argument, linear_index(place, point), value, mask);
}

void Builder::forget_loads() { ++load_epoch_; }

// --- Squares -------------------------------------------------------------------------------------------------------

std::int64_t Builder::lane_stride(const Index& index) const {
  if (!square_) return 0;
  std::int64_t stride = 0;
  for (const Index::Term& t : index.terms) {
    if (t.value == square_->lane)
      stride = t.coefficient;
    else if (depth(t.value) >= depth(square_->lane))
      return 0;  // differs between lanes
  }
  return stride >= -1 && stride <= 1 ? 0 : stride;
}

namespace {
// Of the row that lies dense along the lanes at step `k` of what were the lanes.
Index turned(const Index& first_row, Value lane, std::int64_t stride, std::int64_t k) {
  return first_row + index_of(lane, 1 - stride) + k * stride;
}
}  // namespace

// Address(row, lane) is a uniform one + row + stride·lane. The first row loads for all; a row whose access is another
// one, because it depends on the row in some other way, finds nothing here.
Value Builder::load_turned(int argument, const Index& index, DType type, std::int64_t stride) {
  const Index first_row = index + -square_->row;
  std::string key;
  append_key(key, load_epoch_);
  append_key(key, argument);
  append_key(key, static_cast<std::int64_t>(type));
  append_key(key, first_row);
  auto found = square_->loaded.find(key);
  if (found == square_->loaded.end()) {
    if (square_->row != 0 || static_cast<std::size_t>(argument) >= kernel_.arguments.size()) return kNoValue;
    const Range whole = range(first_row);
    const std::int64_t elements =
        argument_bytes(kernel_.arguments[static_cast<std::size_t>(argument)]) / byte_width(type);
    if (whole.lo < 0 || whole.hi + square_->size > elements) return kNoValue;
    const Square square = *std::exchange(square_, std::nullopt);
    std::vector<Value> columns;
    for (std::int64_t k = 0; k < square.size; ++k)
      columns.push_back(load_linear(argument, turned(first_row, square.lane, stride, k), type));
    square_ = square;
    found = square_->loaded.emplace(std::move(key), transpose(columns)).first;
  }
  return found->second[static_cast<std::size_t>(square_->row)];
}

void Builder::store_rows(const Place& place, const std::vector<std::vector<Index>>& points,
                         const std::vector<Value>& values) {
  std::vector<Index> rows;
  for (const std::vector<Index>& point : points) rows.push_back(recombine(linear_index(place, point)));
  const std::int64_t stride = lane_stride(rows[0]);
  bool turns = stride != 0;
  for (std::size_t r = 0; r < rows.size(); ++r) turns = turns && rows[r] == rows[0] + static_cast<std::int64_t>(r);
  forget_stored(place.argument, place.byte_offset, place.byte_offset + place.shape.size_bytes());
  if (!turns) {
    for (std::size_t r = 0; r < rows.size(); ++r) store_linear(place.argument, rows[r], values[r]);
    return;
  }
  const std::vector<Value> columns = transpose(values);
  for (std::size_t k = 0; k < columns.size(); ++k)
    store_linear(place.argument, turned(rows[0], square_->lane, stride, static_cast<std::int64_t>(k)), columns[k]);
}

// --- Index arithmetic ----------------------------------------------------------------------------------------------

void Builder::set_range(Value v, Range r) { ranges_[static_cast<std::size_t>(v)] = r; }

Range Builder::range(const Index& index) const {
  Range sum{index.offset, index.offset};
  for (const Index::Term& t : index.terms) {
    const auto& known = ranges_[static_cast<std::size_t>(t.value)];
    if (!known) return {std::numeric_limits<std::int64_t>::min() / 4, std::numeric_limits<std::int64_t>::max() / 4};
    const std::int64_t a = known->lo * t.coefficient, b = known->hi * t.coefficient;
    sum.lo += std::min(a, b);
    sum.hi += std::max(a, b);
  }
  return sum;
}

Index Builder::recombine(Index index) const {
  for (std::size_t n = divmods_.size(); n-- > 0;) {
    const DivMod& d = divmods_[n];
    std::int64_t q = 0, r = 0;
    for (const Index::Term& t : index.terms) {
      if (t.value == d.quotient) q = t.coefficient;
      if (t.value == d.remainder) r = t.coefficient;
    }
    if (r == 0 || q != r * d.divisor) continue;
    std::erase_if(index.terms, [&](const Index::Term& t) { return t.value == d.quotient || t.value == d.remainder; });
    index = index + d.source * r;
  }
  return index;
}

std::pair<Index, Index> Builder::divmod(const Index& given, std::int64_t d) {
  // Of an extent of 0 there is no element: an index into an empty array is made, and never used.
  if (d <= 1) return {given, Index{}};
  const Index index = recombine(given);
  // What d divides goes to the quotient; if the rest fits below d, no division is needed.
  Index multiple, rest;
  multiple.offset = index.offset / d * d;
  rest.offset = index.offset - multiple.offset;
  if (rest.offset < 0) {
    rest.offset += d;
    multiple.offset -= d;
  }
  for (const Index::Term& t : index.terms) (t.coefficient % d == 0 ? multiple : rest).terms.push_back(t);
  // Division rounds toward zero: what is divided must not be negative.
  if (const std::int64_t low = range(rest).lo; low < 0 && low > std::numeric_limits<std::int64_t>::min() / 8) {
    const std::int64_t lift = (-low + d - 1) / d * d;
    rest.offset += lift;
    multiple.offset -= lift;
  }
  const Range r = range(rest);
  const auto divided = [&](Index m) {
    m.offset /= d;
    for (Index::Term& t : m.terms) t.coefficient /= d;
    return m;
  };
  if (r.lo >= 0 && r.lo / d == r.hi / d) return {divided(multiple) + r.lo / d, rest + -(r.lo / d * d)};
  if (findings != nullptr)
    for (const Index::Term& t : rest.terms)
      if (may_shape(t.value) && t.coefficient > 0 && d % t.coefficient == 0)
        findings->splits[t.value].push_back(d / t.coefficient);
  for (const DivMod& known : divmods_)
    if (known.divisor == d && known.source == rest) {
      return {divided(multiple) + index_of(known.quotient), index_of(known.remainder)};
    }
  Findings* const noting = std::exchange(findings, nullptr);  // recombined later, perhaps: not opaque yet
  const Value source = affine(rest);
  const Value by = constant_index(d);
  const Value q = line(hlo::Opcode::Divide, DType::S64, {source, by});
  const Value m = line(hlo::Opcode::Remainder, DType::S64, {source, by});
  findings = noting;
  set_range(q, {std::max<std::int64_t>(r.lo, 0) / d, r.hi / d});
  set_range(m, {0, d - 1});
  divmods_.push_back({rest, d, q, m});
  return {divided(multiple) + index_of(q), index_of(m)};
}

std::vector<Index> Builder::delinearise(const Index& linear, const std::vector<std::int64_t>& dims) {
  std::vector<Index> point(dims.size());
  Index rest = linear;
  for (std::size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 1) continue;
    const bool outermost = std::all_of(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(d),
                                       [](std::int64_t n) { return n == 1; });
    if (outermost) {
      point[d] = rest;
      break;
    }
    auto [quotient, remainder] = divmod(rest, dims[d]);
    point[d] = std::move(remainder);
    rest = std::move(quotient);
  }
  return point;
}

Index Builder::linearise(const std::vector<Index>& point, const std::vector<std::int64_t>& dims) {
  Index linear;
  for (std::size_t d = 0; d < dims.size(); ++d) linear = linear * dims[d] + point[d];
  return linear;
}

// --- Loops and blocks ----------------------------------------------------------------------------------------------

Value Builder::begin_loop(std::int64_t from, std::int64_t to, int lanes, std::int64_t block, std::string name) {
  if (findings != nullptr) ++findings->num_loops;
  auto loop = std::make_unique<Loop>();
  loop->from = from;
  loop->to = to;
  loop->lanes = lanes;
  loop->block = block;
  if (lanes != 0) ++lanes_depth_;
  scopes_.push_back(Scope{&loop->body, {}, false});
  loop->variable = define(DType::S64, std::move(name));
  set_range(loop->variable, {from, std::max(from, to - 1)});
  const Value variable = loop->variable;
  open_loops_.push_back(std::move(loop));
  return variable;
}

std::pair<Value, Value> Builder::begin_range(std::int64_t from, std::int64_t to, std::int64_t block) {
  const Value first = begin_loop(from, to, 0, block);
  loop().end = define(DType::S64);
  set_range(loop().end, {from + 1, to});
  return {first, loop().end};
}

void Builder::end_loop() {
  auto loop = std::move(open_loops_.back());
  open_loops_.pop_back();
  scopes_.pop_back();
  if (loop->lanes != 0) --lanes_depth_;
  // Pairs of quotient and remainder made inside are known no more.
  std::erase_if(divmods_, [&](const DivMod& d) { return depth(d.quotient) >= scopes_.size(); });
  append(Statement{std::move(*loop)});
}

Value Builder::add_carry(Value initial) {
  Carry carry;
  carry.initial = initial;
  carry.inside = define(kernel_.type(initial));
  carry.result = add_value(kernel_.type(initial), scopes_.size() - 2);
  loop().carries.push_back(carry);
  return carry.inside;
}

Value Builder::add_fold(hlo::Opcode combine, Value initial) {
  Fold fold;
  fold.combine = combine;
  fold.carry.initial = initial;
  fold.carry.inside = define(kernel_.type(initial));
  fold.carry.result = add_value(kernel_.type(initial), scopes_.size() - 2);
  loop().folds.push_back(fold);
  return fold.carry.inside;
}

Value Builder::add_best(bool least, bool last, Value value) {
  const Value result = add_value(DType::S64, scopes_.size() - 2);
  set_range(result, {loop().from, loop().to - 1});
  loop().bests.push_back({least, last, value, result});
  return result;
}

void Builder::set_next(std::size_t carry, Value next) { loop().carries[carry].next = next; }
void Builder::set_fold_next(std::size_t fold, Value next) { loop().folds[fold].carry.next = next; }

void Builder::begin_block() {
  stored_outside_.emplace_back(stored_, std::vector<Written>());
  blocks_.push_back(std::make_unique<Block>());
  scopes_.push_back(Scope{blocks_.back().get(), {}, true});
}

Block Builder::end_block() {
  Block block = std::move(*blocks_.back());
  blocks_.pop_back();
  scopes_.pop_back();
  auto [outside, written] = std::move(stored_outside_.back());
  stored_outside_.pop_back();
  stored_ = std::move(outside);
  for (const Written& w : written) forget_stored(w.argument, w.from, w.to);
  std::erase_if(divmods_, [&](const DivMod& d) { return depth(d.quotient) >= scopes_.size(); });
  return block;
}

// --- Findings ------------------------------------------------------------------------------------------------------

void Builder::note_opaque(const Index& index) {
  if (findings == nullptr) return;
  for (const Index::Term& t : index.terms) findings->opaque[t.value] = true;
}

void Builder::note_access(const Index& index, DType type, bool is_store, bool masked) {
  if (findings == nullptr) return;
  std::vector<Value> computed;
  for (const Index::Term& t : index.terms)
    if (!may_shape(t.value)) computed.push_back(t.value);
  findings->accesses.push_back({index.terms, byte_width(type), is_store, masked, followed_by(computed)});
}

// --- Dead values ---------------------------------------------------------------------------------------------------

namespace {

class Liveness {
 public:
  explicit Liveness(std::size_t values) : live_(values) {}

  // Walks backwards, so a value's uses are seen before it; loops twice for what carries bring round.
  void block(Block& statements) {
    for (auto s = statements.rbegin(); s != statements.rend(); ++s) std::visit(*this, s->of);
  }
  bool live(Value v) const { return v != kNoValue && live_[static_cast<std::size_t>(v)]; }

  void operator()(Line& s) {
    if (live(s.result)) use(s.operands);
  }
  void operator()(MultiplyAdd& s) {
    if (live(s.result)) use({s.a, s.b, s.c});
  }
  void operator()(Transpose& s) {
    if (std::ranges::any_of(s.results, [&](Value v) { return live(v); })) use(s.operands);
  }
  void operator()(Affine& s) {
    if (live(s.result)) use(s.index);
  }
  void operator()(Load& s) {
    if (!live(s.result)) return;
    use(s.index);
    use(std::vector{s.mask});
  }
  void operator()(Store& s) {
    use(s.index);
    use({s.value, s.mask});
  }
  void operator()(Prefetch& s) { use(s.index); }
  void operator()(Loop& s) {
    use({s.from_value, s.to_value});
    for (Carry& c : s.carries) use({c.initial, c.next});
    for (Fold& f : s.folds) use({f.carry.initial, f.carry.next});
    for (Best& best : s.bests) use(std::vector{best.value});
    block(s.body);
  }
  void operator()(While& s) {
    use(std::vector{s.predicate});
    for (Carry& c : s.carries) use({c.initial, c.next});
    block(s.body);
    block(s.condition);
  }
  void operator()(If& s) {
    use(std::vector{s.selector});
    for (If::Result& r : s.results) use(r.from);
    for (Block& b : s.branches) block(b);
  }
  void operator()(Call&) {}

 private:
  void use(const std::vector<Value>& values) {
    for (const Value v : values)
      if (v != kNoValue) live_[static_cast<std::size_t>(v)] = true;
  }
  void use(const Index& index) {
    for (const Index::Term& t : index.terms) use(std::vector<Value>{t.value});
  }
  std::vector<bool> live_;
};

Value result_of(const Statement& s) {
  return std::visit(
      [](const auto& of) {
        if constexpr (requires { of.result; })
          return of.result;
        else
          return kNoValue;
      },
      s.of);
}

void erase_dead(Block& block, const Liveness& liveness) {
  std::erase_if(block, [&](const Statement& s) {
    if (const auto* t = std::get_if<Transpose>(&s.of))
      return std::ranges::none_of(t->results, [&](Value v) { return liveness.live(v); });
    const Value result = result_of(s);
    return result != kNoValue && !liveness.live(result);
  });
  for (Statement& s : block) {
    if (auto* loop = std::get_if<Loop>(&s.of)) erase_dead(loop->body, liveness);
    if (auto* loop = std::get_if<While>(&s.of)) {
      erase_dead(loop->condition, liveness);
      erase_dead(loop->body, liveness);
    }
    if (auto* branch = std::get_if<If>(&s.of))
      for (Block& b : branch->branches) erase_dead(b, liveness);
  }
}

}  // namespace

Kernel Builder::finish() && {
  HLOOM_CHECK(scopes_.size() == 1 && open_loops_.empty());
  kernel_.body = std::move(root_);
  Liveness liveness(kernel_.values.size());
  liveness.block(kernel_.body);
  erase_dead(kernel_.body, liveness);
  return std::move(kernel_);
}

}  // namespace hloom::kernels
