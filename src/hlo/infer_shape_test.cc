#include "hlo/infer_shape.h"

#include <gtest/gtest.h>

#include <random>

#include "hlo/verify.h"
#include "text/parse.h"

namespace hloom::hlo {
namespace {

std::unique_ptr<Module> parse(std::string_view text) {
  auto module = text::parse_module(text, {.verify = false});
  EXPECT_TRUE(module) << (module ? "" : module.error().message()) << text;
  return module ? *std::move(module) : nullptr;
}

// The root's shape as inferred after the written one is taken away.
std::string inferred_root(std::string_view body, std::string_view before = {}) {
  const auto module = parse("HloModule m\n" + std::string(before) + "\nENTRY e {\n" + std::string(body) + "\n}\n");
  if (!module) return "";
  Instruction& root = *module->entry()->root();
  root.set_shape(Shape());
  const auto shape = infer_shape(root);
  return shape ? to_string(*shape) : "error: " + shape.error().message();
}

TEST(InferShape, NeedsNoWrittenShapeWhereOperandsSayIt) {
  const char* const add = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }";
  const char* const x = "x = f32[4,6] parameter(0)\n";
  const auto root = [&](const std::string& line) { return inferred_root(x + line, add); };
  EXPECT_EQ(root("ROOT r = f32[4,6] add(x, x)"), "f32[4,6]{1,0}");
  EXPECT_EQ(root("ROOT r = pred[4,6] compare(x, x), direction=LT"), "pred[4,6]{1,0}");
  EXPECT_EQ(root("ROOT r = pred[4,6] is-finite(x)"), "pred[4,6]{1,0}");
  EXPECT_EQ(root("ROOT r = c64[4,6] complex(x, x)"), "c64[4,6]{1,0}");
  EXPECT_EQ(root("ROOT r = f32[6,4] transpose(x), dimensions={1,0}"), "f32[6,4]{1,0}");
  EXPECT_EQ(root("ROOT r = f32[4,12] concatenate(x, x), dimensions={1}"), "f32[4,12]{1,0}");
  EXPECT_EQ(root("ROOT r = f32[2,3] slice(x), slice={[1:3], [0:6:2]}"), "f32[2,3]{1,0}");
  EXPECT_EQ(root("z = f32[] constant(0) ROOT r = f32[4,18] pad(x, z), padding=0_0x1_1_2"), "f32[4,18]{1,0}");
  EXPECT_EQ(root("z = f32[] constant(0) ROOT r = f32[6] reduce(x, z), dimensions={0}, to_apply=add"), "f32[6]{0}");
  EXPECT_EQ(
      root("z = f32[] constant(0) ROOT r = f32[4,2] reduce-window(x, z), window={size=1x3 stride=1x3}, to_apply=add"),
      "f32[4,2]{1,0}");
  EXPECT_EQ(root("ROOT r = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}"), "f32[4,4]{1,0}");
  EXPECT_EQ(root("ROOT r = (f32[4,2], s32[4,2]) topk(x), k=2"), "(f32[4,2]{1,0}, s32[4,2]{1,0})");
  EXPECT_EQ(root("ROOT r = c64[4,4] fft(x), fft_type=RFFT, fft_length={6}"), "c64[4,4]{1,0}");
  EXPECT_EQ(root("ROOT r = (f32[4,6], f32[4,6]) tuple(x, x)"), "(f32[4,6]{1,0}, f32[4,6]{1,0})");
  EXPECT_EQ(root("ROOT r = s32[] get-dimension-size(x), dimensions={0}"), "s32[]");
  EXPECT_EQ(root("ROOT r = f32[9] reshape(x)"), "error: r: reshape needs its shape written");
}

TEST(InferShape, KeepsDynamicDimensions) {
  const char* const x = "x = f32[<=4,6] parameter(0)\n";
  EXPECT_EQ(inferred_root(std::string(x) + "ROOT r = f32[<=4,6] negate(x)"), "f32[<=4,6]{1,0}");
  EXPECT_EQ(inferred_root(std::string(x) + "ROOT r = f32[6,<=4] transpose(x), dimensions={1,0}"), "f32[6,<=4]{1,0}");
  EXPECT_EQ(inferred_root(std::string(x) + "ROOT r = f32[<=4] slice(x), slice={[0:4], [0:6]}"), "f32[<=4,6]{1,0}");
}

TEST(InferShape, TakesCombinationsOfTypesOnlyWhereOpcodesDo) {
  const auto ok = [](const char* line) {
    return inferred_root(
               "b = pred[2] parameter(0) s = s32[2] parameter(1) f = f32[2] parameter(2) c = c64[2] parameter(3)\n" +
               std::string(line))
               .substr(0, 5) != "error";
  };
  EXPECT_TRUE(ok("ROOT r = pred[2] add(b, b)"));
  EXPECT_FALSE(ok("ROOT r = pred[2] subtract(b, b)"));
  EXPECT_FALSE(ok("ROOT r = s32[2] sqrt(s)"));
  EXPECT_FALSE(ok("ROOT r = c64[2] maximum(c, c)"));
  EXPECT_FALSE(ok("ROOT r = f32[2] shift-left(f, f)"));
  EXPECT_TRUE(ok("ROOT r = f32[2] abs(c)"));
  EXPECT_FALSE(ok("ROOT r = f32[2] add(f, s)"));
  EXPECT_FALSE(ok("ROOT r = pred[2] compare(c, c), direction=LT"));
  EXPECT_TRUE(ok("ROOT r = pred[2] compare(c, c), direction=EQ"));
}

// --- any attributes, any shapes: errors, never a crash

class Scrambler {
 public:
  explicit Scrambler(unsigned seed) : random_(seed) {}

  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }
  std::int64_t number() {
    static constexpr std::int64_t kNumbers[] = {0, 1, 1, 2, 2, 3, 4, 5, -1, -2, 7, 64, INT64_MAX, INT64_MIN, 1ll << 40};
    return kNumbers[below(below(8) == 0 ? std::ssize(kNumbers) : 8)];
  }
  bool coin() { return below(2) == 0; }
  void set(std::int64_t& v) { v = number(); }
  void set(bool& v) { v = coin(); }
  void set(Dims& v) {
    v.clear();
    for (std::int64_t k = below(4); k > 0; --k) v.push_back(number());
  }
  void set(WindowDim& w) {
    set(w.size), set(w.stride), set(w.pad_low), set(w.pad_high), set(w.lhs_dilate), set(w.rhs_dilate), set(w.reversal);
  }
  template <typename T>
  void set(std::vector<T>& v) {
    v.resize(static_cast<std::size_t>(below(4)));
    for (T& e : v) set(e);
  }
  void set(std::pair<std::int64_t, std::int64_t>& p) { set(p.first), set(p.second); }
  void set(PadDim& p) { set(p.low), set(p.high), set(p.interior); }
  template <typename T>
  void set(T&) {}  // families without numbers
  void set(IotaAttr& a) { set(a.dimension); }
  void set(TupleElementAttr& a) { set(a.index); }
  void set(CompareAttr& a) {
    a.direction = Direction(below(6));
    a.type = Comparison(below(4));
  }
  void set(SliceAttr& a) { set(a.starts), set(a.limits), set(a.strides); }
  void set(DynamicSliceAttr& a) { set(a.sizes); }
  void set(PadAttr& a) { set(a.dims); }
  void set(ReshapeAttr& a) { set(a.inferred_dimension); }
  void set(GatherAttr& a) {
    set(a.offset_dims), set(a.collapsed_slice_dims), set(a.start_index_map), set(a.operand_batching_dims);
    set(a.start_indices_batching_dims), set(a.index_vector_dim), set(a.slice_sizes);
  }
  void set(ScatterAttr& a) {
    set(a.update_window_dims), set(a.inserted_window_dims), set(a.scatter_dims_to_operand_dims);
    set(a.input_batching_dims), set(a.scatter_indices_batching_dims), set(a.index_vector_dim);
  }
  void set(WindowAttr& a) { set(a.window); }
  void set(DotAttr& a) {
    set(a.lhs_batch), set(a.lhs_contracting), set(a.rhs_batch), set(a.rhs_contracting), set(a.lhs_ragged);
    set(a.rhs_group);
  }
  void set(ConvolutionAttr& a) {
    set(a.window), set(a.dims.input_batch), set(a.dims.input_feature), set(a.dims.kernel_input);
    set(a.dims.kernel_output), set(a.dims.output_batch), set(a.dims.output_feature), set(a.dims.input_spatial);
    set(a.dims.kernel_spatial), set(a.dims.output_spatial), set(a.dims.output_unused), set(a.feature_groups);
    set(a.batch_groups);
  }
  void set(TopKAttr& a) { set(a.k); }
  void set(ScanAttr& a) { set(a.num_carries); }
  void set(FftAttr& a) {
    a.type = FftType(below(4));
    set(a.length);
  }
  void set(TriangularSolveAttr& a) { set(a.left_side); }
  void set(BatchNormAttr& a) { set(a.feature_index); }
  void set(ReducePrecisionAttr& a) { set(a.exponent_bits), set(a.mantissa_bits); }
  void set(IotaList& l) { set(l.dims), set(l.perm); }
  void set(CollectiveAttr& a) {
    if (coin()) a.channel_id = number();
    set(a.use_global_device_ids), set(a.has_dynamic_root), set(a.has_dimension);
    a.groups.form = ReplicaGroups::Form(below(3));
    set(a.groups.groups), set(a.groups.num_groups), set(a.groups.group_size), set(a.groups.iota);
    if (coin()) a.groups.mesh.axes = {{"x", number()}, {"y", number()}};
    if (coin()) a.groups.axes = {{"x", number(), number()}, {coin() ? "y" : "z", 0, 0}};
    set(a.groups.mesh.device_ids);
  }
  void set(PermuteAttr& a) { set(a.pairs), set(a.slice_sizes); }

  Shape shape() {
    static constexpr DType kTypes[] = {DType::F32, DType::S32,  DType::Pred, DType::C64,
                                       DType::U64, DType::BF16, DType::S4};
    switch (below(12)) {
      case 0: return Shape::token();
      case 1: return Shape::tuple({shape(), shape()});
      default: break;
    }
    Dims dims;
    set(dims);
    Shape s = Shape::array(kTypes[coin() ? 0 : below(std::ssize(kTypes))], dims);
    for (std::int64_t d = 0; d < s.rank(); ++d) s.set_dynamic_dim(d, below(8) == 0);
    return s;
  }

 private:
  std::mt19937 random_;
};

Computation* add_callee(Module& m, Scrambler& s) {
  Computation* c = m.add_computation("callee");
  const std::int64_t count = s.below(5);
  for (std::int64_t k = 0; k < count; ++k) c->add_parameter(k, s.coin() ? Shape::scalar(DType::F32) : s.shape());
  if (count == 0) c->add(Opcode::AfterAll, Shape::token(), {});
  if (s.coin()) c->set_root(c->add(Opcode::Add, s.coin() ? Shape::scalar(DType::F32) : s.shape(), {}));
  return c;
}

TEST(InferShape, TakesAnyAttributesAndShapes) {
  std::int64_t inferred = 0;
  for (int op = 0; op < kNumOpcodes; ++op)
    for (unsigned seed = 0; seed < 400; ++seed) {
      Scrambler s(seed * 1000 + static_cast<unsigned>(op));
      Module m("m");
      m.config().replica_count = s.number();
      m.config().num_partitions = s.number();
      Computation* e = m.add_computation("e");
      m.set_entry(e);
      std::vector<Instruction*> operands;
      const Shape common = s.shape();
      const int wanted = arity(Opcode(op)) >= 0 && s.below(8) != 0 ? arity(Opcode(op)) : static_cast<int>(s.below(6));
      for (int k = 0; k < wanted; ++k) operands.push_back(e->add_parameter(k, s.coin() ? common : s.shape()));
      if (Opcode(op) == Opcode::Parameter) continue;
      Instruction* i = e->add(Opcode(op), s.coin() ? common : s.shape(), operands);
      Attributes attributes = attributes_for(Opcode(op));
      attributes.visit([&]<typename T>(const T&) { s.set(i->mutable_attr<T>()); });
      Dims dims;
      s.set(dims);
      i->set_dimensions(dims);
      std::vector<Computation*> called;
      for (std::int64_t k = s.below(4); k > 0; --k) called.push_back(add_callee(m, s));
      i->set_called(called);
      e->set_root(i);
      inferred += infer_shape(*i).has_value() ? 1 : 0;
      i->set_shape(s.coin() ? Shape() : i->shape());
      inferred += infer_shape(*i).has_value() ? 1 : 0;
      EXPECT_LE(verify(m).size(), 20u);
    }
  EXPECT_GT(inferred, 1000);
}

}  // namespace
}  // namespace hloom::hlo
