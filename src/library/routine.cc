#include "library/routine.h"

#include <algorithm>

#include "base/run_status.h"

namespace hloom::library {

Expected<> run(const RoutinePlan& plan, const std::vector<void*>& operands, const std::vector<void*>& results) {
  base::AlignedBytes workspace(plan.workspace_bytes);
  base::RunStatus status;
  void* no_port = nullptr;
  std::int64_t device = 0;
  for (const Routine& call : plan.calls) {
    std::vector<void*> pointers;
    for (const Argument& a : call.arguments) {
      const auto number = static_cast<std::size_t>(a.number);
      switch (a.kind) {
        case Argument::Kind::Descriptor: pointers.push_back(const_cast<std::byte*>(call.descriptor.data())); break;
        case Argument::Kind::Status: pointers.push_back(&status); break;
        case Argument::Kind::Device: pointers.push_back(&device); break;
        case Argument::Kind::HostPort: pointers.push_back(&no_port); break;
        case Argument::Kind::Operand: pointers.push_back(operands[number]); break;
        case Argument::Kind::Result: pointers.push_back(results[number]); break;
        case Argument::Kind::Workspace: pointers.push_back(workspace.data() + number); break;
      }
    }
    base::AlignedBytes scratch(call.scratch_bytes);
    call.function(pointers.data(), 0, call.blocks, scratch.data());
    if (base::has_failed(status))
      return Error(static_cast<Code>(status.code), std::string(status.message, static_cast<std::size_t>(status.message_bytes)));
  }
  return {};
}

}  // namespace hloom::library
