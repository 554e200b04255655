// The Fourier transforms that older releases of JAX asked of a library: what their operands say.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>

#include "hlo/instruction.h"
#include "hlo/literal.h"
#include "hloom/error.h"

namespace hloom::interp {

/// The transform as HLO has it, and what its result is multiplied by besides.
struct DuccFft {
  hlo::FftAttr attr;
  double factor = 1;
};

inline bool is_ducc_fft(std::string_view target) { return target == "ducc_fft" || target == "dynamic_ducc_fft"; }

/// Reads the operands of a custom call `ducc_fft` (descriptor, array) or `dynamic_ducc_fft` (descriptor, array, shape, strides
/// of both, factor, shape of the result): `operand` gives the value of one by its number, the array's aside. The descriptor
/// is a table of FlatBuffers in bytes.
/// Errors: InvalidArgument, without a name in front, if they contradict each other, or the transformed dimensions are not the last
/// ones of row-major arrays; those of `operand`.
Expected<DuccFft> read_ducc_fft(const hlo::Instruction& call,
                                const std::function<Expected<hlo::Literal>(std::int64_t)>& operand);

}  // namespace hloom::interp
