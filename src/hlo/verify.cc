#include "hlo/verify.h"

#include "hlo/verify_rules.h"

namespace hloom::hlo {

std::vector<Diagnostic> verify(const Module& module, const VerifyOptions& options) {
  Report report(options);
  verify_structure(module, report);
  if (!report.empty()) return report.take();  // the other parts walk what this has checked
  verify_header(module, report);
  verify_entry_placement(module, report);
  for (const Computation& computation : module.computations())
    for (const Instruction& i : computation.instructions()) {
      if (report.full()) return report.take();
      const std::size_t before = report.size();
      verify_instruction(i, report);
      if (report.size() == before) verify_annotations(i, report);
      if (report.size() == before) verify_placement(i, report);
    }
  // Chains and groups are read through shapes and attributes that are good now.
  if (report.empty()) verify_chains(module, report);
  if (report.empty()) verify_sharing(module, report);
  return report.take();
}

Expected<> check_module(const Module& module, const VerifyOptions& options) {
  const std::vector<Diagnostic> found = verify(module, options);
  if (found.empty()) return {};
  std::string message;
  for (const Diagnostic& d : found) {
    if (!message.empty()) message += '\n';
    message += d.code + ' ' + d.message;
  }
  return Error(Code::InvalidArgument, std::move(message));
}

}  // namespace hloom::hlo
