// Collectives, with groups in every notation, and the devices' numbers.
#include <algorithm>
#include <array>
#include <numeric>

#include "generate/reducers.h"
#include "generate/scope.h"
#include "hlo/infer_shape.h"

namespace hloom::generate {
namespace {

using hlo::CollectiveAttr;
using hlo::MeshAxis;
using hlo::ReplicaGroups;

/// Who takes part.
struct Groups {
  CollectiveAttr attr;
  std::int64_t members = 1;  ///< of the first group, in devices
};

std::int64_t new_channel(Scope& s) { return s.module().num_ids() + 1; }

Dims shuffled(Random& random, std::int64_t n) {
  Dims ids = iota(n);
  random.shuffle(ids);
  return ids;
}

std::vector<Dims> explicit_groups(Random& random, std::int64_t ids, std::int64_t size) {
  const Dims all = shuffled(random, ids);
  std::vector<Dims> groups;
  for (std::int64_t at = 0; at < ids; at += size) groups.emplace_back(all.begin() + at, all.begin() + std::min(ids, at + size));
  return groups;
}

hlo::IotaList iota_list(Random& random, std::int64_t ids) {
  if (ids != 4 || random.chance(30)) return {{ids}, {}};
  return {{2, 2}, {1, 0}};
}

// Meshes of one axis or two; a group is all devices along some of them, or along a part of one.
ReplicaGroups mesh_groups(Random& random, std::int64_t ids, std::int64_t size) {
  ReplicaGroups g;
  g.form = ReplicaGroups::Form::Mesh;
  if (ids == 4 && size == 2 && random.chance(40)) {
    g.mesh.axes = {{"x", 4}};
    g.axes = {random.chance(50) ? MeshAxis{"x", 1, 2} : MeshAxis{"x", 2, 2}};
  } else {
    g.mesh.axes = {{"x", ids / size}, {"y", size}};
    if (random.chance(50)) std::swap(g.mesh.axes[0], g.mesh.axes[1]);
    g.axes = {MeshAxis{"y", 0, 0}};
  }
  if (random.chance(30)) {
    g.mesh.device_ids = shuffled(random, ids);
    if (std::ranges::is_sorted(g.mesh.device_ids)) g.mesh.device_ids.clear();  // as they are without
  }
  if (ids == 4 && g.mesh.device_ids.empty() && random.chance(30)) g.mesh.device_iota = hlo::IotaList{{2, 2}, {1, 0}};
  return g;
}

// `written`: they may not be left out.
ReplicaGroups draw_notation(Random& random, std::int64_t ids, std::int64_t size, bool written) {
  ReplicaGroups g;
  const std::int64_t form = random.pick(0, 99);
  if (size == ids && form < 25 && !written) return g;
  if (form < 55) {
    g.groups = explicit_groups(random, ids, size);
  } else if (form < 80) {
    g.form = ReplicaGroups::Form::Iota;
    g.num_groups = ids / size;
    g.group_size = size;
    g.iota = iota_list(random, ids);
  } else {
    g = mesh_groups(random, ids, size);
  }
  return g;
}

std::int64_t draw_size(Random& random, std::int64_t ids) {
  Dims sizes;
  for (std::int64_t size = 1; size <= ids; ++size)
    if (ids % size == 0) sizes.insert(sizes.end(), static_cast<std::size_t>(size), size);
  return random.of(sizes);
}

// Ids are replicas, partitions, replicas with all their partitions, or devices. `folds`: the opcode knows the last two.
Groups draw_groups(Scope& s, bool folds) {
  const std::int64_t replicas = s.module().config().replica_count, partitions = s.module().config().num_partitions;
  Groups g;
  std::int64_t ids = replicas, each = 1;
  if (s.random().chance(replicas == 1 ? 95 : 60)) {
    g.attr.channel_id = new_channel(s);
    if (!folds) {
      ids = partitions;
    } else if (s.random().chance(60)) {
      g.attr.use_global_device_ids = true;
      ids = replicas * partitions;
    } else {
      each = partitions;
    }
  }
  const std::int64_t size = draw_size(s.random(), ids);
  g.attr.groups = draw_notation(s.random(), ids, size, g.attr.use_global_device_ids);
  g.members = size * each;
  return g;
}

// Its result is nobody's but its done's.
Instruction* add_start(Scope& s, Opcode opcode, std::vector<Instruction*> operands, const std::function<void(Instruction&)>& set) {
  Instruction* root = s.computation().root();
  Instruction* i = s.computation().add(opcode, {}, std::move(operands));
  set(*i);
  auto shape = hlo::infer_shape(*i);
  if (!shape) {
    s.computation().set_root(root);
    s.computation().remove(i);
    return nullptr;
  }
  i->set_shape(*std::move(shape));
  return i;
}

void keep_results(Scope& s, Instruction* r, const std::vector<double>& bounds) {
  if (!r->shape().is_tuple()) {
    s.keep(r, bounds[0]);
    return;
  }
  for (std::size_t n = 0; n < bounds.size(); ++n)
    s.keep(s.computation().add_get_tuple_element(r, static_cast<std::int64_t>(n)), bounds[n]);
}

// In one piece, or as a start and a done with others between them. `bounds` of the results.
bool add_collective(Scope& s, Opcode opcode, std::vector<Instruction*> operands, const std::function<void(Instruction&)>& set,
                    const std::vector<double>& bounds, Opcode start, Opcode done) {
  for (const Instruction* operand : operands)
    if (operand == nullptr) return false;
  if (start == opcode || s.random().chance(50)) {
    Instruction* r = s.add(opcode, std::move(operands), set);
    if (r != nullptr) keep_results(s, r, bounds);
    return r != nullptr;
  }
  Instruction* begun = add_start(s, start, std::move(operands), set);
  if (begun == nullptr) return false;
  s.steps(static_cast<int>(s.random().pick(0, 3)));
  Instruction* r = s.add(done, {begun});
  if (r == nullptr)
    s.computation().remove(begun);
  else
    keep_results(s, r, bounds);
  return r != nullptr;
}

// Arrays of one type, the first of them there already.
std::vector<Instruction*> pick_arrays(Scope& s, std::int64_t most) {
  std::vector<Instruction*> arrays{s.pick()};
  if (arrays[0] == nullptr) return {};
  const DType type = arrays[0]->shape().dtype();
  for (std::int64_t n = s.random().pick(1, most); n > 1; --n)
    arrays.push_back(s.make(type, s.random().chance(50) ? arrays[0]->shape().dims() : s.dims(s.random().pick(0, 3))));
  return arrays;
}

double folded_bound(Combiner combiner, double bound, std::int64_t members) {
  if (combiner == Combiner::Add) return bound * static_cast<double>(members);
  return combiner == Combiner::Maximum || combiner == Combiner::Minimum ? bound : kUnbounded;
}

bool draw_all_reduce(Scope& s) {
  std::vector<Instruction*> arrays = pick_arrays(s, 3);
  if (arrays.empty()) return false;
  Groups g = draw_groups(s, true);
  if (g.attr.groups.form == ReplicaGroups::Form::Explicit && !g.attr.groups.empty() && s.random().chance(20)) {
    const auto ids = std::ssize(g.attr.groups.groups) * std::ssize(g.attr.groups.groups[0]);
    g.attr.groups.groups = explicit_groups(s.random(), ids, s.random().pick(1, ids));  // of different sizes
  }
  const std::int64_t devices = s.module().config().replica_count * s.module().config().num_partitions;
  const DType type = arrays[0]->shape().dtype();
  const Combiner combiner = draw_combiner(s, type, false);
  std::vector<double> bounds;
  for (Instruction*& x : arrays) {
    if (combiner == Combiner::Add) x = s.tame(x, static_cast<double>(devices));
    if (x == nullptr) return false;
    bounds.push_back(folded_bound(combiner, s.bound(x), devices));
  }
  hlo::Computation* function = reducer(s, combiner, type);
  const auto set = [&](Instruction& i) {
    i.set_attributes(g.attr);
    i.set_called({function});
  };
  return add_collective(s, Opcode::AllReduce, arrays, set, bounds, Opcode::AllReduceStart, Opcode::AllReduceDone);
}

bool draw_all_gather(Scope& s) {
  Instruction* x = s.pick([](const Instruction& i) { return i.shape().rank() > 0; });
  if (x == nullptr) return false;
  const Groups g = draw_groups(s, true);
  const std::int64_t d = s.random().pick(0, x->shape().rank() - 1);
  std::vector<Instruction*> arrays{x};
  if (s.random().chance(25)) arrays.push_back(s.make(s.type(), x->shape().dims()));
  std::vector<double> bounds;
  for (const Instruction* a : arrays) bounds.push_back(a == nullptr ? 0 : s.bound(a));
  const auto set = [&](Instruction& i) {
    i.set_attributes(g.attr);
    i.set_dimensions({d});
  };
  return add_collective(s, Opcode::AllGather, arrays, set, bounds, Opcode::AllGatherStart, Opcode::AllGatherDone);
}

// An array with a dimension that is a multiple of the members.
Instruction* array_in_parts(Scope& s, std::int64_t members, std::int64_t& dimension) {
  const auto fits = [&](const Instruction& i) {
    return std::ranges::any_of(i.shape().dims(), [&](std::int64_t n) { return n % members == 0; });
  };
  Instruction* x = s.random().chance(70) ? s.pick(fits) : nullptr;
  if (x == nullptr) {
    Dims dims = s.dims(s.random().pick(1, 3));
    std::int64_t& part = dims[static_cast<std::size_t>(s.random().pick(0, std::ssize(dims) - 1))];
    part = std::max<std::int64_t>(1, part / members) * members;
    x = s.make(s.type(), dims);
  }
  if (x == nullptr) return nullptr;
  Dims which;
  for (std::int64_t d = 0; d < x->shape().rank(); ++d)
    if (x->shape().dim(d) % members == 0) which.push_back(d);
  dimension = s.random().of(which);
  return x;
}

bool draw_reduce_scatter(Scope& s) {
  const Groups g = draw_groups(s, true);
  std::int64_t d = 0;
  Instruction* x = array_in_parts(s, g.members, d);
  if (x == nullptr) return false;
  const Combiner combiner = draw_combiner(s, x->shape().dtype(), false);
  if (combiner == Combiner::Add) x = s.tame(x, static_cast<double>(g.members));
  if (x == nullptr) return false;
  hlo::Computation* function = reducer(s, combiner, x->shape().dtype());
  const auto set = [&](Instruction& i) {
    i.set_attributes(g.attr);
    i.set_dimensions({d});
    i.set_called({function});
  };
  const double bound = folded_bound(combiner, s.bound(x), g.members);
  return add_collective(s, Opcode::ReduceScatter, {x}, set, {bound}, Opcode::ReduceScatter, Opcode::ReduceScatter);
}

bool draw_all_to_all(Scope& s) {
  Groups g = draw_groups(s, false);
  std::int64_t d = 0;
  Instruction* x = array_in_parts(s, g.members, d);
  if (x == nullptr) return false;
  g.attr.has_dimension = s.random().chance(60);
  std::vector<Instruction*> arrays{x};
  while (!g.attr.has_dimension && std::ssize(arrays) < g.members) arrays.push_back(s.make(x->shape().dtype(), x->shape().dims()));
  double bound = 0;
  for (const Instruction* a : arrays) bound = std::max(bound, a == nullptr ? 0 : s.bound(a));
  const auto set = [&](Instruction& i) {
    i.set_attributes(g.attr);
    if (g.attr.has_dimension) i.set_dimensions({d});
  };
  const std::vector<double> bounds(arrays.size(), bound);
  return add_collective(s, Opcode::AllToAll, arrays, set, bounds, Opcode::AllToAll, Opcode::AllToAll);
}

void draw_pairs(Scope& s, std::int64_t ids, hlo::PermuteAttr& attr) {
  const Dims from = shuffled(s.random(), ids), to = shuffled(s.random(), ids);
  const std::int64_t pairs = s.random().chance(60) ? ids : s.random().pick(0, ids);
  for (std::int64_t k = 0; k < pairs; ++k) attr.pairs.emplace_back(from[static_cast<std::size_t>(k)], to[static_cast<std::size_t>(k)]);
}

hlo::PermuteAttr draw_permutation(Scope& s) {
  hlo::PermuteAttr attr;
  std::int64_t ids = s.module().config().replica_count;
  if (s.random().chance(ids == 1 ? 95 : 50)) {
    attr.channel_id = new_channel(s);
    ids = s.module().config().num_partitions;
  }
  draw_pairs(s, ids, attr);
  return attr;
}

// Who gets nothing has zeros.
bool draw_permute(Scope& s) {
  Instruction* x = s.pick();
  if (x == nullptr) return false;
  const hlo::PermuteAttr attr = draw_permutation(s);
  const double bound = s.bound(x);
  return add_collective(s, Opcode::CollectivePermute, {x}, [&](Instruction& i) { i.set_attributes(attr); }, {bound},
                        Opcode::CollectivePermuteStart, Opcode::CollectivePermuteDone);
}

// From the first of each group.
bool draw_collective_broadcast(Scope& s) {
  Instruction* x = s.pick();
  if (x == nullptr) return false;
  const Groups g = draw_groups(s, false);
  return add_collective(s, Opcode::CollectiveBroadcast, {x}, [&](Instruction& i) { i.set_attributes(g.attr); }, {s.bound(x)},
                        Opcode::CollectiveBroadcast, Opcode::CollectiveBroadcast);
}

// The fold for the first of each group or for one that an operand names, zeros for the others.
bool draw_collective_reduce(Scope& s) {
  Instruction* x = s.pick();
  if (x == nullptr) return false;
  Groups g = draw_groups(s, true);
  const std::int64_t devices = s.module().config().replica_count * s.module().config().num_partitions;
  std::vector<Instruction*> operands;
  const Combiner combiner = draw_combiner(s, x->shape().dtype(), false);
  if (combiner == Combiner::Add) x = s.tame(x, static_cast<double>(devices));
  if (x == nullptr) return false;
  operands.push_back(x);
  if (g.members == devices && s.random().chance(50)) {
    g.attr.has_dynamic_root = true;
    operands.push_back(s.scalar(s.random().chance(50) ? DType::S32 : DType::U32, s.random().pick(0, devices - 1)));
  }
  hlo::Computation* function = reducer(s, combiner, x->shape().dtype());
  const auto set = [&](Instruction& i) {
    i.set_attributes(g.attr);
    i.set_called({function});
  };
  const double bound = folded_bound(combiner, s.bound(x), devices);
  return add_collective(s, Opcode::CollectiveReduce, operands, set, {bound}, Opcode::CollectiveReduce, Opcode::CollectiveReduce);
}

// The same sizes and offsets on all devices, within what is there.
bool draw_ragged(Scope& s) {
  Instruction* x = s.pick([](const Instruction& i) { return i.shape().rank() > 0; });
  if (x == nullptr) return false;
  const Groups g = draw_groups(s, false);
  Dims dims = x->shape().dims();
  const std::int64_t rows = dims[0], room = dims[0] = s.random().pick(0, 9), pieces = s.random().pick(1, 2);
  Instruction* output = s.make(x->shape().dtype(), dims);
  const Dims form = s.random().chance(40) ? Dims{g.members, pieces} : Dims{g.members * pieces};
  hlo::Literal from(Shape::array(DType::S32, form)), sizes = from, into = from;
  for (std::size_t k = 0; k < static_cast<std::size_t>(g.members * pieces); ++k) {
    const std::int64_t size = s.random().pick(0, std::min(rows, room));
    sizes.mutable_data<std::int32_t>()[k] = static_cast<std::int32_t>(size);
    from.mutable_data<std::int32_t>()[k] = static_cast<std::int32_t>(s.random().pick(0, rows - size));
    into.mutable_data<std::int32_t>()[k] = static_cast<std::int32_t>(s.random().pick(0, room - size));
  }
  const auto constant = [&](hlo::Literal literal) { return s.keep(s.computation().add_constant(std::move(literal)), kUnbounded); };
  Instruction* size = constant(std::move(sizes));
  const double bound = std::max(s.bound(x), output == nullptr ? 0 : s.bound(output));
  return add_collective(s, Opcode::RaggedAllToAll, {x, output, constant(std::move(from)), size, constant(std::move(into)), size},
                        [&](Instruction& i) { i.set_attributes(g.attr); }, {bound}, Opcode::RaggedAllToAll, Opcode::RaggedAllToAll);
}

// From a place in the source's array to one in the own.
bool draw_permute_of_slices(Scope& s) {
  Instruction* x = s.pick();
  if (x == nullptr) return false;
  Dims dims = x->shape().dims(), sizes;
  for (std::int64_t& d : dims) {
    const std::int64_t had = d;
    d = s.random().chance(50) ? d : s.random().pick(0, 9);
    sizes.push_back(s.random().pick(0, std::min(had, d)));
  }
  Instruction* output = s.make(x->shape().dtype(), dims);
  if (output == nullptr) return false;
  hlo::PermuteAttr attr = draw_permutation(s);
  attr.slice_sizes = {sizes};
  const auto offsets = [&] {
    std::vector<Instruction*> all;
    for (std::size_t d = 0; d < sizes.size(); ++d) all.push_back(s.scalar(DType::S32, s.random().pick(-1, 6)));
    return s.computation().add_tuple(all);
  };
  Instruction *at = offsets(), *into = offsets();
  return add_collective(s, Opcode::CollectivePermute, {x, output, at, into}, [&](Instruction& i) { i.set_attributes(attr); },
                        {std::max(s.bound(x), s.bound(output))}, Opcode::CollectivePermuteStart, Opcode::CollectivePermuteDone);
}

// To another device and from one, with others between the beginning and the end. Each has its channel: those of none would meet in
// the order in which they happen to run.
bool draw_transfer(Scope& s) {
  Instruction* x = s.pick();
  if (x == nullptr) return false;
  const std::int64_t replicas = s.module().config().replica_count, partitions = s.module().config().num_partitions;
  hlo::PermuteAttr drawn;
  drawn.channel_id = new_channel(s);
  draw_pairs(s, partitions > 1 ? partitions : replicas, drawn);
  std::string pairs = "{";
  for (const auto& [source, target] : drawn.pairs)
    pairs += (pairs.size() > 1 ? ",{" : "{") + std::to_string(source) + "," + std::to_string(target) + "}";
  const auto set = [&](Instruction& i) {
    i.mutable_attr<hlo::TransferAttr>().channel_id = drawn.channel_id;
    const bool begins = i.opcode() == Opcode::Send || i.opcode() == Opcode::Recv;
    if (begins) i.mutable_annotations().frontend_attributes["_xla_send_recv_source_target_pairs"] = pairs + "}";
  };
  Instruction* token = s.add(Opcode::AfterAll, {});
  const Shape shape = Shape::array(x->shape().dtype(), x->shape().dims());
  const Shape given = Shape::tuple({shape, Shape::scalar(DType::U32), Shape::token()});
  Instruction* recv = s.add(Opcode::Recv, {token}, set, given);
  Instruction* send = s.add(Opcode::Send, {x, token}, set);
  if (recv == nullptr || send == nullptr) return false;
  s.steps(static_cast<int>(s.random().pick(0, 2)));
  Instruction* came = s.add(Opcode::RecvDone, {recv}, set);
  s.add(Opcode::SendDone, {send}, set);
  if (came == nullptr) return false;
  came->add_control_predecessor(send);  // nobody waits who has not sent
  return s.keep(s.computation().add_get_tuple_element(came, 0), s.bound(x)) != nullptr;
}

bool draw_device_number(Scope& s) {
  Instruction* number = s.add(s.random().chance(50) ? Opcode::PartitionId : Opcode::ReplicaId, {});
  return s.keep(number, 4) != nullptr;
}

constexpr std::array kFamilies = {
    Family{30, draw_all_reduce}, Family{20, draw_all_gather}, Family{15, draw_reduce_scatter},       Family{15, draw_all_to_all},
    Family{20, draw_permute},    Family{8, draw_collective_broadcast}, Family{10, draw_device_number},
    Family{8, draw_collective_reduce}, Family{8, draw_ragged}, Family{8, draw_permute_of_slices}, Family{10, draw_transfer},
};

}  // namespace

std::span<const Family> collective_families() { return kFamilies; }

}  // namespace hloom::generate
