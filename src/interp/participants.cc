#include <algorithm>
#include <numeric>

#include "base/fail.h"
#include "base/try.h"
#include "hlo/participants.h"
#include "interp/collective.h"
#include "interp/fabric.h"
#include "interp/index.h"

namespace hloom::interp {
namespace {

using hlo::GroupMode;

// The devices that an id of the mode stands for, as seen from this device.
void add_devices(const Place& place, GroupMode mode, std::int64_t id, std::vector<std::int64_t>& out) {
  switch (mode) {
    case GroupMode::CrossReplica: return out.push_back(id * place.partitions + place.partition());
    case GroupMode::CrossPartition: return out.push_back(place.replica() * place.partitions + id);
    case GroupMode::FlattenedId: return out.push_back(id);
    case GroupMode::CrossReplicaAndPartition:
      for (std::int64_t p = 0; p < place.partitions; ++p) out.push_back(id * place.partitions + p);
  }
}

std::int64_t num_ids(const Place& place, GroupMode mode) {
  switch (mode) {
    case GroupMode::CrossReplica:
    case GroupMode::CrossReplicaAndPartition: return place.replicas;
    case GroupMode::CrossPartition: return place.partitions;
    case GroupMode::FlattenedId: return place.num_devices();
  }
  return 0;
}

}  // namespace

Expected<std::vector<std::int64_t>> everyone(const Call& call) {
  const GroupMode mode = TRY(hlo::group_mode(call.instruction));
  std::vector<std::int64_t> devices;
  for (std::int64_t id = 0; id < num_ids(call.machine.place(), mode); ++id)
    add_devices(call.machine.place(), mode, id, devices);
  return devices;
}

Expected<std::vector<std::int64_t>> group_of(const Call& call) {
  const auto& attr = call.instruction.attr<hlo::CollectiveAttr>();
  if (attr.groups.empty()) return everyone(call);
  const GroupMode mode = TRY(hlo::group_mode(call.instruction));
  const Place& place = call.machine.place();
  for (const std::vector<std::int64_t>& group : attr.groups.expand()) {
    std::vector<std::int64_t> devices;
    for (const std::int64_t id : group) {
      if (id < 0 || id >= num_ids(place, mode))
        return wrong(call, "names participant ", id, " of ", num_ids(place, mode));
      add_devices(place, mode, id, devices);
    }
    if (std::find(devices.begin(), devices.end(), place.device) != devices.end()) return devices;
  }
  return std::vector<std::int64_t>();
}

Expected<std::vector<Value>> exchange(const Call& call, const std::vector<std::int64_t>& group, Value mine) {
  const Place& place = call.machine.place();
  if (std::find(group.begin(), group.end(), place.device) == group.end())
    return wrong(call, "device ", place.device, " is in no group");
  if (group.size() == 1) return std::vector<Value>{std::move(mine)};
  return call.machine.fabric()->exchange(place.device, call.instruction, group, std::move(mine));
}

std::int64_t rank_in(const Call& call, const std::vector<std::int64_t>& group) {
  return std::find(group.begin(), group.end(), call.machine.place().device) - group.begin();
}

Value operands_of(const Call& call) {
  return Value::tuple(std::vector<Value>(call.operands.begin(), call.operands.end()));
}

hlo::Literal cropped(const hlo::Literal& array, const Dims& sizes) {
  if (sizes == array.shape().dims()) return array;
  hlo::Literal result(Shape::array(array.dtype(), sizes));
  copy_box(result.mutable_bytes().data(), {0, row_major(sizes)}, array.bytes().data(),
           {0, row_major(array.shape().dims())}, sizes, byte_width(array.dtype()));
  return result;
}

std::vector<hlo::Literal> agreed(const std::vector<Value>& given, std::int64_t i) {
  Dims sizes = given[0].element(i).array().shape().dims();
  for (const Value& member : given) {
    const Dims& own = member.element(i).array().shape().dims();
    for (std::size_t d = 0; d < sizes.size(); ++d) sizes[d] = std::min(sizes[d], own[d]);
  }
  std::vector<hlo::Literal> arrays;
  for (const Value& member : given) arrays.push_back(cropped(member.element(i).array(), sizes));
  return arrays;
}

hlo::Literal piece_of(const hlo::Literal& array, std::int64_t dimension, std::int64_t index, std::int64_t count) {
  const auto d = static_cast<std::size_t>(dimension);
  Dims sizes = array.shape().dims();
  sizes[d] /= count;
  Strided from{0, row_major(array.shape().dims())};
  from.offset = index * sizes[d] * from.strides[d];
  hlo::Literal piece(Shape::array(array.dtype(), sizes));
  copy_box(piece.mutable_bytes().data(), {0, row_major(sizes)}, array.bytes().data(), from, sizes,
           byte_width(array.dtype()));
  return piece;
}

hlo::Literal joined(const std::vector<hlo::Literal>& pieces, std::int64_t dimension, const Shape& shape) {
  const auto d = static_cast<std::size_t>(dimension);
  hlo::Literal result(shape);
  Strided to{0, row_major(shape.dims())};
  for (const hlo::Literal& piece : pieces) {
    const Dims& sizes = piece.shape().dims();
    copy_box(result.mutable_bytes().data(), to, piece.bytes().data(), {0, row_major(sizes)}, sizes,
             byte_width(shape.dtype()));
    to.offset += sizes[d] * to.strides[d];
  }
  return result;
}

}  // namespace hloom::interp
