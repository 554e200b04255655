// Machine code in memory, ready to call.
//
//   jit::Code code = TRY(jit::Code::link(std::move(objects), {{"hloom_sort", address_of(&sort)}}));
//   auto kernel = reinterpret_cast<base::KernelFunction>(TRY(code.lookup("fusion.2")));
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hloom/error.h"
#include "jit/contiguous_sections.h"
#include "jit/object.h"

namespace hloom::jit {

/// A name that objects may refer to, and where it is.
struct Symbol {
  std::string name;
  void* address = nullptr;
};

/// What compiled code may always refer to: memcpy and its kin, fma, the exactly rounded or exact functions of libm,
/// the conversions and wide divisions for which processors may lack an instruction, and what kernels that check their
/// accesses report with.
std::span<const Symbol> known_symbols();

/// How to link.
struct LinkOptions {
  bool debugger = false;  ///< tell GDB the names (and lines, if there is debug information) of all functions
  bool perf = false;      ///< append the functions' addresses to /tmp/perf-PID.map, where perf looks for names
};

/// The linked objects of a program. Any thread may call what they define as long as this lives.
class Code {
 public:
  /// Gives the object of a part, and may wait for it; called in order.
  using ObjectOf = std::function<Expected<std::shared_ptr<const Object>>(std::size_t part)>;

  /// Links an object for each of `names` into one block: code < read-only < read-write. The one function that object n exports
  /// is known by names[n] and by no other; where there are none, by what the object says. A name resolves to a definition in one of the
  /// objects, to `externals` or to known_symbols(), in this order; nothing else is searched.
  /// Errors: those of ObjectOf; InvalidArgument if an object does not parse; NotFound, naming all, if symbols are unresolved;
  ///         AlreadyExists if two objects define a name; ResourceExhausted, PermissionDenied by the system.
  /// Cost: 30 us for each object.
  static Expected<Code> link_parts(std::span<const std::vector<std::string>> names, const ObjectOf&,
                                   std::span<const Symbol> externals, const LinkOptions& options = {});
  /// Of objects that are known by their own names.
  static Expected<Code> link(const std::vector<Object>& objects, std::span<const Symbol> externals,
                             const LinkOptions& options = {});

  /// The address of a name that an object defines and exports. Thread-safe. Errors: NotFound.
  Expected<void*> lookup(std::string_view name) const;

  ContiguousSections::Statistics statistics() const;
  /// First byte of a part of the block.
  const std::byte* begin(Section) const;

  Code(Code&&) noexcept;
  Code& operator=(Code&&) noexcept;
  ~Code();  ///< Frees the code. Needs: no call into it is under way.

 private:
  struct Impl;
  explicit Code(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hloom::jit
