// Constants that lie as a kernel reads them.
#pragma once

#include <string>

#include "hlo/instruction.h"

namespace hloom::hlo {

/// Says of an instruction of a fused computation that it is a constant as it was, made of panels in which the constant lies in
/// memory, in this order (kernels/dot_panels.h): a kernel that knows the order reads the panels.
inline void mark_panels(Instruction& i, std::string order) { i.mutable_annotations().decisions["panels"] = std::move(order); }
/// The order; empty: not marked.
inline std::string panels_of(const Instruction& i) {
  const auto found = i.annotations().decisions.find("panels");
  return found == i.annotations().decisions.end() ? std::string() : found->second;
}

}  // namespace hloom::hlo
