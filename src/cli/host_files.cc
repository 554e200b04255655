#include "cli/host_files.h"

#include <set>

#include "arrays/npz.h"
#include "base/fail.h"
#include "base/try.h"
#include "cli/output.h"

namespace hloom::cli {

using hlo::Instruction;
using hlo::Opcode;

/// Arrays of one file, of which each is to be taken.
class HostArrays {
 public:
  HostArrays(arrays::Npz npz, std::string path) : npz_(std::move(npz)), path_(std::move(path)) {}

  const arrays::Array* find(const std::string& prefix, std::size_t number) const {
    return npz_.find(prefix + std::to_string(number));
  }
  const std::string& path() const { return path_; }
  const std::vector<std::string>& names() const { return npz_.names(); }

 private:
  arrays::Npz npz_;
  std::string path_;
};

namespace {

constexpr std::int64_t kFeed = -1;

std::vector<Shape> arrays_of(const Shape& shape) {
  std::vector<Shape> arrays;
  for (const Shape* leaf : leaves(shape))
    if (leaf->is_array()) arrays.push_back(Shape::array(leaf->dtype(), leaf->dims()));
  return arrays;
}

std::int64_t channel_of(const Instruction& i) {
  if (const auto* transfer = i.attributes().get_if<hlo::TransferAttr>()) return transfer->channel_id.value_or(0);
  return kFeed;
}

std::string prefix_of(const char* feed, const char* channel, std::int64_t number) {
  return number == kFeed ? std::string(feed) : channel + std::to_string(number) + "_";
}

HostQueue& queue_to(HostTransfers& host, std::int64_t channel) {
  return channel == kFeed ? host.infeed() : host.to_device(channel);
}
HostQueue& queue_from(HostTransfers& host, std::int64_t channel) {
  return channel == kFeed ? host.outfeed() : host.from_device(channel);
}

std::string path_of(const std::string& path, std::size_t device, std::size_t devices) {
  return devices == 1 ? path : device_path(path, static_cast<std::int64_t>(device));
}

}  // namespace

Expected<> HostFiles::fill(HostQueue& queue, const Queue& what, const HostArrays& arrays) {
  std::size_t number = 0;
  for (std::size_t n = 0; arrays.find(what.prefix, number) != nullptr; ++n) {
    HostValue value;
    for (const Shape& shape : arrays_of(what.values[n % what.values.size()])) {
      const std::string name = what.prefix + std::to_string(number);
      const arrays::Array* array = arrays.find(what.prefix, number++);
      if (array == nullptr) return fail(Code::InvalidArgument, arrays.path(), ": has no array ", name, " to make a value whole");
      const hlo::Literal literal = TRY(arrays::to_literal(*array, shape, arrays.path() + ": " + name));
      value.push_back({shape, {literal.bytes().begin(), literal.bytes().end()}});
    }
    if (value.empty()) break;
    TRY(queue.push(std::move(value)));
  }
  return {};
}

Expected<HostFiles> HostFiles::read(const Options& options, const hlo::Module& module, const Devices& devices) {
  HostFiles files;
  files.transfers_ = std::make_unique<std::vector<HostTransfers>>(static_cast<std::size_t>(devices.count()));
  for (const hlo::Computation& c : module.computations())
    for (const Instruction& i : c.instructions()) {
      const bool takes = i.opcode() == Opcode::Infeed || i.opcode() == Opcode::RecvDone;
      if (!takes && i.opcode() != Opcode::Outfeed && i.opcode() != Opcode::Send) continue;
      const std::int64_t channel = channel_of(i);
      Queue& queue = (takes ? files.takes_ : files.gives_)[channel];
      queue.prefix = takes ? prefix_of("infeed", "recv", channel) : prefix_of("outfeed", "send", channel);
      queue.values.push_back(takes ? i.shape().element(0) : i.operand(0)->shape());
    }
  for (std::size_t k = 0; k < files.transfers_->size(); ++k) {
    HostTransfers& host = (*files.transfers_)[k];
    if (!options.host_in.empty()) {
      const std::string path = file_of_device(options.host_in, static_cast<std::int64_t>(k), devices.count());
      const HostArrays arrays(TRY(arrays::read_npz(path)), path);
      std::set<std::string> known;
      for (const auto& [channel, queue] : files.takes_) {
        TRY(files.fill(queue_to(host, channel), queue, arrays));
        for (std::size_t n = 0; arrays.find(queue.prefix, n) != nullptr; ++n) known.insert(queue.prefix + std::to_string(n));
      }
      for (const std::string& name : arrays.names())
        if (!known.contains(name)) return fail(Code::InvalidArgument, path, ": nothing takes the array ", name);
    }
    for (const auto& [channel, queue] : files.takes_) queue_to(host, channel).close();
  }
  return files;
}

Expected<> HostFiles::write(const Options& options) {
  for (std::size_t k = 0; k < transfers_->size(); ++k) {
    HostTransfers& host = (*transfers_)[k];
    for (const auto& [channel, queue] : takes_)
      if (const std::size_t left = queue_to(host, channel).size(); left > 0)
        say("hloom: the program left " + std::to_string(left) + " values of " + queue.prefix + "… where they are");
    arrays::Npz npz;
    for (const auto& [channel, queue] : gives_) {
      HostQueue& given = queue_from(host, channel);
      for (std::size_t number = 0; given.size() > 0;)
        for (HostArray& array : TRY(given.pop()))
          npz.add(queue.prefix + std::to_string(number++),
                  arrays::to_array(hlo::Literal::from_bytes(array.shape, std::move(array.bytes))));
    }
    if (options.host_out.empty()) {
      if (!npz.names().empty())
        say("hloom: the program gave its host " + std::to_string(npz.names().size()) + " arrays; --host-out=FILE writes them");
      continue;
    }
    TRY(uninterrupted([&] { return arrays::write_npz(path_of(options.host_out, k, transfers_->size()), npz); }));
  }
  return {};
}

}  // namespace hloom::cli
