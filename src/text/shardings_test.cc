// Shardings and replica groups in all notations.
#include <gtest/gtest.h>

#include <string>

#include "text/parse.h"
#include "text/print.h"

namespace hloom::text {
namespace {

// The sharding of an instruction as it is printed, or the error.
std::string sharding(std::string_view text) {
  const auto module =
      parse_module("r = f32[4,4]{1,0} negate(f32[4,4]{1,0} p), sharding=" + std::string(text), {.verify = false});
  if (!module) return module.error().message();
  const std::string printed = print(*(*module)->entry()->root());
  const std::size_t at = printed.find("sharding=");
  return printed.substr(at + 9);
}

TEST(Shardings, WhatIsCanonicalStaysAsItIs) {
  for (const std::string_view text :
       {"{replicated}",
        "{manual}",
        "{unknown}",
        "{unreduced}",
        "{maximal device=3}",
        "{}",
        "{devices=[2,2]0,1,2,3}",
        "{devices=[2,2]3,1,2,0}",
        "{devices=[2,2]<=[4]}",
        "{devices=[2,1,4]<=[2,4]T(1,0) last_tile_dim_replicate}",
        "{devices=[1,2,2,2]<=[8] last_tile_dims={manual, replicated}}",
        "{devices=[4]<=[4] shard_as 1}",
        "{replicated shard_like 7}",
        "{manual metadata={op_name=\"w\" source_line=3}}",
        "{devices=[4]0,2,1,3 metadata={{op_name=\"a\"}, {op_name=\"b\"}}}",
        "{{replicated}, {maximal device=3}, {devices=[4]0,2,1,3}, {manual}, {unknown}, /*index=5*/{replicated}, "
        "{replicated}}",
        "{mesh['data'=4,'model'=2], [{'data'}, {}], replicated={'model'}}",
        "{mesh['a'=8], [{'a':(1)2}, {'a':(2)4}]}",
        "{mesh['r'=2,'c'=2], device_ids=(0,2,1,3), [{'c'}, {'r', ?}], unreduced=max{}}",
        "{mesh['r'=2,'c'=2], device_ids=([2,2]T(1,0)), [{?}, {}]}",
        "{mesh['a'=2], replicated}",
        "{mesh['a'=2], manual}",
        "{mesh['a'=2], unreduced}",
        "{mesh['a'=2,'b'=2], [{}, {}], manual={'b'}, unreduced={'a'}, metadata={{op_name=\"x\"}}}",
        "{mesh[], replicated}",
        "{maximal_mesh[device_id=4]}",
        "{{mesh['a'=2], [{'a'}, {}]}, {replicated}}"})
    EXPECT_EQ(sharding(text), text);
}

TEST(Shardings, IotasBecomeCanonical) {
  EXPECT_EQ(sharding("{devices=[2,4]<=[1,8]T(1,0)}"), "{devices=[2,4]<=[8]}");
  EXPECT_EQ(sharding("{devices=[2,4]<=[2,2,2]T(0,1,2)}"), "{devices=[2,4]<=[8]}");
  EXPECT_EQ(sharding("{devices=[2,4]<=[2,2,2]T(2,0,1)}"), "{devices=[2,4]<=[4,2]T(1,0)}");
  EXPECT_EQ(sharding("{devices=[2,4]<=[2,1,4]T(2,1,0)}"), "{devices=[2,4]<=[2,4]T(1,0)}");
  EXPECT_EQ(sharding("{devices=[2,3,4]<=[4,3,2]T(2,1,0)}"), "{devices=[2,3,4]<=[4,3,2]T(2,1,0)}");
  EXPECT_EQ(sharding("{devices=[1]<=[1]}"), "{devices=[1]<=[1]}");
}

// A canonical iota list names the same devices as the one that was written.
TEST(Shardings, CanonicalIotasNameTheSameDevices) {
  const std::vector<std::vector<std::int64_t>> all_dims = {{2, 3},    {1, 6},       {2, 1, 3},
                                                           {2, 3, 4}, {2, 1, 1, 3}, {2, 3, 2, 2}};
  for (const auto& dims : all_dims) {
    std::vector<std::int64_t> perm;
    for (std::size_t i = 0; i < dims.size(); ++i) perm.push_back(static_cast<std::int64_t>(i));
    do {
      const hlo::IotaList written{dims, perm};
      const auto join = [](const std::vector<std::int64_t>& list) {
        std::string out;
        for (const std::int64_t v : list) out += (out.empty() ? "" : ",") + std::to_string(v);
        return out;
      };
      const auto expanded = written.expand();
      const auto module =
          parse_module("r = f32[4] all-reduce(f32[4] p), replica_groups=[1," + std::to_string(expanded.size()) +
                           "]<=[" + join(dims) + "]T(" + join(perm) + "), to_apply={ a = f32[] parameter(0) }",
                       {.verify = false});
      ASSERT_TRUE(module) << module.error().message();
      const auto groups = (*module)->entry()->root()->attr<hlo::CollectiveAttr>().groups;
      EXPECT_EQ(groups.expand().front(), expanded) << join(dims) << " T " << join(perm);
    } while (std::next_permutation(perm.begin(), perm.end()));
  }
}

TEST(Shardings, OtherSpellings) {
  EXPECT_EQ(sharding("{maximal, device=3}"), "{maximal device=3}");
  EXPECT_EQ(sharding("{mesh[data=4,model=2],[{data},{model}]}"), "{mesh['data'=4,'model'=2], [{'data'}, {'model'}]}");
  EXPECT_EQ(sharding("{mesh['a'=2,'b'=4], [{1}, {0}]}"), "{mesh['a'=2,'b'=4], [{'b'}, {'a'}]}");
  EXPECT_EQ(sharding("{mesh['a'=2,'b'=2], device_ids=(0,1,2,3), [{}, {}]}"), "{mesh['a'=2,'b'=2], [{}, {}]}");
}

TEST(Shardings, WhatIsWrong) {
  for (const std::string_view text : {"",
                                      "{",
                                      "{x}",
                                      "{maximal}",
                                      "{device=1 replicated}",
                                      "{replicated manual}",
                                      "{devices=[2]}",
                                      "{devices=[2]0}",
                                      "{devices=[2]0,0}",
                                      "{devices=[2]-1,0}",
                                      "{devices=[0]<=[0]}",
                                      "{devices=[2,2]<=[2,2]}",
                                      "{devices=[4]<=[2,2]T(0,2)}",
                                      "{devices=[4]<=[2]}",
                                      "{devices=[4294967296,4294967296]<=[1]}",
                                      "{replicated last_tile_dim_replicate}",
                                      "{devices=[2]0,1 last_tile_dims={unknown}}",
                                      "{devices=[2]0,1 last_tile_dims={manual,manual}}",
                                      "{mesh['a'=2], [{'b'}]}",
                                      "{mesh['a'=0], []}",
                                      "{mesh['1'=2], []}",
                                      "{mesh['a'=2,'a'=2], []}",
                                      "{mesh['a'=8], [{'a':(3)2}]}",
                                      "{mesh['a'=8], [{'a':(1)8}]}",
                                      "{mesh['a'=2], device_ids=(0), []}",
                                      "{mesh['a'=2], device_ids=(0,0), []}",
                                      "{mesh['a'=2], [{}], replicated}",
                                      "{mesh['a'=2], [{?,'a'}]}",
                                      "{{replicated},}",
                                      "{replicated"})
    EXPECT_NE(sharding(text).find("error[H"), std::string::npos) << text;
}

std::vector<std::vector<std::int64_t>> groups_of(std::string_view text) {
  const auto module = parse_module(
      "r = f32[4] all-reduce(f32[4] p), replica_groups=" + std::string(text) + ", to_apply={ a = f32[] parameter(0) }",
      {.verify = false});
  EXPECT_TRUE(module) << module.error().message();
  const hlo::Instruction& root = *(*module)->entry()->root();
  EXPECT_NE(print(root).find("replica_groups=" + std::string(text)), std::string::npos)
      << print(root);  // the same notation
  return root.attr<hlo::CollectiveAttr>().groups.expand();
}

TEST(ReplicaGroups, Expand) {
  using Groups = std::vector<std::vector<std::int64_t>>;
  EXPECT_EQ(groups_of("{{0,2},{1,3}}"), (Groups{{0, 2}, {1, 3}}));
  EXPECT_EQ(groups_of("[4,2]<=[2,2,2]T(0,2,1)"), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(groups_of("[2,4]<=[8]"), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(groups_of("mesh['x'=2,'y'=4] {'y'}"), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(groups_of("mesh['x'=2,'y'=4] {'x'}"), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(groups_of("mesh['x'=2,'y'=2] {'y', 'x'}"), (Groups{{0, 2, 1, 3}}));
  EXPECT_EQ(groups_of("mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)) {'y'}"), (Groups{{0, 2}, {1, 3}}));
  EXPECT_EQ(groups_of("mesh['x'=8] {'x':(2)2}"), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
}

}  // namespace
}  // namespace hloom::text
