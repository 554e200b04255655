#include "family_cases.h"

#include <cmath>

namespace hloom::bench {
namespace {

#define HLOOM_SUM "sum { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y) }\n"
#define HLOOM_MAX "max { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] maximum(x, y) }\n"
#define HLOOM_LESS "less { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = pred[] compare(x, y), direction=LT, type=TOTALORDER }\n"

const Case kCases[] = {
    {"loop/add", "ENTRY e { p = f32[N] parameter(0)\n q = f32[N] parameter(1)\n ROOT r = f32[N] add(p, q) }"},
    {"loop/exp", "ENTRY e { p = f32[N] parameter(0)\n ROOT r = f32[N] exponential(p) }"},
    {"loop/tanh", "ENTRY e { p = f32[N] parameter(0)\n ROOT r = f32[N] tanh(p) }"},
    {"loop/from_bf16", "ENTRY e { p = bf16[N] parameter(0)\n ROOT r = f32[N] convert(p) }"},
    {"loop/to_bf16", "ENTRY e { p = f32[N] parameter(0)\n ROOT r = bf16[N] convert(p) }"},
    {"concatenate/rows",
     "ENTRY e { p = f32[R,C] parameter(0)\n q = f32[R,C] parameter(1)\n ROOT r = f32[R,D] concatenate(p, q), dimensions={1} }"},
    {"concatenate/interleave",
     "ENTRY e { p = f32[N,1] parameter(0)\n q = f32[N,1] parameter(1)\n ROOT r = f32[N,2] concatenate(p, q), dimensions={1} }"},
    {"update/window",
     "ENTRY e { p = f32[N] parameter(0)\n i = s32[] constant(5)\n x = f32[] constant(2)\n z = f32[1024] broadcast(x), dimensions={}\n"
     " ROOT r = f32[N] dynamic-update-slice(p, z, i) }",
     nullptr, true, 2 * 4096},
    {"copy/transpose", "ENTRY e { p = f32[R,C] parameter(0)\n ROOT r = f32[C,R] transpose(p), dimensions={1,0} }"},
    {"copy/slice", "ENTRY e { p = f32[R,D] parameter(0)\n ROOT r = f32[R,C] slice(p), slice={[0:R], [3:E]} }"},
    {"copy/pad", "ENTRY e { p = f32[R,C] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[R,F] pad(p, z), padding=0_0x1_2 }"},
    {"copy/reverse", "ENTRY e { p = f32[R,C] parameter(0)\n ROOT r = f32[R,C] reverse(p), dimensions={1} }"},
    {"copy/roll",
     "ENTRY e { p = f32[R,C] parameter(0)\n a = f32[R,G] slice(p), slice={[0:R], [3:C]}\n b = f32[R,3] slice(p), slice={[0:R], [0:3]}\n"
     " ROOT r = f32[R,C] concatenate(a, b), dimensions={1} }"},
    {"copy/broadcast", "ENTRY e { p = f32[C] parameter(0)\n ROOT r = f32[R,C] broadcast(p), dimensions={1} }"},
    {"reduce/row", HLOOM_SUM "ENTRY e { p = f32[R,C] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[R] reduce(p, z), dimensions={1}, to_apply=sum }"},
    {"reduce/column", HLOOM_SUM "ENTRY e { p = f32[R,C] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[C] reduce(p, z), dimensions={0}, to_apply=sum }"},
    {"reduce/all", HLOOM_SUM "ENTRY e { p = f32[R,C] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[] reduce(p, z), dimensions={0,1}, to_apply=sum }"},
    {"reduce/argmax",
     "best { a = f32[] parameter(0)\n i = s32[] parameter(1)\n b = f32[] parameter(2)\n j = s32[] parameter(3)\n g = pred[] compare(a, b), direction=GT\n"
     " n = pred[] compare(a, a), direction=NE\n t = pred[] or(g, n)\n q = pred[] compare(a, b), direction=EQ\n l = pred[] compare(i, j), direction=LT\n"
     " u = pred[] and(q, l)\n k = pred[] or(t, u)\n v = f32[] select(t, a, b)\n w = s32[] select(k, i, j)\n ROOT r = (f32[], s32[]) tuple(v, w) }\n"
     "ENTRY e { p = f32[R,C] parameter(0)\n i = s32[R,C] iota(), iota_dimension=1\n z = f32[] constant(-inf)\n o = s32[] constant(0)\n"
     " ROOT r = (f32[R], s32[R]) reduce(p, i, z, o), dimensions={1}, to_apply=best }"},
    {"gather/rows",
     "ENTRY e { p = f32[R,C] parameter(0)\n i = s32[R,1] parameter(1)\n ROOT r = f32[R,C] gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, "
     "start_index_map={0}, index_vector_dim=1, slice_sizes={1,C} }"},
    {.name = "gather/rows_64B",
     .text = "ENTRY e { p = f32[P,16] parameter(0)\n i = s32[P,1] parameter(1)\n ROOT r = f32[P,16] gather(p, i), offset_dims={1}, "
             "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,16} }",
     .row_bytes = 64},
    {.name = "gather/rows_256B",
     .text = "ENTRY e { p = f32[Q,64] parameter(0)\n i = s32[Q,1] parameter(1)\n ROOT r = f32[Q,64] gather(p, i), offset_dims={1}, "
             "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,64} }",
     .row_bytes = 256},
    {.name = "gather/rows_1KiB",
     .text = "ENTRY e { p = f32[K,256] parameter(0)\n i = s32[K,1] parameter(1)\n ROOT r = f32[K,256] gather(p, i), offset_dims={1}, "
             "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,256} }",
     .row_bytes = 1024},
    {.name = "gather/embedding",
     .text = "ENTRY e { p = bf16[Q,64] parameter(0)\n i = s32[Q,1] parameter(1)\n g = f32[64] parameter(2)\n"
             " t = bf16[Q,64] gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}\n"
             " c = f32[Q,64] convert(t)\n b = f32[Q,64] broadcast(g), dimensions={1}\n ROOT r = f32[Q,64] multiply(c, b) }",
     .row_bytes = 128},
    {.name = "gather/elements",
     .text = "ENTRY e { p = f32[N] parameter(0)\n i = s32[N,1] parameter(1)\n ROOT r = f32[N] gather(p, i), offset_dims={}, collapsed_slice_dims={0}, "
             "start_index_map={0}, index_vector_dim=1, slice_sizes={1} }",
     .near = true},
    {.name = "gather/elements_far",
     .text = "ENTRY e { p = f32[N] parameter(0)\n i = s32[N,1] parameter(1)\n ROOT r = f32[N] gather(p, i), offset_dims={}, collapsed_slice_dims={0}, "
             "start_index_map={0}, index_vector_dim=1, slice_sizes={1} }",
     .row_bytes = 4},
    {"scatter/rows", HLOOM_SUM
     "ENTRY e { p = f32[R,C] parameter(0)\n i = s32[R,1] parameter(1)\n u = f32[R,C] parameter(2)\n ROOT r = f32[R,C] scatter(p, i, u), "
     "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum }",
     nullptr, true},
    {"scatter/elements", HLOOM_SUM
     "ENTRY e { p = f32[N] parameter(0)\n i = s32[N,1] parameter(1)\n u = f32[N] parameter(2)\n ROOT r = f32[N] scatter(p, i, u), "
     "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum }",
     nullptr, true, 0, 0, true},
    {"window/cumulative_sum", HLOOM_SUM
     "ENTRY e { p = f32[R,C] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[R,C] reduce-window(p, z), window={size=1xC pad=0_0xI_0}, to_apply=sum }"},
    {"window/sum_3x3", HLOOM_SUM
     "ENTRY e { p = f32[R,C] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[R,C] reduce-window(p, z), window={size=3x3 pad=1_1x1_1}, to_apply=sum }"},
    {"window/max_3x3_channels", HLOOM_MAX
     "ENTRY e { p = f32[1,K,8,32] parameter(0)\n z = f32[] constant(-inf)\n ROOT r = f32[1,K,8,32] reduce-window(p, z), "
     "window={size=1x3x3x1 pad=0_0x1_1x1_1x0_0}, to_apply=max }"},
    {"window/max_15x15", HLOOM_MAX
     "ENTRY e { p = f32[R,C] parameter(0)\n z = f32[] constant(-inf)\n ROOT r = f32[R,C] reduce-window(p, z), window={size=15x15 pad=7_7x7_7}, to_apply=max }",
     // Windows of 2, 4, 8 and 15 along each dimension: a maximum each, in a multiply-add's place.
     [](double n) { return 2 * 8 * n; }},
    {"order/sort", HLOOM_LESS "ENTRY e { p = f32[N] parameter(0)\n ROOT r = f32[N] sort(p), dimensions={0}, to_apply=less }"},
    {"order/sort_rows", HLOOM_LESS "ENTRY e { p = f32[R,C] parameter(0)\n ROOT r = f32[R,C] sort(p), dimensions={1}, to_apply=less }"},
    {"order/sort_pairs",
     "less { x = f32[] parameter(0)\n y = f32[] parameter(1)\n v = s32[] parameter(2)\n w = s32[] parameter(3)\n ROOT s = pred[] compare(x, y), direction=LT, "
     "type=TOTALORDER }\n"
     "ENTRY e { p = f32[N] parameter(0)\n i = s32[N] iota(), iota_dimension=0\n ROOT r = (f32[N], s32[N]) sort(p, i), dimensions={0}, is_stable=true, to_apply=less }"},
    // Of rows long beside the eight: then reading them is what takes time at least.
    {"order/top_8", "ENTRY e { p = f32[M,1024] parameter(0)\n ROOT r = (f32[M,8], s32[M,8]) topk(p), k=8, largest=true }"},
    {"order/sort_first_8",
     "less { x = f32[] parameter(0)\n y = f32[] parameter(1)\n v = s32[] parameter(2)\n w = s32[] parameter(3)\n ROOT s = pred[] compare(x, y), direction=LT, "
     "type=TOTALORDER }\n"
     "ENTRY e { p = f32[M,1024] parameter(0)\n i = s32[M,1024] iota(), iota_dimension=1\n s = (f32[M,1024], s32[M,1024]) sort(p, i), dimensions={1}, is_stable=true, "
     "to_apply=less\n a = s32[M,1024] get-tuple-element(s), index=1\n ROOT r = s32[M,8] slice(a), slice={[0:M], [0:8]} }"},
    {"order/sort_last_8_of_all",
     HLOOM_LESS "ENTRY e { p = f32[N] parameter(0)\n s = f32[N] sort(p), dimensions={0}, to_apply=less\n ROOT r = f32[8] slice(s), slice={[O:N]} }"},
    {"random/threefry",
     "ENTRY e { p = u64[2] parameter(0)\n ROOT r = (u64[2], u32[N]) rng-bit-generator(p), algorithm=rng_three_fry }"},
    {"random/philox", "ENTRY e { p = u64[3] parameter(0)\n ROOT r = (u64[3], u32[N]) rng-bit-generator(p), algorithm=rng_philox }"},
    {"dot/square",
     "ENTRY e { p = f32[S,S] parameter(0)\n q = f32[S,S] parameter(1)\n ROOT r = f32[S,S] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
     [](double n) { return 2 * n * std::sqrt(n); }},
    {"dot/vector",
     "ENTRY e { p = f32[R,C] parameter(0)\n q = f32[C] parameter(1)\n ROOT r = f32[R] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"},
    {"dot/bf16",
     "ENTRY e { p = bf16[S,S] parameter(0)\n q = bf16[S,S] parameter(1)\n ROOT r = bf16[S,S] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
     [](double n) { return 2 * n * std::sqrt(n); }},
    {"dot/s8",
     "ENTRY e { p = s8[S,S] parameter(0)\n q = s8[S,S] parameter(1)\n ROOT r = s32[S,S] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
     [](double n) { return 2 * n * std::sqrt(n); }},
    {"convolution/3x3",
     "ENTRY e { p = f32[1,K,8,32] parameter(0)\n q = f32[3,3,32,32] parameter(1)\n ROOT r = f32[1,K,8,32] convolution(p, q), "
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f }",
     [](double n) { return 2 * n * 9 * 32; }},
    {"convolution/bf16",
     "ENTRY e { p = bf16[1,K,8,32] parameter(0)\n q = bf16[3,3,32,32] parameter(1)\n ROOT r = bf16[1,K,8,32] convolution(p, q), "
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f }",
     [](double n) { return 2 * n * 9 * 32; }},
    {"convolution/grouped",
     "ENTRY e { p = f32[1,K,8,32] parameter(0)\n q = f32[3,3,8,32] parameter(1)\n ROOT r = f32[1,K,8,32] convolution(p, q), "
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=4 }",
     [](double n) { return 2 * n * 9 * 8; }},
    {"convolution/depthwise",
     "ENTRY e { p = f32[1,K,8,32] parameter(0)\n q = f32[3,3,1,32] parameter(1)\n ROOT r = f32[1,K,8,32] convolution(p, q), "
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=32 }"},
    {"convolution/depthwise_planes",
     "ENTRY e { p = f32[32,8,H,C] parameter(0)\n q = f32[8,1,3,3] parameter(1)\n ROOT r = f32[32,8,H,C] convolution(p, q), "
     "window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01, feature_group_count=8 }"},
    {"convolution/depthwise_gradient",
     "ENTRY e { p = f32[1,8,K,32] parameter(0)\n q = f32[1,8,K,32] parameter(1)\n ROOT r = f32[3,3,1,32] convolution(p, q), "
     "window={size=8xK pad=1_1x1_1}, dim_labels=f01b_i01o->01bf, batch_group_count=32 }"},
    {"fft/256",
     "ENTRY e { p = c64[L,256] parameter(0)\n ROOT r = c64[L,256] fft(p), fft_type=FFT, fft_length={256} }"},
};

}  // namespace

std::span<const Case> cases() { return kCases; }

}  // namespace hloom::bench
