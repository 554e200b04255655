// Elementwise operations as functions over arrays of any length: what instructions and applied scalar functions run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hlo/instruction.h"
#include "interp/element.h"

namespace hloom::interp {

/// One elementwise operation on its types. in[k] points at operand k's elements, out at the result's; out may be one of
/// them if its elements are no wider.
struct Kernel {
  using Function = void (*)(const Kernel&, std::byte* out, const std::byte* const* in, std::int64_t n);
  Function function = nullptr;
  DType type = DType::Invalid;  ///< of operand 0
  DType second = DType::Invalid;  ///< of operand 1, if there is one
  DType result = DType::Invalid;
  const hlo::Instruction* instruction = nullptr;  ///< for attributes

  void operator()(std::byte* out, const std::byte* const* in, std::int64_t n) const { function(*this, out, in, n); }
};

/// The kernel of an elementwise instruction; of copies, reshapes, bitcasts and bitcast-converts that keep the
/// element's width, too. Function is null where the opcode has no meaning in the types.
Kernel kernel_of(const hlo::Instruction&);

// By family; null where there is no meaning.
Kernel::Function real_function(hlo::Opcode, DType type);  ///< unary, of floats
Kernel::Function real_operation(hlo::Opcode, DType type);  ///< binary, of floats, and clamp
Kernel::Function complex_function(hlo::Opcode, DType type);  ///< unary
Kernel::Function complex_operation(hlo::Opcode, DType type);  ///< binary
Kernel::Function integer_operation(hlo::Opcode, DType type);  ///< unary, binary and clamp
Kernel::Function pred_operation(hlo::Opcode);  ///< unary, binary and clamp
Kernel::Function compare_operation(const hlo::CompareAttr&, DType type);
Kernel::Function select_operation(DType type);
Kernel::Function convert_operation(DType from, DType to);
Kernel::Function reduce_precision_operation(DType type);
Kernel::Function stochastic_convert_operation(DType from, DType to);
/// Copies the bits.
Kernel::Function copy_operation(DType type);

/// Elements of type `from` as the nearest of type `to` (hlo-ops 5.1).
void convert(std::byte* out, DType to, const std::byte* in, DType from, std::int64_t n);

// What kernels are made of. Op is a captureless lambda; it is called on each element's Exact or Wide value.

template <typename Access, typename Op>
void apply_exact1(const Kernel& k, std::byte* out, const std::byte* const* in, std::int64_t n) {
  const Access a(k.type);
  for (std::int64_t i = 0; i < n; ++i) a.store(out, i, static_cast<typename Access::Exact>(Op()(a.load(in[0], i))));
}
template <typename Access, typename Op>
void apply_wide1(const Kernel& k, std::byte* out, const std::byte* const* in, std::int64_t n) {
  using Wide = typename Access::Wide;
  const Access a(k.type);
  for (std::int64_t i = 0; i < n; ++i)
    a.store(out, i, static_cast<typename Access::Exact>(Op()(static_cast<Wide>(a.load(in[0], i)))));
}
template <typename Access, typename Op>
void apply_exact2(const Kernel& k, std::byte* out, const std::byte* const* in, std::int64_t n) {
  const Access a(k.type);
  for (std::int64_t i = 0; i < n; ++i)
    a.store(out, i, static_cast<typename Access::Exact>(Op()(a.load(in[0], i), a.load(in[1], i))));
}
template <typename Access, typename Op>
void apply_wide2(const Kernel& k, std::byte* out, const std::byte* const* in, std::int64_t n) {
  using Wide = typename Access::Wide;
  const Access a(k.type);
  for (std::int64_t i = 0; i < n; ++i)
    a.store(out, i,
            static_cast<typename Access::Exact>(
                Op()(static_cast<Wide>(a.load(in[0], i)), static_cast<Wide>(a.load(in[1], i)))));
}

template <typename Op>
Kernel::Function exact1(DType type, Op) {
  return with_number(type,
                     [](const auto& a) -> Kernel::Function { return apply_exact1<std::decay_t<decltype(a)>, Op>; });
}
template <typename Op>
Kernel::Function exact2(DType type, Op) {
  return with_number(type,
                     [](const auto& a) -> Kernel::Function { return apply_exact2<std::decay_t<decltype(a)>, Op>; });
}

}  // namespace hloom::interp
