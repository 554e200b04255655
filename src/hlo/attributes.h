// What an instruction says besides its operands: one small struct for each family of opcodes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "hlo/boxed.h"
#include "hlo/literal.h"
#include "hlo/sharding.h"
#include "hloom/shape.h"

namespace hloom::hlo {

using Dims = std::vector<std::int64_t>;

struct ParameterAttr {
  std::int64_t number = 0;
  std::vector<bool> replication;
  bool operator==(const ParameterAttr&) const = default;
};
struct ConstantAttr {
  Literal literal;
  bool operator==(const ConstantAttr&) const = default;
};
struct IotaAttr {
  std::int64_t dimension = 0;
  bool operator==(const IotaAttr&) const = default;
};
struct TupleElementAttr {
  std::int64_t index = 0;
  bool operator==(const TupleElementAttr&) const = default;
};
enum class Direction : std::uint8_t { Eq, Ne, Ge, Gt, Le, Lt };
enum class Comparison : std::uint8_t { Float, TotalOrder, Signed, Unsigned };
struct CompareAttr {
  Direction direction = Direction::Eq;
  Comparison type = Comparison::Float;  ///< always set: the operand type's default where the text has none
  bool operator==(const CompareAttr&) const = default;
};
struct SliceAttr {
  Dims starts, limits, strides;
  bool operator==(const SliceAttr&) const = default;
};
struct DynamicSliceAttr {
  Dims sizes;
  bool operator==(const DynamicSliceAttr&) const = default;
};
struct PadDim {
  std::int64_t low = 0, high = 0, interior = 0;
  bool operator==(const PadDim&) const = default;
};
struct PadAttr {
  std::vector<PadDim> dims;
  bool operator==(const PadAttr&) const = default;
};
struct ReshapeAttr {
  std::int64_t inferred_dimension = -1;
  bool operator==(const ReshapeAttr&) const = default;
};
struct GatherAttr {
  Dims offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims, start_indices_batching_dims;
  std::int64_t index_vector_dim = 0;
  Dims slice_sizes;
  bool indices_are_sorted = false;
  bool operator==(const GatherAttr&) const = default;
};
struct ScatterAttr {
  Dims update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims, input_batching_dims,
      scatter_indices_batching_dims;
  std::int64_t index_vector_dim = 0;
  bool indices_are_sorted = false, unique_indices = false;
  bool operator==(const ScatterAttr&) const = default;
};
struct WindowDim {
  std::int64_t size = 1, stride = 1, pad_low = 0, pad_high = 0, lhs_dilate = 1, rhs_dilate = 1;
  bool reversal = false;
  bool operator==(const WindowDim&) const = default;
};
using Window = std::vector<WindowDim>;
struct WindowAttr {  ///< reduce-window, select-and-scatter
  Window window;
  bool operator==(const WindowAttr&) const = default;
};
enum class Precision : std::uint8_t { Default, High, Highest };
struct DotAttr {  ///< dot, ragged-dot, scaled-dot
  Dims lhs_batch, lhs_contracting, rhs_batch, rhs_contracting;
  Dims lhs_ragged, rhs_group;
  std::vector<Precision> precision;  ///< empty = all default
  std::string algorithm;             ///< empty = unset
  bool operator==(const DotAttr&) const = default;
};
/// The places of a convolution's dimensions; spatial lists by spatial number. -1 = none. Unused ones (`?`) are listed.
struct ConvolutionDims {
  std::int64_t input_batch = -1, input_feature = -1, kernel_input = -1, kernel_output = -1, output_batch = -1,
               output_feature = -1;
  Dims input_spatial, kernel_spatial, output_spatial;
  Dims input_unused, kernel_unused, output_unused;
  bool operator==(const ConvolutionDims&) const = default;
};
struct ConvolutionAttr {
  Window window;
  ConvolutionDims dims;
  std::int64_t feature_groups = 1, batch_groups = 1;
  std::vector<Precision> precision;
  std::string kind;  ///< convolution_kind; empty = unset
  std::string sparsity_config, block_scaling_config;  ///< raw text
  bool operator==(const ConvolutionAttr&) const = default;
};
struct SortAttr {
  bool stable = false;
  bool operator==(const SortAttr&) const = default;
};
struct TopKAttr {
  std::int64_t k = 0;
  bool largest = true, stable = false;
  bool operator==(const TopKAttr&) const = default;
};
struct ScanAttr {
  std::int64_t num_carries = 0;
  bool reverse = false;
  std::optional<bool> associative;
  bool operator==(const ScanAttr&) const = default;
};
enum class FftType : std::uint8_t { Fft, Ifft, Rfft, Irfft };
struct FftAttr {
  FftType type = FftType::Fft;
  Dims length;
  bool operator==(const FftAttr&) const = default;
};
enum class Transposition : std::uint8_t { None, Transpose, Adjoint };
struct TriangularSolveAttr {
  bool left_side = false, lower = false, unit_diagonal = false;
  Transposition transpose_a = Transposition::None;
  bool operator==(const TriangularSolveAttr&) const = default;
};
struct CholeskyAttr {
  bool lower = false;
  bool operator==(const CholeskyAttr&) const = default;
};
struct BatchNormAttr {
  double epsilon = 0;
  std::int64_t feature_index = 0;
  bool operator==(const BatchNormAttr&) const = default;
};
enum class Distribution : std::uint8_t { Uniform, Normal };
struct RngAttr {
  Distribution distribution = Distribution::Uniform;
  bool operator==(const RngAttr&) const = default;
};
enum class RngAlgorithm : std::uint8_t { Default, ThreeFry, Philox };
struct RngBitsAttr {
  RngAlgorithm algorithm = RngAlgorithm::Default;
  bool operator==(const RngBitsAttr&) const = default;
};
struct RngStateAttr {
  std::int64_t delta = 0;
  bool operator==(const RngStateAttr&) const = default;
};
struct ReducePrecisionAttr {
  std::int64_t exponent_bits = 0, mantissa_bits = 0;
  bool operator==(const ReducePrecisionAttr&) const = default;
};
/// Output path shares the buffer of an operand's path.
struct Aliasing {
  ShapeIndex output;
  std::int64_t operand = 0;
  ShapeIndex operand_index;
  bool operator==(const Aliasing&) const = default;
};
enum class FusionKind : std::uint8_t { Loop, Input, Output, Custom };
struct FusionAttr {
  FusionKind kind = FusionKind::Loop;
  std::vector<Aliasing> aliasing;
  bool operator==(const FusionAttr&) const = default;
};
struct CallAttr {
  bool is_composite = false;
  bool operator==(const CallAttr&) const = default;
};
enum class ApiVersion : std::uint8_t { Original = 1, StatusReturning = 2, StatusReturningUnified = 3, TypedFfi = 4 };
enum class CallSchedule : std::uint8_t { None, Latest, Earliest };
enum class PaddingType : std::uint8_t { Invalid, Valid, Same };
struct CustomCallAttr {
  std::string target;
  ApiVersion api_version = ApiVersion::Original;
  bool has_side_effect = false;
  std::optional<Literal> literal;
  std::optional<std::vector<Shape>> operand_layouts;
  std::vector<Aliasing> aliasing;
  CallSchedule schedule = CallSchedule::None;
  std::optional<Window> window;
  std::optional<ConvolutionDims> conv_dims;
  std::int64_t feature_groups = 1, batch_groups = 1;
  std::vector<Precision> precision;
  std::string algorithm;
  PaddingType padding_type = PaddingType::Invalid;
  bool operator==(const CustomCallAttr&) const = default;
};
struct CollectiveAttr {  ///< all collectives but the permutes; also their -start forms
  std::optional<std::int64_t> channel_id;
  ReplicaGroups groups;
  bool use_global_device_ids = false, constrain_layout = false, has_dynamic_root = false;
  bool has_dimension = false;  ///< all-to-all: without, its operands are the pieces
  bool operator==(const CollectiveAttr&) const = default;
};
struct PermuteAttr {
  std::optional<std::int64_t> channel_id;
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  std::vector<Dims> slice_sizes;
  bool operator==(const PermuteAttr&) const = default;
};
struct AsyncAttr {  ///< async-start, -update, -done
  std::string execution_thread = "main";
  std::vector<Aliasing> aliasing;
  bool operator==(const AsyncAttr&) const = default;
};
struct TransferAttr {  ///< send, recv and their -done
  std::optional<std::int64_t> channel_id;
  bool is_host_transfer = false;
  bool operator==(const TransferAttr&) const = default;
};
struct FeedAttr {  ///< infeed, outfeed
  std::string config;
  Shape outfeed_shape;
  bool operator==(const FeedAttr&) const = default;
};
struct CopyStartAttr {
  std::optional<std::int64_t> cross_program_prefetch_index;
  bool operator==(const CopyStartAttr&) const = default;
};
struct DomainAttr {
  std::string kind;
  Sharding entry, exit;
  bool operator==(const DomainAttr&) const = default;
};
struct ShuffleAttr {
  std::string text;  ///< the attributes as written: their spelling is not established
  bool operator==(const ShuffleAttr&) const = default;
};

/// All family structs.
template <typename... Ts>
struct TypeList {};
using AttributeFamilies =
    TypeList<ParameterAttr, ConstantAttr, IotaAttr, TupleElementAttr, CompareAttr, SliceAttr, DynamicSliceAttr, PadAttr,
             ReshapeAttr, GatherAttr, ScatterAttr, WindowAttr, DotAttr, ConvolutionAttr, SortAttr, TopKAttr, ScanAttr,
             FftAttr, TriangularSolveAttr, CholeskyAttr, BatchNormAttr, RngAttr, RngBitsAttr, RngStateAttr,
             ReducePrecisionAttr, FusionAttr, CallAttr, CustomCallAttr, CollectiveAttr, PermuteAttr, AsyncAttr,
             TransferAttr, FeedAttr, CopyStartAttr, DomainAttr, ShuffleAttr>;

/// One family struct, or none; attributes_for() in instruction.h says which opcode has which. Takes just the
/// family's own size, which a variant would not. Copies are deep.
class Attributes {
 public:
  Attributes() = default;
  template <typename T>
    requires(!std::is_same_v<std::remove_cvref_t<T>, Attributes>)
  Attributes(T value) : held_(std::make_unique<Held<T>>(std::move(value))) {}
  Attributes(const Attributes& other) : held_(other.held_ ? other.held_->clone() : nullptr) {}
  Attributes(Attributes&&) noexcept = default;
  Attributes& operator=(const Attributes& other) { return *this = Attributes(other); }
  Attributes& operator=(Attributes&&) noexcept = default;

  bool empty() const { return held_ == nullptr; }
  template <typename T>
  const T* get_if() const {
    return held_ && held_->tag == &kTag<T> ? &static_cast<const Held<T>&>(*held_).value : nullptr;
  }
  template <typename T>
  T* get_if() {
    return held_ && held_->tag == &kTag<T> ? &static_cast<Held<T>&>(*held_).value : nullptr;
  }
  /// Calls f with the struct held, if any.
  template <typename F>
  void visit(const F& f) const {
    visit_families(f, AttributeFamilies());
  }
  friend bool operator==(const Attributes& a, const Attributes& b) {
    if (a.empty() || b.empty()) return a.empty() == b.empty();
    return a.held_->tag == b.held_->tag && a.held_->equals(*b.held_);
  }

 private:
  template <typename T>
  static inline const char kTag = 0;  // its address names the type

  struct Base {
    explicit Base(const char* t) : tag(t) {}
    virtual ~Base() = default;
    virtual std::unique_ptr<Base> clone() const = 0;
    virtual bool equals(const Base&) const = 0;
    const char* tag;
  };
  template <typename T>
  struct Held final : Base {
    explicit Held(T v) : Base(&kTag<T>), value(std::move(v)) {}
    std::unique_ptr<Base> clone() const override { return std::make_unique<Held>(value); }
    bool equals(const Base& other) const override { return value == static_cast<const Held&>(other).value; }
    T value;
  };
  template <typename F, typename... Ts>
  void visit_families(const F& f, TypeList<Ts...>) const {
    const auto try_one = [&]<typename T>(const T* held) {
      if (held) f(*held);
    };
    (try_one(get_if<Ts>()), ...);
  }

  std::unique_ptr<Base> held_;
};

/// metadata={…} (hlo-text 10.3).
struct Metadata {
  std::string op_type, op_name, source_file, deduplicated_name, scheduling_name, metadata_payload;
  std::int64_t source_line = 0, source_end_line = 0, source_column = 0, source_end_column = 0, stack_frame_id = 0;
  Dims profile_types;
  std::string unknown;  ///< fields of other versions, as written
  bool operator==(const Metadata&) const = default;
  bool empty() const { return *this == Metadata(); }
};

struct Statistics {
  std::int64_t visualizing_index = 0;
  std::vector<std::pair<std::string, double>> values;
  bool operator==(const Statistics&) const = default;
};

struct ResultAccuracy {
  bool highest = false;
  bool has_tolerance = false;
  double atol = 0, rtol = 0;
  std::int64_t ulps = 0;
  bool operator==(const ResultAccuracy&) const = default;
};

using StringMap = std::map<std::string, std::string>;

/// What any instruction may carry, and few do.
struct Annotations {
  Metadata metadata;
  StringMap frontend_attributes;
  std::string backend_config;   ///< as written, without quotes; hloom's own part is in `decisions`
  /// What hloom decided about the instruction: backend_config={"hloom":{"key":"value", …}}.
  StringMap decisions;
  Boxed<Sharding> sharding;
  Boxed<Statistics> statistics;
  Boxed<ResultAccuracy> result_accuracy;
  std::string origin;           ///< canonical text between the braces
  bool operator==(const Annotations&) const = default;
};

}  // namespace hloom::hlo
