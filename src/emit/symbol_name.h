// Names of kernels as linkers and C know them.
#pragma once

#include <string>
#include <string_view>

namespace hloom::emit {

/// The C name of the function of a kernel: "fusion.2" is "hloom_fusion_2e2". Different names give different ones:
/// letters and digits stay, an underscore doubles, any other byte is an underscore and two hex digits.
std::string symbol_name(std::string_view kernel);

/// What kernels call to run another kernel on all threads:
/// void hloom_fork_join(KernelFunction callee, void* const* buffers, int64_t blocks, int64_t scratch_bytes).
inline constexpr std::string_view kForkJoin = "hloom_fork_join";

/// What kernels that check their accesses call where one is wrong: base::report_outside().
inline constexpr std::string_view kReportOutside = "hloom_report_outside";

}  // namespace hloom::emit
