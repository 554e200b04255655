// What any instruction may carry: metadata, frontend attributes, backend_config … (hlo-text 10).
#pragma once

#include <string>
#include <vector>

#include "hlo/instruction.h"
#include "text/cursor.h"

namespace hloom::text {

/// Reads `{op_name="…" source_line=3}`. Errors: H502, H503, H501.
hlo::Metadata read_metadata(Cursor&);
/// The fields without the braces, in canonical form.
std::string metadata_fields(const hlo::Metadata&);
/// Reads one metadata map or a list of them, each as canonical text.
std::vector<std::string> read_metadata_list(Cursor&);

/// Reads `{key="value",key={…}}`.
hlo::StringMap read_string_map(Cursor&);
void write_string_map(std::string& out, const hlo::StringMap&);

/// Reads a backend_config; hloom's own part goes to `decisions`.
void read_backend_config(Cursor&, hlo::Annotations&);
/// Writes it back; needs one of the two to be there.
void write_backend_config(std::string& out, const hlo::Annotations&);

hlo::Statistics read_statistics(Cursor&);
void write_statistics(std::string& out, const hlo::Statistics&);
hlo::ResultAccuracy read_result_accuracy(Cursor&);
void write_result_accuracy(std::string& out, const hlo::ResultAccuracy&);

/// Reads the tree of an origin, or the entries of a recovery table, with their braces; gives the canonical text
/// between the braces.
std::string read_origin(Cursor&);
std::string read_recovery_table(Cursor&);

/// Whether `result_accuracy` may stand on this opcode.
bool takes_result_accuracy(hlo::Opcode);

}  // namespace hloom::text
