// Walks of the stack through compiled code.
#pragma once

#include <vector>

namespace hloom::jit {

/// The unwind tables of a program's objects, known to the unwinder (`_Unwind_Backtrace`, so backtrace(), exceptions and
/// sanitizers) from publish() on until this goes. One entry of the unwinder's list is for the whole program, however
/// many objects it has: the list is searched for each frame. Thread-safe for distinct instances.
class UnwindTables {
 public:
  UnwindTables() = default;
  UnwindTables(const UnwindTables&) = delete;
  UnwindTables& operator=(const UnwindTables&) = delete;
  ~UnwindTables();

  /// An .eh_frame section that ends with a zero length. Needs: stays where it is while this lives; publish() comes later.
  void add(void* section) { sections_.push_back(section); }
  /// Needs: called at most once, when all that add() was told of is relocated. Where the unwinder is not that of
  /// glibc's systems it does nothing.
  void publish();

 private:
  std::vector<void*> sections_;  ///< ends with null once published
  bool is_published_ = false;
};

}  // namespace hloom::jit
