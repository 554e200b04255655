// Which memory of the entry's parameters a run may write over.
#pragma once

#include <cstdint>
#include <vector>

#include "hlo/module.h"

namespace hloom::buffers {

/// By leaf of the entry's parameters, numbered depth first over all of them.
struct Donations {
  std::vector<std::int64_t> first_leaf;      ///< of each parameter
  std::vector<bool> donated;                 ///< may be written over once it is read no more
  std::vector<std::int64_t> aliased_result;  ///< leaf of the result whose memory this is as well, or -1
};

Donations donations(const hlo::Module&);

}  // namespace hloom::buffers
