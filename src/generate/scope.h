// A computation under construction: its values, and how further ones come to it.
#pragma once

#include <functional>
#include <limits>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "generate/generate.h"
#include "generate/random.h"
#include "hlo/module.h"

namespace hloom::generate {

using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;

/// What all computations of a module under construction share.
struct Draw {
  Random random;
  hlo::Module* module;
  std::int64_t max_elements;
  bool wild;       ///< floats are not kept small integers
  bool scheduled;  ///< layouts bind and fusions are there already
  bool placed;     ///< arrays lie in memory spaces, and are split
  int steps_left;  ///< in the whole module
  std::unordered_map<std::string, hlo::Computation*> reducers;
  bool on_devices = false;  ///< on several, which meet in collectives
};

inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// Values of one computation, with what is known of their size.
class Scope {
 public:
  /// `depth` counts the loops, branches and calls around it. `open`: it is the entry, and may get new parameters.
  Scope(Draw& draw, hlo::Computation& computation, int depth, bool open)
      : draw_(draw), computation_(computation), depth_(depth), open_(open) {}

  Draw& draw() { return draw_; }
  Random& random() { return draw_.random; }
  hlo::Module& module() { return *draw_.module; }
  hlo::Computation& computation() { return computation_; }
  int depth() const { return depth_; }
  /// Whether all devices run it equally often, so that they may meet in it; false until it is said.
  bool meets() const { return meets_; }
  void set_meets(bool meets) { meets_ = meets && draw_.on_devices; }
  const std::vector<Instruction*>& values() const { return values_; }

  /// Adds an instruction of the inferred shape; `set` fills in attributes before. Null, and nothing is added, if the
  /// rules of HLO forbid it or it is too large. Arrays among the results can be picked later.
  Instruction* add(Opcode, std::vector<Instruction*> operands, const std::function<void(Instruction&)>& set = {},
                   Shape written = {});
  /// Makes a value known: all elements are integers of at most this magnitude; kUnbounded: any numbers.
  Instruction* keep(Instruction*, double bound);
  /// The bound given by keep(), or none where it is too large for sums in the type to be exact.
  double bound(const Instruction*) const;

  /// A value that satisfies the condition, the latest ones first in likelihood; null if there is none.
  Instruction* pick(const std::function<bool(const Instruction&)>& condition);
  Instruction* pick() {
    return pick([](const Instruction&) { return true; });
  }
  /// A value of this type and these dimensions, one that is there or a new one.
  Instruction* make(DType, const Dims&);
  /// As make(), but new, and each element of its own value.
  Instruction* make_new(DType, const Dims&);
  Instruction* scalar(DType, std::int64_t value);
  Instruction* splat(DType, std::int64_t value, const Dims&);
  Instruction* convert(Instruction*, DType);
  /// Dimensions of an array, odd ones: 0, 1, primes, numbers about the widths of vectors and tiles.
  Dims dims(std::int64_t rank);
  std::int64_t dim();
  DType type();
  DType float_type();
  DType index_type();

  /// A value like `x` that sums exactly over `terms` of products with numbers up to `factor`: `x` itself where it does
  /// or the module is wild.
  Instruction* tame(Instruction* x, double terms = 1, double factor = 1);

  /// One more instruction or so, of whatever kind. May fail, and does nothing then.
  void step();
  void steps(int count);

 private:
  Instruction* pattern(DType, const Dims&);

  Draw& draw_;
  hlo::Computation& computation_;
  int depth_;
  bool open_;
  bool meets_ = false;
  std::vector<Instruction*> values_;
  std::unordered_map<const Instruction*, double> bounds_;
};

std::int64_t count(const Dims&);
/// Integers up to this magnitude are exact in the type; infinite for integers' own types, which wrap.
double exact_limit(DType);
/// Numbers 0 … n-1.
Dims iota(std::int64_t n);

/// A kind of instruction: how often it comes, how it is drawn. False if nothing could be added.
struct Family {
  int weight;
  bool (*draw)(Scope&);
};

std::span<const Family> elementwise_families();
std::span<const Family> movement_families();
std::span<const Family> index_families();
std::span<const Family> reduction_families();
std::span<const Family> contraction_families();
std::span<const Family> control_families();
std::span<const Family> transform_families();
std::span<const Family> collective_families();
std::span<const Family> dynamic_families();

}  // namespace hloom::generate
