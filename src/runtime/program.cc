#include "runtime/program.h"

#include <sstream>
#include <string_view>

namespace hloom::runtime {
namespace {

std::string_view name(Allocation::Kind kind) {
  switch (kind) {
    case Allocation::Kind::Arena: return "arena";
    case Allocation::Kind::Parameter: return "parameter";
    case Allocation::Kind::Result: return "result";
    case Allocation::Kind::Constant: return "constant";
    case Allocation::Kind::Status: return "status";
    case Allocation::Kind::Device: return "device";
    case Allocation::Kind::HostPort: return "host";
  }
  return "?";
}

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {}

  std::string print() {
    out_ << "program " << program_.name << " {\n";
    for (std::size_t i = 0; i < program_.allocations.size(); ++i)
      out_ << "  memory " << i << " = " << of(program_.allocations[i]) << ": "
           << program_.allocations[i].size_bytes << " bytes\n";
    if (num_devices(program_) > 1)
      out_ << "  devices " << program_.replicas << " replicas x " << program_.partitions << " partitions\n";
    for (const Alias& alias : program_.aliases)
      out_ << "  alias result " << alias.result << " with parameter " << alias.parameter << "\n";
    print(program_.steps);
    out_ << "}\n";
    return std::move(out_).str();
  }

 private:
  static std::string of(const Allocation& allocation) {
    std::string text(name(allocation.kind));
    using Kind = Allocation::Kind;
    if (allocation.kind == Kind::Parameter || allocation.kind == Kind::Result || allocation.kind == Kind::Constant)
      text += " " + std::to_string(allocation.number);
    if (allocation.memory_space != 0) text += " in space " + std::to_string(allocation.memory_space);
    return text;
  }

  // memory 2, bytes 64 to 128: "2[64:128]"
  static std::string text(const Slice& slice) {
    return std::to_string(slice.allocation) + "[" + std::to_string(slice.offset) + ":" +
           std::to_string(slice.offset + slice.size_bytes) + "]";
  }

  std::ostream& line() { return out_ << std::string(static_cast<std::size_t>(2 * depth_), ' '); }

  void print(const Steps& steps) {
    for (const Step& step : steps) {
      line() << number_++ << ": ";
      std::visit([&](const auto& of) { print(of); }, step.of);
    }
  }

  void block(std::string_view title, const Steps& steps) {
    line() << title << " {\n";
    ++depth_;
    print(steps);
    --depth_;
    line() << "}\n";
  }

  void print(const Call& call) {
    out_ << "call " << call.name << "(";
    for (std::size_t i = 0; i < call.arguments.size(); ++i) out_ << (i > 0 ? ", " : "") << text(call.arguments[i]);
    out_ << ") blocks " << call.blocks << " workers " << call.max_workers;
    for (const std::int64_t cut : call.cuts) out_ << " cut " << cut;
    if (call.scratch_bytes > 0) out_ << " scratch " << call.scratch_bytes;
    if (call.scratch_room.size_bytes > 0) out_ << " in " << text(call.scratch_room);
    if (call.may_fail) out_ << " may fail";
    if (call.forks) out_ << " forks, scratch " << call.forked_scratch_bytes;
    out_ << "\n";
  }

  void print(const Start& start) {
    out_ << "start " << start.number << ": ";
    std::visit([&](const auto& of) { print(of); }, start.of);
  }

  void print(const Finish& finish) { out_ << "finish " << finish.number << "\n"; }

  void print(const Copy& copy) { out_ << "copy " << text(copy.from) << " to " << text(copy.to) << "\n"; }

  void print(const While& loop) {
    if (loop.trip_count) {
      out_ << "repeat " << *loop.trip_count << "\n";
    } else {
      out_ << "while " << text(loop.predicate) << "\n";
      block("condition", loop.condition);
    }
    block("body", loop.body);
  }

  void print(const Conditional& conditional) {
    out_ << (conditional.selector_is_pred ? "if " : "switch ") << text(conditional.selector) << "\n";
    for (std::size_t i = 0; i < conditional.branches.size(); ++i)
      block("branch " + std::to_string(i), conditional.branches[i]);
  }

  void print(const DeviceNumber& number) {
    out_ << (number.of == DeviceNumber::Of::Replica ? "replica" : "partition") << " number to " << text(number.to) << "\n";
  }

  void print(const Collective& collective) {
    using Part = Collective::Part;
    const collectives::Operation& operation = program_.collectives[static_cast<std::size_t>(collective.number)];
    out_ << (collective.part == Part::Start  ? "start "
             : collective.part == Part::Done ? "done "
                                             : "collective ")
         << operation.name << "(";
    for (std::size_t i = 0; i < collective.arguments.size(); ++i)
      out_ << (i > 0 ? ", " : "") << text(collective.arguments[i]);
    out_ << ")\n";
  }

  const Program& program_;
  std::ostringstream out_;
  int number_ = 0;
  int depth_ = 1;
};

}  // namespace

std::string to_string(const Program& program) { return Printer(program).print(); }

}  // namespace hloom::runtime
