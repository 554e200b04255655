#include "library/lapack_library.h"

#include <dlfcn.h>

#include <array>

#include "base/check.h"
#include "base/fail.h"

namespace hloom::library {
namespace {

// By Fortran's names, without the letter of the type. Real and complex ones differ where symmetric becomes Hermitian.
struct Names {
  const char *real, *complex;
};
constexpr std::array<Names, kNumFortran> kNames = {{{"potrf", "potrf"}, {"trsm", "trsm"}, {"getrf", "getrf"},
                                                    {"geqrf", "geqrf"}, {"geqp3", "geqp3"}, {"orgqr", "ungqr"},
                                                    {"ormqr", "unmqr"}, {"syevd", "heevd"}, {"geev", "geev"},
                                                    {"gesdd", "gesdd"}, {"gesvd", "gesvd"}, {"gees", "gees"},
                                                    {"gehrd", "gehrd"}, {"sytrd", "hetrd"}, {"gtsv", "gtsv"}}};

struct Library {
  std::array<std::array<void*, 4>, kNumFortran> functions = {};
  std::string problem;  // empty: all functions are there
};

#ifdef HLOOM_OPENBLAS

std::string load(Library& library) {
  void* handle = dlopen(HLOOM_OPENBLAS, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return std::string(HLOOM_OPENBLAS ", which this hloom was built for, does not load: ") + dlerror();
  for (std::size_t f = 0; f < kNumFortran; ++f)
    for (std::size_t type = 0; type < 4; ++type) {
      const std::string name = std::string(1, "sdcz"[type]) + (type < 2 ? kNames[f].real : kNames[f].complex) + "_";
      library.functions[f][type] = dlsym(handle, name.c_str());
      if (library.functions[f][type] == nullptr) return HLOOM_OPENBLAS " has no " + name;
    }
  // OpenBLAS starts threads as it is loaded. One thread is asked for; the others end.
  if (void* set = dlsym(handle, "openblas_set_num_threads")) reinterpret_cast<void (*)(int)>(set)(1);
  if (void* shutdown = dlsym(handle, "blas_thread_shutdown_")) reinterpret_cast<int (*)()>(shutdown)();
  return {};
}

#else

std::string load(Library&) { return "this hloom was built without OpenBLAS"; }

#endif

const Library& library() {
  static const Library loaded = [] {
    Library l;
    l.problem = load(l);
    return l;
  }();
  return loaded;
}

}  // namespace

Expected<> want_lapack() {
  if (library().problem.empty()) return {};
  return Error(Code::Unimplemented, library().problem);
}

std::string lapack_version() {
#ifdef HLOOM_OPENBLAS
  return "LAPACK: " HLOOM_OPENBLAS ", loaded when needed";
#else
  return "LAPACK: none";
#endif
}

void* fortran_function(Fortran f, std::size_t type) {
  void* function = library().functions[static_cast<std::size_t>(f)][type];
  HLOOM_CHECK(function != nullptr);
  return function;
}

}  // namespace hloom::library
