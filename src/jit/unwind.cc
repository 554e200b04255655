#include "jit/unwind.h"

#include <cstdlib>  // tells the C library

#if defined(__GLIBC__)
// Of libgcc, without a header. The table is an array of sections, with null at its end.
extern "C" void __register_frame_table(void* table);
extern "C" void __deregister_frame(void* table);
#endif

namespace hloom::jit {

void UnwindTables::publish() {
  if (sections_.empty()) return;
  sections_.push_back(nullptr);
#if defined(__GLIBC__)
  __register_frame_table(sections_.data());
  is_published_ = true;
#endif
}

UnwindTables::~UnwindTables() {
#if defined(__GLIBC__)
  if (is_published_) __deregister_frame(sections_.data());
#endif
}

}  // namespace hloom::jit
