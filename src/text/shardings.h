// Shardings, meshes and replica groups in text (hlo-text 10.1, 10.2, 11.6).
#pragma once

#include <string>

#include "hlo/sharding.h"
#include "text/cursor.h"

namespace hloom::text {

/// Reads `{devices=[2,2]<=[4]}`, `{{replicated}, {maximal device=0}}`, `{mesh['x'=4], [{'x'}]}` ….
/// Errors: H520 conflict, H521–H523 devices, H525 permutation, H501, H503.
hlo::Sharding read_sharding(Cursor&);
/// Reads replica groups in any of the three notations. Errors: H540, H522, H525, H501.
hlo::ReplicaGroups read_replica_groups(Cursor&);

/// The participants of explicit groups go from 0 without gaps. Errors: H541 at `at`.
void check_no_gap(Cursor&, const char* at, const hlo::ReplicaGroups&);
/// Explicit groups have one size. Errors: H542 at `at`.
void check_even(Cursor&, const char* at, const hlo::ReplicaGroups&);

void write_sharding(std::string& out, const hlo::Sharding&);
void write_replica_groups(std::string& out, const hlo::ReplicaGroups&);

// Shared by both.

/// The word of a kind that is one: replicated, maximal, manual, unknown, unreduced.
std::string_view word_of(hlo::Sharding::Kind);

/// Reads `mesh['x'=2,'y'=4], device_ids=(…)`.
hlo::Mesh read_mesh(Cursor&);
/// Reads `'x'` or `'x':(2)4`, an axis of `mesh`.
hlo::MeshAxis read_axis(Cursor&, const hlo::Mesh& mesh);
/// Reads `[2,4]T(1,0)` into its canonical form: no dimensions of 1, neighbours merged.
hlo::IotaList read_iota(Cursor&);
void write_mesh(std::string& out, const hlo::Mesh&);
void write_axes(std::string& out, const std::vector<hlo::MeshAxis>&);
void write_iota(std::string& out, const hlo::IotaList&);
/// a,b,c
void write_joined(std::string& out, const std::vector<std::int64_t>&);

}  // namespace hloom::text
