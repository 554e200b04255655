// The processor that code is made for.
#pragma once

#include <cstdint>
#include <string>

namespace hloom::base {

/// A processor as LLVM names it, and what kernels are planned by. jit::host_target() and jit::target_named() make them.
struct Target {
  std::string triple;             ///< "x86_64-pc-linux-gnu"
  std::string cpu;                ///< "znver5"
  std::string features;           ///< "+avx512f,-amx-tile,…", all that differ from the cpu's own; may be empty
  std::int64_t vector_bytes = 16; ///< of the widest vector register
  std::int64_t vector_registers = 16;
  bool has_fma = false;
  bool has_masks = false;         ///< loads and stores under a mask of any lanes at full speed (AVX-512, SVE)
  bool has_byte_products = false; ///< four products of bytes added to 32 bits at once, in registers of vector_bytes (VNNI)
  std::int64_t l1_bytes = 32 << 10;  ///< data cache of a core
  std::int64_t l2_bytes = 1 << 20;   ///< cache of a core
  std::int64_t l3_bytes = 32 << 20;  ///< shared cache

  bool operator==(const Target&) const = default;
};

}  // namespace hloom::base
