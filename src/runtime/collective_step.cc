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

}  // namespace

Expected<> run_collective(const Device& device, const collectives::Operation& what, Collective::Part part,
                          collectives::Rendezvous::Buffers buffers, ThreadPool& pool, std::vector<void*>& room) {
  using Part = Collective::Part;
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
