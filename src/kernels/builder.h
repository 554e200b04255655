// Builds the statements of a kernel: numbers values, finds equal ones, and puts each where it is computed least often.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernel.h"

namespace hloom::kernels {

/// Values lo … hi, both included.
struct Range {
  std::int64_t lo = 0, hi = 0;
};

/// Where an array lives: an argument, a byte offset in it, its shape with the layout that gives the strides.
struct Place {
  int argument = 0;
  std::int64_t byte_offset = 0;
  Shape shape;
};

/// What a dry run finds out about the loops it was given.
struct Findings {
  struct Access {
    std::vector<Index::Term> terms;
    std::int64_t element_bytes = 0;
    bool is_store = false;
    bool masked = false;
    /// Loop variables that the index follows other than by a term: through what was loaded or computed.
    std::vector<Value> indirect = {};
  };
  std::vector<Access> accesses;
  /// Points at which a loop variable's range should be cut, so that each part lies in one piece of a concatenate or pad.
  std::map<Value, std::vector<std::int64_t>> cuts;
  bool may_cut = true;  ///< else what would be cut is masked, and its accesses are found
  /// Divisors d by which a loop variable v should be split as d·v1 + v2.
  std::map<Value, std::vector<std::int64_t>> splits;
  /// Variables used other than in accesses: their values matter.
  std::map<Value, bool> opaque;
  /// Something had to be selected element by element: masks in inner loops.
  bool has_selects = false;
  std::int64_t num_lines = 0;  ///< those in a loop
  std::int64_t num_loops = 0;
};

/// Statements go to the outermost open block in which their operands are known, so loop invariants need no pass.
/// That is right because a fusion reads what was there before it wrote.
class Builder {
 public:
  explicit Builder(std::string name) { kernel_.name = std::move(name); }

  Kernel& kernel() { return kernel_; }
  /// Removes what nothing uses, and gives the kernel away.
  Kernel finish() &&;

  DType type(Value v) const { return kernel_.type(v); }

  /// Whether the value is computed outside of all loops.
  bool is_invariant(Value v) const { return depth(v) == 0; }

  // --- Values. Equal ones are made once.
  Value constant(DType, std::uint64_t low, std::uint64_t high = 0);
  Value constant_index(std::int64_t);
  Value line(hlo::Opcode, DType result, std::vector<Value> operands);
  /// A line with more than operands (compare, reduce-precision); `result` is set here.
  Value line(Line, DType result);
  Value multiply_add(Value a, Value b, Value c);
  /// The index as an S64 value.
  Value affine(const Index&);
  /// The element of `place` at a point, one index for each logical dimension.
  Value load(const Place&, const std::vector<Index>& point, Value mask = kNoValue);
  /// As memory has it where `after` is known, a loop's variable that is 0: not before that loop, and not by what was
  /// stored before it.
  Value load_after(const Place&, const std::vector<Index>& point, const Index& after);
  Value load_linear(int argument, const Index& index, DType, Value mask = kNoValue);
  void store(const Place&, const std::vector<Index>& point, Value, Value mask = kNoValue);
  void store_linear(int argument, const Index& index, Value, Value mask = kNoValue);

  // --- Squares of iterations: `size` rows, built one after the other inside a loop over [0, size) by as many lanes. What
  // lies dense along the rows instead of the lanes is loaded and stored so, and turned over in registers.
  void begin_square(Value lane, std::int64_t size) { square_ = Square{lane, size, 0, {}}; }
  /// What is built from here on is row `row`.
  void set_row(std::int64_t row) { square_->row = row; }
  void end_square() { square_.reset(); }
  /// Stores an element of each row. Needs: a square.
  void store_rows(const Place&, const std::vector<std::vector<Index>>& points, const std::vector<Value>&);

  // --- Index arithmetic with known ranges.
  Range range(const Index&) const;
  void set_range(Value, Range);
  /// Quotient and remainder of a nonnegative index by d; without a line where ranges tell. d = 0 is an extent
  /// without elements, whose indices nobody uses.
  std::pair<Index, Index> divmod(const Index&, std::int64_t d);
  /// The four bytes from an element on, as s32, lowest first; none where the address is not seen to be a multiple of four
  /// from the argument's. Needs: elements of a byte each, an argument of bytes.
  Value load_word(const Place&, const std::vector<Index>& point);
  /// The coordinates of a row-major linear index.
  std::vector<Index> delinearise(const Index& linear, const std::vector<std::int64_t>& dims);
  static Index linearise(const std::vector<Index>& point, const std::vector<std::int64_t>& dims);

  // --- Loops. What is built between begin and end is the body.
  /// Opens a loop and returns its variable.
  Value begin_loop(std::int64_t from, std::int64_t to, int lanes = 0, std::int64_t block = 0, std::string name = {});
  /// Opens a loop whose body runs once in a call, for its range of [from, to) in blocks; its first, and what is behind its last.
  std::pair<Value, Value> begin_range(std::int64_t from, std::int64_t to, std::int64_t block);
  /// The loop being built innermost: carries and folds may be added until it ends.
  Loop& loop() { return *open_loops_.back(); }
  void end_loop();
  /// Adds a carry to the innermost loop; returns `inside`. Set next with set_next before end_loop.
  Value add_carry(Value initial);
  Value add_fold(hlo::Opcode combine, Value initial);
  /// The iteration of the innermost loop, a loop by lanes, that has the greatest or least `value`.
  Value add_best(bool least, bool last, Value value);
  void set_next(std::size_t carry, Value next);
  void set_fold_next(std::size_t fold, Value next);
  /// Whether a loop by lanes is open.
  bool in_lanes() const { return lanes_depth_ != 0; }

  // --- Blocks of While, If and of one fusion in a region: nothing inside moves out.
  void begin_block();
  Block end_block();
  /// Appends to the innermost block.
  void append(Statement statement) { scopes_.back().block->push_back(std::move(statement)); }
  /// Scalars are remembered where they were stored last and taken from there instead of being loaded. What is known
  /// of bytes [from, to) of an argument is forgotten.
  void forget_stored(int argument, std::int64_t from, std::int64_t to);
  void forget_all_stored() { stored_.clear(); }
  /// Says that the element at `place` (of a scalar) is `v`.
  void set_stored(const Place&, Value v);
  /// Makes a value known in the innermost block.
  Value define(DType, std::string name = {});
  /// A value found before under this key and still known, or kNoValue; and its twin. For users' own memos.
  Value recall(const std::string& key) const { return find("u" + key); }
  void remember(const std::string& key, Value v) { scopes_[depth(v)].known.emplace("u" + key, v); }
  /// A number that no other user of recall() has.
  int new_context() { return num_contexts_++; }
  /// Forgets equal values: what is loaded from here on is loaded anew.
  void forget_loads();

  /// Set while a dry run: what loops should look like is noted here.
  Findings* findings = nullptr;
  /// Loop variables that findings may ask to cut or split.
  bool may_shape(Value v) const { return shapeable_.contains(v); }
  void set_shapeable(Value v) {
    shapeable_[v] = true;
    follows_[static_cast<std::size_t>(v)] = {v};
  }
  /// Notes that the index's variables matter by value.
  void note_opaque(const Index&);

 private:
  struct Scope {
    Block* block;
    std::map<std::string, Value> known;
    bool barrier;  ///< nothing moves out of it
  };
  struct DivMod {
    Index source;
    std::int64_t divisor;
    Value quotient, remainder;
  };

  std::size_t depth(Value v) const { return depths_[static_cast<std::size_t>(v)]; }
  std::size_t depth_of(const std::vector<Value>&) const;
  /// Loop variables that any of the values depends on.
  std::vector<Value> followed_by(const std::vector<Value>&) const;
  Value add_value(DType, std::size_t depth, std::string name = {});
  Value find(const std::string& key) const;
  /// Makes the statement where its operands are known, unless there is an equal one.
  template <typename S>
  Value emit(std::string key, DType type, const std::vector<Value>& operands, S statement);
  /// Puts q·(c·d) + r·c back together as the source.
  Index recombine(Index) const;
  void note_access(const Index&, DType, bool is_store, bool masked);
  /// The stride of lanes that lie apart, if the access may go along the rows; else 0.
  std::int64_t lane_stride(const Index&) const;
  std::vector<Value> transpose(const std::vector<Value>& operands);
  Value load_turned(int argument, const Index& index, DType, std::int64_t stride);

  struct Square {
    Value lane = kNoValue;
    std::int64_t size = 0, row = 0;
    std::map<std::string, std::vector<Value>> loaded;  ///< rows of what was turned over, by access
  };

  std::optional<Square> square_;
  Kernel kernel_;
  Block root_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<Scope> scopes_ = {Scope{&root_, {}, true}};
  std::vector<std::unique_ptr<Loop>> open_loops_;
  std::vector<std::size_t> depths_;
  std::vector<std::vector<Value>> follows_;  ///< by value: loop variables that it depends on, of those that may be shaped; sorted
  std::vector<std::optional<Range>> ranges_;
  std::vector<DivMod> divmods_;
  std::map<Value, bool> shapeable_;
  int lanes_depth_ = 0;
  int load_epoch_ = 0;
  struct Stored {
    int argument;
    std::int64_t from, to;  // bytes
    DType type;
    Value value;
  };
  std::vector<Stored> stored_;
  struct Written {
    int argument;
    std::int64_t from, to;
  };
  /// What each open block found stored when it began, and what was written since.
  std::vector<std::pair<std::vector<Stored>, std::vector<Written>>> stored_outside_;
  int num_contexts_ = 0;
};

/// Strides of an array in elements by its layout, for each logical dimension. Needs: a plain layout.
std::vector<std::int64_t> strides_of(const Shape&);

}  // namespace hloom::kernels
