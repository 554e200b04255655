#include "runtime/collective_step.h"

#include <algorithm>
#include <span>

#include "base/try.h"
#include "collectives/share.h"

namespace hloom::runtime {
namespace {

using Members = std::span<const collectives::Rendezvous::Buffers>;

constexpr std::int64_t kThreadBytes = 256 << 10;  // of results; below this a thread's wake costs more than its share

Expected<> work(const collectives::Operation& what, std::int64_t device, Members members, ThreadPool& pool,
                std::vector<void*>& room) {
  const auto share = TRY(collectives::Share::create(what, device, members, room));
  const std::int64_t workers =
      std::min({share.work_bytes() / kThreadBytes, share.num_units(), std::int64_t{pool.num_threads()}});
  if (workers <= 1) {
    share.run(0, share.num_units());
    return {};
  }
  struct Work {
    const collectives::Share& share;
    std::int64_t units;
  } all{share, share.num_units()};
  const ThreadPool::Body body = [](void* context, int w, int n) {
    const Work& part = *static_cast<const Work*>(context);
    part.share.run(first_block(part.units, w, n), first_block(part.units, w + 1, n));
  };
  pool.run(static_cast<int>(workers), body, &all);
  return {};
}

// Whom a device of a program on several has to do with; a program on one has no pairs.
Expected<> transfer(const Device& device, const collectives::Operation& what, collectives::Rendezvous::Buffers arrays) {
  const bool takes = what.kind == collectives::Kind::Take;
  if (device.others != nullptr)
    return takes ? device.others->take(device.number, what, arrays) : device.others->send(device.number, what, arrays);
  if (takes) collectives::clear(what, arrays);
  return {};
}

}  // namespace

Expected<> run_collective(const Device& device, const collectives::Operation& what, Collective::Part part,
                          collectives::Rendezvous::Buffers buffers, ThreadPool& pool, std::vector<void*>& room) {
  using Part = Collective::Part;
  if (what.kind == collectives::Kind::Send || what.kind == collectives::Kind::Take) return transfer(device, what, buffers);
  const bool alone = device.others == nullptr || what.group_of(device.number).size() < 2;
  if (!alone && part != Part::Done) TRY(device.others->arrive(device.number, what, buffers));
  if (part == Part::Start) return {};
  const Members members = alone ? Members(&buffers, 1) : TRY(device.others->wait(device.number, what));
  const Expected<> worked = work(what, device.number, members, pool, room);
  if (alone) return worked;
  if (!worked) device.others->fail(worked.error());
  return device.others->leave(device.number, what);
}

}  // namespace hloom::runtime
