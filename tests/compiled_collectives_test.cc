// Collectives of random types, shapes, layouts and groups on two to eight devices: compiled programs give what the
// interpreter gives, to the bit, on any number of threads.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <sstream>

#include "arrays/compare.h"
#include "compiler/compile.h"
#include "compiler/execute_literals.h"
#include "compiler/read_program.h"
#include "hlo/narrow_float.h"
#include "interp/interpret.h"

namespace hloom {
namespace {

using ByDevice = std::vector<std::vector<hlo::Literal>>;

ByDevice compiled(const std::string& text, const ByDevice& arguments, int threads, bool regions) {
  auto module = compiler::read_program(text);
  EXPECT_TRUE(module) << module.error().message() << "\n" << text;
  if (!module) return {};
  compiler::Options options;
  options.regions = regions;
  options.verify_each = true;
  auto program = compiler::compile(std::move(*module), options);
  EXPECT_TRUE(program) << program.error().message() << "\n" << text;
  if (!program) return {};
  const std::vector<Shape> parameters = compiler::parameter_leaves(*program->module),
                           results = compiler::result_leaves(*program->module);
  const auto executor = runtime::Executor::create(std::move(program->program));
  EXPECT_TRUE(executor) << executor.error().message();
  const runtime::Devices devices(**executor, threads);
  auto values = compiler::execute_literals(devices, parameters, results, arguments);
  EXPECT_TRUE(values) << values.error().message() << "\n" << text;
  return values ? *std::move(values) : ByDevice();
}

// Sums as compiled programs have them: in the elements' type, in the order of ranks.
ByDevice interpreted(const std::string& text, const ByDevice& arguments) {
  const auto module = compiler::read_program(text);
  EXPECT_TRUE(module) << module.error().message();
  interp::Options options;
  options.replicas = (*module)->config().replica_count;
  options.partitions = (*module)->config().num_partitions;
  options.sums_in_f64 = false;
  const auto values = interp::interpret_devices(**module, arguments, options);
  EXPECT_TRUE(values) << values.error().message() << "\n" << text;
  ByDevice leaves;
  for (const hlo::Literal& value : *values) {
    leaves.emplace_back();
    for (const hlo::Literal* leaf : hlo::leaves(value)) leaves.back().push_back(*leaf);
  }
  return leaves;
}

void expect_equal(const std::string& text, const ByDevice& arguments) {
  const ByDevice want = interpreted(text, arguments);
  for (const bool regions : {true, false})
    for (const int threads : {1, 16}) {
      const ByDevice got = compiled(text, arguments, threads, regions);
      ASSERT_EQ(got.size(), want.size());
      const arrays::Tolerance same = arrays::Tolerance::exact();
      for (std::size_t k = 0; k < got.size(); ++k)
        ASSERT_EQ(arrays::compare_results(got[k], want[k], {&same, 1}), std::nullopt)
            << "device " << k << ", " << threads << " threads\n"
            << text;
    }
}

class Random {
 public:
  explicit Random(unsigned seed) : random_(seed) {}
  std::int64_t number(std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(random_);
  }
  bool chance(int of) { return number(1, of) == 1; }
  template <typename T>
  T one_of(std::initializer_list<T> all) {
    return all.begin()[number(0, static_cast<std::int64_t>(all.size()) - 1)];
  }

  // Any float and any integer; narrow floats are small integers, whose sums and products are exact.
  hlo::Literal literal(const Shape& shape) {
    hlo::Literal result(shape);
    const DType part = real_type(shape.dtype());
    const auto bytes = result.mutable_bytes();
    const auto width = static_cast<std::size_t>(byte_width(part));
    for (std::size_t at = 0; at < bytes.size(); at += width) {
      std::uint64_t bits = random_();
      if (part == DType::Pred) bits %= 2;
      if (part == DType::F32 || part == DType::F64) {
        const double value = std::uniform_real_distribution<double>(-4, 4)(random_);
        bits = hlo::encode_float(hlo::float_format(part), value);
      } else if (is_floating(part)) {
        bits = hlo::encode_float(hlo::float_format(part), static_cast<double>(number(-2, 2)));
      }
      std::memcpy(bytes.data() + at, &bits, width);
    }
    return result;
  }

  std::mt19937& engine() { return random_; }

 private:
  std::mt19937 random_;
};

/// One module with one collective.
class Generator {
 public:
  explicit Generator(unsigned seed) : r_(seed) {
    devices_ = r_.number(2, 8);
    for (replicas_ = r_.number(1, devices_); devices_ % replicas_ != 0;) replicas_ = r_.number(1, devices_);
    partitions_ = devices_ / replicas_;
    type_ = r_.one_of({"f32", "f64", "s32", "u8", "s64", "pred", "bf16", "f16", "c64", "u32", "s16"});
    rank_ = r_.number(1, 3);
    column_major_ = rank_ > 1 && r_.chance(3);
    mixed_ = column_major_ && r_.chance(2);
  }

  std::string text() {
    std::ostringstream out;
    const std::string op = collective();
    out << "HloModule m, replica_count=" << replicas_ << ", num_partitions=" << partitions_
        << (column_major_ ? ", is_scheduled=true" : "") << "\n\n"
        << reducer_ << "ENTRY e {\n";
    for (std::size_t p = 0; p < parameters_.size(); ++p)
      out << "  p" << p << " = " << parameters_[p] << " parameter(" << p << ")\n";
    out << op << "}\n";
    return std::move(out).str();
  }

  std::int64_t num_devices() const { return devices_; }
  Random& random() { return r_; }

 private:
  using Dims = std::vector<std::int64_t>;

  // Each time in another order of dimensions, if they are mixed.
  std::string array(const Dims& dims) {
    std::string text = std::string(type_) + "[";
    for (std::size_t d = 0; d < dims.size(); ++d) text += (d > 0 ? "," : "") + std::to_string(dims[d]);
    text += "]";
    if (!column_major_) return text;
    std::vector<std::size_t> order(dims.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (mixed_) std::shuffle(order.begin(), order.end(), r_.engine());
    text += "{";
    for (std::size_t d = 0; d < dims.size(); ++d) text += (d > 0 ? "," : "") + std::to_string(order[d]);
    return text + "}";
  }

  static std::string tuple(const std::vector<std::string>& shapes) {
    if (shapes.size() == 1) return shapes[0];
    std::string text = "(";
    for (std::size_t k = 0; k < shapes.size(); ++k) text += (k > 0 ? ", " : "") + shapes[k];
    return text + ")";
  }

  Dims dims() {
    Dims all;
    for (std::int64_t d = 0; d < rank_; ++d) all.push_back(r_.chance(12) ? 0 : r_.number(1, 7));
    if (rank_ == 1 && r_.chance(3)) all[0] = r_.number(5'000, 30'000);  // more than one block
    return all;
  }

  // The ids' number, what the attributes say, and members of a group counted in devices.
  struct Groups {
    std::string text;
    std::int64_t size = 1;
  };

  // `flattened`: channels mean all partitions, or global ids; else partitions.
  Groups groups(bool flattened, bool may_differ, bool may_leave_out) {
    const std::int64_t mode = r_.number(0, flattened ? 2 : 1);
    std::int64_t ids = replicas_, weight = 1;
    std::string text;
    if (mode == 1) {
      text += ", channel_id=1";
      ids = flattened ? replicas_ : partitions_;
      weight = flattened ? partitions_ : 1;
    } else if (mode == 2) {
      text += ", channel_id=1, use_global_device_ids=true";
      ids = devices_;
    }
    if (mode < 2 && r_.chance(4)) return {", replica_groups={}" + text, ids * weight};
    std::vector<std::int64_t> order(static_cast<std::size_t>(ids));
    std::iota(order.begin(), order.end(), 0);
    std::int64_t size = r_.number(1, ids);
    while (ids % size != 0) size = r_.number(1, ids);
    if (r_.chance(3))
      return {", replica_groups=[" + std::to_string(ids / size) + "," + std::to_string(size) + "]<=[" +
                  std::to_string(size) + "," + std::to_string(ids / size) + "]T(1,0)" + text,
              size * weight};
    std::shuffle(order.begin(), order.end(), r_.engine());
    std::string list = "{";
    for (std::int64_t k = 0; k < ids;) {
      const std::int64_t own = may_differ ? r_.number(1, ids - k) : size;
      list += k > 0 ? ",{" : "{";
      for (std::int64_t m = 0; m < own; ++m, ++k)
        list += (m > 0 ? "," : "") + std::to_string(order[static_cast<std::size_t>(k)]);
      list += "}";
      if (may_leave_out && r_.chance(3)) break;
    }
    return {", replica_groups=" + list + "}" + text, size * weight};
  }

  std::string pairs() {
    const bool of_partitions = r_.chance(2);
    const std::int64_t ids = of_partitions ? partitions_ : replicas_;
    std::vector<std::int64_t> from(static_cast<std::size_t>(ids)), to(from.size());
    std::iota(from.begin(), from.end(), 0);
    std::iota(to.begin(), to.end(), 0);
    std::shuffle(from.begin(), from.end(), r_.engine());
    std::shuffle(to.begin(), to.end(), r_.engine());
    std::string text = ", source_target_pairs={";
    const std::int64_t count = r_.number(0, ids);
    for (std::int64_t k = 0; k < count; ++k)
      text += (k > 0 ? ",{" : "{") + std::to_string(from[static_cast<std::size_t>(k)]) + "," +
              std::to_string(to[static_cast<std::size_t>(k)]) + "}";
    return text + "}" + (of_partitions ? ", channel_id=1" : "");
  }

  void make_reducer() {
    const std::string t = type_;
    std::vector<std::string> ops{"add"};  // complex products are close, not equal
    if (t != "c64") ops.insert(ops.end(), {"multiply", "maximum", "minimum"});
    const bool integral = t[0] == 's' || t[0] == 'u' || t == "pred";
    if (integral) ops.insert(ops.end(), {"and", "or", "xor"});
    std::string root = "ROOT r = " + t + "[] " +
                       ops[static_cast<std::size_t>(r_.number(0, static_cast<std::int64_t>(ops.size()) - 1))] +
                       "(a, b)\n";
    // Not associative and not commutative: the order of ranks and no other.
    if ((t == "s32" || t == "u32" || t == "f32") && r_.chance(2))
      root = "c = " + t + "[] constant(3)\n  d = " + t + "[] multiply(a, c)\n  ROOT r = " + t + "[] subtract(d, b)\n";
    reducer_ = "f {\n  a = " + t + "[] parameter(0)\n  b = " + t + "[] parameter(1)\n  " + root + "}\n\n";
  }

  // Declares operands; gives "p0, p1, …".
  std::string operands(const std::vector<Dims>& shapes) {
    std::string text;
    for (const Dims& d : shapes) {
      text += (text.empty() ? "p" : ", p") + std::to_string(parameters_.size());
      parameters_.push_back(array(d));
    }
    return text;
  }

  std::string collective() {
    std::vector<Dims> shapes;
    for (std::int64_t k = r_.number(1, 3); k > 0; --k) shapes.push_back(dims());
    const auto dim = static_cast<std::size_t>(r_.number(0, rank_ - 1));
    const std::string along = ", dimensions={" + std::to_string(dim) + "}";
    const auto arrays = [&](const std::vector<Dims>& of) {
      std::vector<std::string> texts;
      for (const Dims& d : of) texts.push_back(array(d));
      return tuple(texts);
    };
    switch (r_.number(0, 12)) {
      case 0: {
        make_reducer();
        const std::string shape = arrays(shapes);
        return "  ROOT r = " + shape + " all-reduce(" + operands(shapes) + ")" + groups(true, true, false).text +
               ", to_apply=f\n";
      }
      case 1: {
        make_reducer();
        // What is computed between start and done must not lie where the others still read.
        const std::string shape = array(shapes[0]), two = operands({shapes[0], shapes[0]});
        return "  a = " + shape + " reverse(p0), dimensions={0}\n  s = " + shape + " all-reduce-start(a)" +
               groups(true, false, false).text + ", to_apply=f\n  v = " + shape +
               " reverse(p1), dimensions={0}\n  d = " + shape + " all-reduce-done(s)\n  w = " + shape +
               " reverse(d), dimensions={" + std::to_string(dim) + "}\n  ROOT r = (" + shape + ", " + shape +
               ") tuple(w, v)\n";
      }
      case 2:
      case 3: {
        const Groups g = groups(true, false, false);
        std::vector<Dims> results = shapes;
        for (Dims& d : results) d[dim] *= g.size;
        const std::string list = operands(shapes), from = tuple(parameters_), to = arrays(results);
        if (r_.chance(2)) return "  ROOT r = " + to + " all-gather(" + list + ")" + g.text + along + "\n";
        return "  s = (" + from + ", " + to + ") all-gather-start(" + list + ")" + g.text + along + "\n" +
               "  ROOT r = " + to + " all-gather-done(s)\n";
      }
      case 4: {
        make_reducer();
        const Groups g = groups(true, false, false);
        const std::string to = arrays(shapes);
        for (Dims& d : shapes) d[dim] *= g.size;
        return "  ROOT r = " + to + " reduce-scatter(" + operands(shapes) + ")" + g.text + along + ", to_apply=f\n";
      }
      case 5: {
        const Groups g = groups(false, false, false);
        for (Dims& d : shapes) d[dim] *= g.size;
        const std::string to = arrays(shapes);
        return "  ROOT r = " + to + " all-to-all(" + operands(shapes) + ")" + g.text + along + "\n";
      }
      case 6: {
        const Groups g = groups(false, false, false);
        shapes.assign(static_cast<std::size_t>(g.size), shapes[0]);
        std::string to = arrays(shapes);
        if (g.size == 1) to = "(" + to + ")";
        return "  ROOT r = " + to + " all-to-all(" + operands(shapes) + ")" + g.text + "\n";
      }
      case 7: {
        const std::string list = operands(shapes), from = tuple(parameters_), to = arrays(shapes);
        if (shapes.size() > 1 || r_.chance(2))
          return "  ROOT r = " + to + " collective-permute(" + list + ")" + pairs() + "\n";
        return "  s = (" + from + ", " + to + ") collective-permute-start(" + list + ")" + pairs() +
               "\n  ROOT r = " + to + " collective-permute-done(s)\n";
      }
      case 8: {
        const std::string to = arrays(shapes);
        return "  ROOT r = " + to + " collective-broadcast(" + operands(shapes) + ")" +
               groups(false, false, true).text + "\n";
      }
      case 9: return permute_of_slices();
      case 10: return ragged();
      case 11: return transfers();
      default: {
        make_reducer();
        const std::string to = arrays(shapes);
        return "  ROOT r = " + to + " collective-reduce(" + operands(shapes) + ")" + groups(true, false, false).text +
               ", to_apply=f\n";
      }
    }
  }

  // Offsets of 0 to 7, some of them too large: windows stay within the arrays.
  std::string offsets(const char* name, std::size_t rank, std::string& out) {
    std::string list;
    for (std::size_t d = 0; d < rank; ++d) {
      const std::string own = std::string(name) + std::to_string(d);
      out += "  " + own + " = s32[] and(p" + std::to_string(parameters_.size()) + ", seven)\n";
      parameters_.push_back("s32[]");
      list += (d > 0 ? ", " : "") + own;
    }
    const std::string shape = "(" + repeated("s32[]", rank) + ")";
    out += std::string("  ") + name + " = " + shape + " tuple(" + list + ")\n";
    return shape;
  }

  static std::string repeated(const std::string& what, std::size_t times) {
    std::string all;
    for (std::size_t k = 0; k < times; ++k) all += (k > 0 ? ", " : "") + what;
    return all;
  }

  std::string permute_of_slices() {
    Dims from, to, one, two;
    for (std::int64_t d = 0; d < rank_; ++d) {
      from.push_back(r_.number(1, 7)), to.push_back(r_.number(1, 7));
      one.push_back(r_.number(0, std::min(from.back(), to.back()))), two.push_back(r_.number(1, std::min(from.back(), to.back())));
    }
    const auto list = [](const Dims& dims) {
      std::string text;
      for (const std::int64_t d : dims) text += (text.empty() ? "{" : ",") + std::to_string(d);
      return text + "}";
    };
    std::string out = "  seven = s32[] constant(7)\n";
    const std::string arrays = operands({from, to}), input = parameters_[0], result = array(to);
    const auto rank = static_cast<std::size_t>(rank_);
    const std::string shape = offsets("at", rank, out);
    offsets("into", rank, out), offsets("other", rank, out);
    const bool several = r_.chance(2);
    const std::string both = "(" + shape + ", " + shape + ")";
    if (several) out += "  ats = " + both + " tuple(at, other)\n  intos = " + both + " tuple(into, at)\n";
    const std::string of = "(" + arrays + (several ? ", ats, intos)" : ", at, into)") + pairs() + ", slice_sizes={" + list(one) +
                           (several ? "," + list(two) : "") + "}\n";
    if (r_.chance(2)) return out + "  ROOT r = " + result + " collective-permute" + of;
    return out + "  s = (" + input + ", " + result + ", u32[], u32[]) collective-permute-start" + of + "  ROOT r = " + result +
           " collective-permute-done(s)\n";
  }

  // One array around, and what came further on.
  std::string transfers() {
    const bool of_partitions = partitions_ > 1 && r_.chance(2);
    const std::int64_t ids = of_partitions || replicas_ == 1 ? partitions_ : replicas_;
    std::vector<std::int64_t> from(static_cast<std::size_t>(ids)), to(from.size());
    std::iota(from.begin(), from.end(), 0);
    std::iota(to.begin(), to.end(), 0);
    std::shuffle(from.begin(), from.end(), r_.engine());
    std::shuffle(to.begin(), to.end(), r_.engine());
    std::string list;
    for (std::int64_t k = r_.number(0, ids); k-- > 0;)
      list += (list.empty() ? "{" : ",{") + std::to_string(from[static_cast<std::size_t>(k)]) + "," +
              std::to_string(to[static_cast<std::size_t>(k)]) + "}";
    const bool has_channels = of_partitions || replicas_ == 1 || partitions_ == 1;  // else replicas are meant
    const std::string channel = has_channels ? ", channel_id=1" : "";
    const std::string recv_channel = has_channels && r_.chance(2) ? ", channel_id=2" : channel;  // no send has it
    const std::string pairs = ", frontend_attributes={_xla_send_recv_source_target_pairs=\"{" + list + "}\"}\n";
    const std::string list_of = operands({dims()}), shape = parameters_[0], third = "(" + shape + ", u32[], token[])";
    std::string out = "  t = token[] after-all()\n";
    for (int k = 0; k < 2; ++k) {
      const std::string n = std::to_string(k), value = k == 0 ? list_of : "v0", token = k == 0 ? "t" : "t0";
      out += "  recv" + n + " = " + third + " recv(" + token + ")" + recv_channel + pairs;
      out += "  send" + n + " = " + third + " send(" + value + ", " + token + ")" + channel + pairs;
      out += "  done" + n + " = (" + shape + ", token[]) recv-done(recv" + n + ")" + recv_channel + "\n";
      out += "  sent" + n + " = token[] send-done(send" + n + ")" + channel + "\n";
      out += "  v" + n + " = " + shape + " get-tuple-element(done" + n + "), index=0\n";
      out += "  t" + n + " = token[] get-tuple-element(done" + n + "), index=1\n";
    }
    return out + "  ROOT r = (" + shape + ", " + shape + ") tuple(v0, v1)\n";
  }

  // The same offsets and sizes on all devices.
  std::string ragged() {
    const Groups g = groups(false, false, false);
    const std::int64_t pieces = r_.number(1, 2), rows = r_.number(1, 7), room = r_.number(1, 7), entries = g.size * pieces;
    Dims row;
    for (std::int64_t d = 1; d < rank_; ++d) row.push_back(r_.number(1, 5));
    const auto with_rows = [&](std::int64_t n) {
      Dims all = {n};
      all.insert(all.end(), row.begin(), row.end());
      return all;
    };
    const std::int64_t columns = r_.chance(2) ? 0 : r_.chance(2) ? pieces : 1;  // 0: rank 1
    const std::string index = std::string(r_.one_of({"s32", "s64", "u8", "s4", "u4"})) + "[" +
                              std::to_string(columns > 1 ? entries / columns : entries) +
                              (columns > 0 ? "," + std::to_string(columns) : "") + "]";
    std::string values[3] = {"{", "{", "{"};
    for (std::int64_t k = 0; k < entries; ++k) {
      const std::int64_t size = r_.number(0, std::min(rows, room));
      const std::int64_t of[] = {r_.number(0, rows - size), size, r_.number(0, room - size)};
      for (std::size_t v = 0; v < 3; ++v) {
        const bool opens = columns > 0 && k % columns == 0, closes = columns > 0 && k % columns == columns - 1;
        values[v] += (k > 0 ? ", " : "") + std::string(opens ? "{" : "") + std::to_string(of[v]) + (closes ? "}" : "");
      }
    }
    std::string out;
    const char* names[] = {"from", "sizes", "into"};
    for (std::size_t v = 0; v < 3; ++v) out += std::string("  ") + names[v] + " = " + index + " constant(" + values[v] + "})\n";
    const std::string list = operands({with_rows(rows), with_rows(room)});
    return out + "  ROOT r = " + array(with_rows(room)) + " ragged-all-to-all(" + list + ", from, sizes, into, sizes)" + g.text + "\n";
  }

  Random r_;
  std::int64_t devices_ = 2, replicas_ = 1, partitions_ = 1, rank_ = 1;
  const char* type_ = "f32";
  bool column_major_ = false, mixed_ = false;
  std::string reducer_;
  std::vector<std::string> parameters_;
};

TEST(CompiledCollectives, EqualTheInterpreter) {
  for (unsigned seed = 0; seed < 240 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Generator generator(seed);
    const std::string text = generator.text();
    const auto module = compiler::read_program(text);
    ASSERT_TRUE(module) << module.error().message() << "\n" << text;
    ByDevice arguments(static_cast<std::size_t>(generator.num_devices()));
    for (auto& of_device : arguments)
      for (const Shape& shape : compiler::parameter_leaves(**module))
        of_device.push_back(generator.random().literal(shape));
    expect_equal(text, arguments);
  }
}

ByDevice same_shapes(Random& random, const std::string& text, std::int64_t devices) {
  const auto module = compiler::read_program(text);
  EXPECT_TRUE(module) << module.error().message() << "\n" << text;
  ByDevice arguments(static_cast<std::size_t>(devices));
  for (auto& of_device : arguments)
    for (const Shape& shape : compiler::parameter_leaves(**module)) of_device.push_back(random.literal(shape));
  return arguments;
}

hlo::Literal s32(const std::vector<std::int32_t>& values) {
  hlo::Literal literal(Shape::array(DType::S32, {static_cast<std::int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), literal.mutable_data<std::int32_t>().begin());
  return literal;
}

// Each element is the fold in the order of ranks, written out.
TEST(CompiledCollectives, SumsAreTheSerialFoldInTheOrderOfRanks) {
  const std::string text =
      "HloModule m, replica_count=5\nf {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
      "  ROOT r = f32[] add(a, b)\n}\nENTRY e {\n  x = f32[40000] parameter(0)\n"
      "  ROOT r = f32[40000] all-reduce(x), replica_groups={{3,1,4},{0,2}}, to_apply=f\n}\n";
  Random random(1);
  const ByDevice arguments = same_shapes(random, text, 5);
  const ByDevice got = compiled(text, arguments, 3, true);
  const std::vector<std::vector<std::size_t>> groups{{3, 1, 4}, {0, 2}};
  for (const auto& group : groups)
    for (std::size_t i = 0; i < 40'000; ++i) {
      float sum = arguments[group[0]][0].data<float>()[i];
      for (std::size_t m = 1; m < group.size(); ++m) sum += arguments[group[m]][0].data<float>()[i];
      for (const std::size_t member : group) ASSERT_EQ(got[member][0].data<float>()[i], sum) << member << " " << i;
    }
}

// 1 and seven times half the distance of the next bf16: rounded each time it would stay 1.
TEST(CompiledCollectives, NarrowFloatsAreRoundedOnce) {
  const std::string text =
      "HloModule m, replica_count=8\nf {\n  a = bf16[] parameter(0)\n  b = bf16[] parameter(1)\n"
      "  ROOT r = bf16[] add(a, b)\n}\nENTRY e {\n  x = bf16[] parameter(0)\n"
      "  ROOT r = bf16[] all-reduce(x), replica_groups={}, to_apply=f\n}\n";
  ByDevice arguments;
  for (int k = 0; k < 8; ++k) {
    hlo::Literal x(Shape::scalar(DType::BF16));
    const double value = k == 0 ? 1.0 : 1.0 / 256;
    x.mutable_data<std::uint16_t>()[0] =
        static_cast<std::uint16_t>(hlo::encode_float(hlo::float_format(DType::BF16), value));
    arguments.push_back({x});
  }
  const auto want = static_cast<std::uint16_t>(hlo::encode_float(hlo::float_format(DType::BF16), 1.0 + 7.0 / 256));
  for (const auto& values : compiled(text, arguments, 1, true)) EXPECT_EQ(values[0].data<std::uint16_t>()[0], want);
}

// More members than fit a kernel's registers, in the order of ranks.
TEST(CompiledCollectives, FoldsOfManyMembers) {
  const std::string text =
      "HloModule m, replica_count=150\nf {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  c = f32[] multiply(a, b)\n"
      "  d = f32[] constant(0.5)\n  e = f32[] multiply(a, d)\n  ROOT r = f32[] subtract(b, e)\n}\nENTRY e {\n  x = f32[3] parameter(0)\n"
      "  ROOT r = f32[3] all-reduce(x), replica_groups={}, to_apply=f\n}\n";
  Random random(4);
  const ByDevice arguments = same_shapes(random, text, 150);
  const ByDevice got = compiled(text, arguments, 2, true);
  for (std::size_t i = 0; i < 3; ++i) {
    float sum = arguments[0][0].data<float>()[i];
    for (std::size_t m = 1; m < 150; ++m) sum = arguments[m][0].data<float>()[i] - 0.5f * sum;
    for (const auto& values : got) ASSERT_EQ(values[0].data<float>()[i], sum);
  }
}

TEST(CompiledCollectives, C122GroupsOfOneTwoAndThreeOfSixReplicas) {
  const std::string text =
      "HloModule m, replica_count=6\nf {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT r = s32[] add(a, b)\n}\n"
      "ENTRY e {\n  x = s32[5] parameter(0)\n  ROOT r = s32[5] all-reduce(x), replica_groups={{5},{0,3},{1,2,4}}, to_apply=f\n}\n";
  ByDevice arguments;
  for (std::int32_t k = 1; k <= 6; ++k) arguments.push_back({s32({k, k, k, k, k})});
  const std::int32_t want[] = {5, 10, 10, 5, 10, 6};
  for (const int threads : {1, 2, 12}) {
    const ByDevice got = compiled(text, arguments, threads, true);
    for (std::size_t k = 0; k < 6; ++k) {
      const std::vector<hlo::Literal> one = {s32(std::vector<std::int32_t>(5, want[k]))};
      const arrays::Tolerance same = arrays::Tolerance::exact();
      EXPECT_EQ(arrays::compare_results(got[k], one, {&same, 1}), std::nullopt) << "replica " << k;
    }
  }
}

// A pipeline as XLA makes it: each round of a loop ends what the one before began.
TEST(CompiledCollectives, SendsAndReceivesGoAcrossRounds) {
  const std::string pairs = ", frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2},{2,3},{3,0}}}\n";
  const std::string one = "(s32[3], u32[], token[])", state = "(u32[], s32[3], " + one + ", " + one + ")";
  const std::string text =
      "HloModule m, num_partitions=4\ncond {\n  p = " + state + " parameter(0)\n  i = u32[] get-tuple-element(p), index=0\n"
      "  three = u32[] constant(3)\n  ROOT less = pred[] compare(i, three), direction=LT\n}\n"
      "body {\n  p = " + state + " parameter(0)\n  i = u32[] get-tuple-element(p), index=0\n  sum = s32[3] get-tuple-element(p), index=1\n"
      "  sending = " + one + " get-tuple-element(p), index=2\n  receiving = " + one + " get-tuple-element(p), index=3\n"
      "  sent = token[] send-done(sending), channel_id=1\n  came = (s32[3], token[]) recv-done(receiving), channel_id=1\n"
      "  got = s32[3] get-tuple-element(came), index=0\n  t = token[] get-tuple-element(came), index=1\n"
      "  next = s32[3] add(sum, got)\n  send = " + one + " send(got, t), channel_id=1" + pairs +
      "  recv = " + one + " recv(t), channel_id=1" + pairs + "  c = u32[] constant(1)\n  j = u32[] add(i, c)\n"
      "  ROOT q = " + state + " tuple(j, next, send, recv)\n}\n"
      "ENTRY e {\n  x = s32[3] parameter(0)\n  z = u32[] constant(0)\n  t = token[] after-all()\n"
      "  send = " + one + " send(x, t), channel_id=1" + pairs + "  recv = " + one + " recv(t), channel_id=1" + pairs +
      "  init = " + state + " tuple(z, x, send, recv)\n  w = " + state + " while(init), condition=cond, body=body\n"
      "  sending = " + one + " get-tuple-element(w), index=2\n  receiving = " + one + " get-tuple-element(w), index=3\n"
      "  sent = token[] send-done(sending), channel_id=1\n  came = (s32[3], token[]) recv-done(receiving), channel_id=1\n"
      "  sum = s32[3] get-tuple-element(w), index=1\n  got = s32[3] get-tuple-element(came), index=0\n"
      "  ROOT r = (s32[3], s32[3]) tuple(sum, got)\n}\n";
  Random random(5);
  ByDevice arguments;
  for (std::int32_t k = 0; k < 4; ++k) arguments.push_back({s32({1 << (4 * k), k, 5})});
  expect_equal(text, arguments);
  // All sums are of everybody's; what comes last is one's own.
  const ByDevice got = compiled(text, arguments, 2, true);
  for (std::size_t k = 0; k < 4; ++k) {
    EXPECT_EQ(got[k][0].data<std::int32_t>()[0], 0x1111);
    EXPECT_EQ(got[k][1].data<std::int32_t>()[0], 1 << (4 * k));
  }
}

// A receive that nobody sends to is an error that says where each waits.
TEST(CompiledCollectives, AReceiveWithoutASendIsAnError) {
  const std::string pairs = ", channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,0}}}\n";
  const std::string text =
      "HloModule m, replica_count=2\nENTRY e {\n  t = token[] after-all()\n  receiving = (s32[3], u32[], token[]) recv(t)" + pairs +
      "  came = (s32[3], token[]) recv-done(receiving), channel_id=1\n  ROOT r = s32[3] get-tuple-element(came), index=0\n}\n";
  auto module = compiler::read_program(text);
  ASSERT_TRUE(module);
  auto program = compiler::compile(std::move(*module), {});
  ASSERT_TRUE(program) << program.error().message();
  const std::vector<Shape> results = compiler::result_leaves(*program->module);
  const auto executor = runtime::Executor::create(std::move(program->program));
  ASSERT_TRUE(executor);
  const runtime::Devices devices(**executor, 2);
  const auto values = compiler::execute_literals(devices, {}, results, ByDevice(2));
  ASSERT_FALSE(values);
  EXPECT_NE(values.error().message().find("device 0 waits at came, device 1 waits at came"), std::string::npos)
      << values.error().message();
}

TEST(CompiledCollectives, RaggedExchanges) {
  const std::string text =
      "HloModule m, num_partitions=3\nENTRY e {\n  x = f32[6,2] parameter(0)\n  y = f32[9,2] parameter(1)\n"
      "  from = s32[6] parameter(2)\n  rows = s32[6] parameter(3)\n  to = s32[6] parameter(4)\n"
      "  got = s32[6] parameter(5)\n"
      "  ROOT r = f32[9,2] ragged-all-to-all(x, y, from, rows, to, got), channel_id=1, replica_groups={{2,0,1}}\n}\n";
  Random random(2);
  ByDevice arguments = same_shapes(random, text, 3);
  for (auto& of_device : arguments) {
    std::vector<std::int32_t> from, rows, to;
    for (int k = 0; k < 6; ++k) {
      from.push_back(static_cast<std::int32_t>(random.number(0, 6)));
      rows.push_back(static_cast<std::int32_t>(random.number(0, 6 - from.back())));
      to.push_back(static_cast<std::int32_t>(random.number(0, 9 - rows.back())));
    }
    of_device[2] = s32(from);
    of_device[3] = s32(rows);
    of_device[4] = s32(to);
  }
  expect_equal(text, arguments);
}

TEST(CompiledCollectives, RootsThatAreData) {
  for (const auto& [op, type] : std::vector<std::pair<std::string, std::string>>{
           {"collective-broadcast", "s32"}, {"collective-reduce", "s32"}, {"collective-broadcast", "u4"}, {"collective-reduce", "s4"}}) {
    const bool folds = op == "collective-reduce";
    const std::string text =
        std::string(
            "HloModule m, replica_count=4\nf {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n"
            "  ROOT r = s32[] add(a, b)\n}\nENTRY e {\n  x = s32[20] parameter(0)\n  i = s32[1] parameter(1)\n"
            "  j = s32[] reshape(i)\n") +
        "  root = " + type + "[] convert(j)\n  ROOT r = s32[20] " + op + "(x, root), replica_groups={{0,3},{1,2}}, has_dynamic_root=true" + (folds ? ", to_apply=f" : "") + "\n}\n";
    Random random(3);
    ByDevice arguments = same_shapes(random, text, 4);
    for (std::size_t k = 0; k < 4; ++k) arguments[k][1] = s32({k == 0 || k == 3 ? 3 : 1});
    expect_equal(text, arguments);
  }
}

// A ring that goes round in a loop, each device as often as its own counter says, and a branch that all take or none.
TEST(CompiledCollectives, InLoopsAndBranches) {
  const std::string text = R"(HloModule m, num_partitions=4
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
body { t = (s32[], f32[6], f32[6]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[6] get-tuple-element(t), index=1
  sum = f32[6] get-tuple-element(t), index=2
  y = f32[6] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
  p = u32[] partition-id()
  q = f32[] convert(p)
  qs = f32[6] broadcast(q), dimensions={}
  z = f32[6] multiply(y, qs)
  next = f32[6] add(sum, z)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[6], f32[6]) tuple(j, y, next) }
condition { t = (s32[], f32[6], f32[6]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(7)
  ROOT l = pred[] compare(i, n), direction=LT }
yes { x = f32[6] parameter(0)
  ROOT y = f32[6] all-reduce(x), channel_id=2, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add }
no { x = f32[6] parameter(0)
  ROOT y = f32[6] negate(x) }
ENTRY e { x = f32[6] parameter(0)
  which = s32[1] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[6], f32[6]) tuple(zero, x, x)
  w = (s32[], f32[6], f32[6]) while(t), condition=condition, body=body
  v = f32[6] get-tuple-element(w), index=2
  branch = s32[] reshape(which)
  ROOT c = f32[6] conditional(branch, v, v), branch_computations={yes, no} }
)";
  for (const std::int32_t branch : {0, 1}) {
    Random random(4);
    ByDevice arguments = same_shapes(random, text, 4);
    for (auto& of_device : arguments) of_device[1] = s32({branch});
    expect_equal(text, arguments);
  }
}

// Devices that go different ways wait for each other in vain: an error for all, and the next run is as any.
TEST(CompiledCollectives, DifferentWaysAreAnError) {
  const std::string text = R"(HloModule m, num_partitions=2
yes { x = f32[6] parameter(0)
  ROOT y = f32[6] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,0}} }
no { x = f32[6] parameter(0)
  ROOT y = f32[6] negate(x) }
ENTRY e { x = f32[6] parameter(0)
  which = pred[] parameter(1)
  ROOT c = f32[6] conditional(which, x, x), true_computation=yes, false_computation=no }
)";
  auto module = compiler::read_program(text);
  ASSERT_TRUE(module) << module.error().message();
  auto program = compiler::compile(std::move(*module));
  ASSERT_TRUE(program) << program.error().message();
  const std::vector<Shape> parameters = compiler::parameter_leaves(*program->module),
                           results = compiler::result_leaves(*program->module);
  const auto executor = runtime::Executor::create(std::move(program->program));
  ASSERT_TRUE(executor);
  const runtime::Devices devices(**executor, 2);
  Random random(5);
  ByDevice arguments = same_shapes(random, text, 2);
  for (const auto& [zero, one] : {std::pair{true, true}, {true, false}, {false, false}, {false, true}, {true, true}}) {
    arguments[0][1].mutable_data<std::uint8_t>()[0] = zero;
    arguments[1][1].mutable_data<std::uint8_t>()[0] = one;
    const auto values = compiler::execute_literals(devices, parameters, results, arguments);
    EXPECT_EQ(values.has_value(), zero == one);
    if (values) continue;
    EXPECT_EQ(values.error().code(), Code::InvalidArgument);
    EXPECT_NE(values.error().message().find("waits at y"), std::string::npos) << values.error().message();
    EXPECT_NE(values.error().message().find("has ended"), std::string::npos) << values.error().message();
  }
}

// Device 1 draws once more than device 0.
TEST(Random, EachDeviceHasAStateOfItsOwn) {
  expect_equal(R"(HloModule m, replica_count=2
draw { t = () parameter(0)
  ROOT s = u64[2] rng-get-and-update-state(), delta=5 }
none { t = () parameter(0)
  z = u64[] constant(0)
  ROOT s = u64[2] broadcast(z), dimensions={} }
ENTRY e {
  first = u64[2] rng-get-and-update-state(), delta=3
  me = u32[] replica-id()
  one = u32[] constant(1)
  is_one = pred[] compare(me, one), direction=EQ
  empty = () tuple()
  second = u64[2] conditional(is_one, empty, empty), true_computation=draw, false_computation=none
  last = u64[2] rng-get-and-update-state(), delta=7, control-predecessors={second}
  a = f32[] constant(0)
  b = f32[] constant(1)
  number = f32[3] rng(a, b), distribution=rng_uniform, control-predecessors={last}
  ROOT r = (u64[2], u64[2], u64[2], f32[3]) tuple(first, second, last, number)
})",
               ByDevice(2));
}

}  // namespace
}  // namespace hloom
