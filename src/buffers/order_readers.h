// Orders the readers of a base before what writes over it.
#pragma once

#include "hlo/module.h"
#include "hloom/error.h"

namespace hloom::buffers {

/// Adds control edges, from each other reader of a base to its in-place writer, and from readers of a loop's carried
/// leaf to what makes the next one (unless that may be fetched beside them, start_copies.h), wherever no path leads the other way. Then a schedule needs no copy for them.
/// Where two write over one base, neither is ordered. Where a path leads the other way, it is written on the writer:
/// decisions["read_after"] = "READER comes after WRITER: WRITER, …, READER".
/// Needs: a module that unshare_steps() has seen. Cost: for each writer, the part of the computation behind it.
void order_readers(hlo::Module&);

}  // namespace hloom::buffers
