// Concatenates and slices that cost nothing: arrays whose bytes are a stretch of another array's.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hlo/module.h"

namespace hloom::buffers {

/// A kernel that would only move stretches of bytes. Of a concatenate along the slowest dimension each operand is a part
/// of the result; the result of a slice of such a stretch is a part of the operand.
struct Parts {
  enum class Kind : std::uint8_t { Concatenate, Slice };
  Kind kind = Kind::Concatenate;
  std::vector<std::int64_t> offsets;  ///< bytes: of each operand in the result; of the slice in its operand
};

/// Nothing for what is no such kernel, or of few bytes.
std::optional<Parts> parts_of(const hlo::Instruction&);

/// Whether the plan has put the parts where they belong, so that the instruction is no step: decisions["free"] = "yes".
bool is_free(const hlo::Instruction&);
void set_free(hlo::Instruction&, bool);

/// Whether a computation that runs as steps has such kernels.
bool have_parts(const hlo::Module&);

}  // namespace hloom::buffers
