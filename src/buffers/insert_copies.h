// Copies where memory cannot be shared.
#pragma once

#include <string>
#include <vector>

#include "hlo/module.h"
#include "hloom/error.h"

namespace hloom::buffers {

/// What became of one place at which a value's memory should be that of another.
struct InPlaceDecision {
  enum class Kind : std::uint8_t {
    LoopEntry,    ///< a leaf that enters a loop
    LoopCarry,    ///< a leaf that comes back to a loop's head
    Branch,       ///< a branch's result
    Update,       ///< the base of a window update
    Scatter,      ///< the base of a scatter
    Alias,        ///< an operand that a fusion or custom call is declared to write over
    Concatenate,  ///< the pieces of a concatenate
    Slice,        ///< a stretch of its operand's bytes
    Result,       ///< what the entry returns
    Donation,     ///< what the entry returns in the memory of a donated parameter
    LateReader,   ///< a base that is read after it was written over: saved before
  };
  Kind kind = Kind::Update;
  std::string at;               ///< name of the while, conditional, update or root
  std::int64_t leaf = 0;
  std::int64_t bytes = 0;       ///< of the leaf; of a concatenate, those that it copies
  int depth = 0;                ///< loops around the copy
  bool in_place = true;
  std::string reason;           ///< why it is copied, and what would help; empty if it is not
  std::string copy;             ///< name of the copy instruction
};

std::string_view name(InPlaceDecision::Kind);

/// Adds the copies without which a loop, conditional, in-place instruction or result would destroy a value that is
/// still needed, and no others: edges are given shared memory in the order of bytes times how often a copy would
/// be made (loops run as often as is known), wherever the
/// lives of what would share do not meet. Copies at one place happen as if at once: they are ordered, and cycles (two
/// carried leaves that swap) broken by one temporary. Plain copies found in the module are removed first.
/// The module's order stays, with the copies in it. Then, with `free_parts`, concatenates and slices whose parts may lie
/// where they belong become free (parts.h).
/// Needs: unshare_steps(), a scheduled module.
/// Source: Boissinot et al., "Revisiting Out-of-SSA Translation", 2009: copies first, then coalescing by interference.
std::vector<InPlaceDecision> insert_copies(hlo::Module&, bool free_parts = true);

}  // namespace hloom::buffers
