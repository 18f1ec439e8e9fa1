// The rules on the fields of a spec that may be left out: what to do in the life of a job, where
// the defaults are not what is wanted.
#pragma once
#include "operator/api/field_checker.h"

namespace tj {

/// `spec` is an object. Its replicaSpecs are not looked at, nor names that it does not know.
void check_policy(field::FieldChecker& checker, const field::Field& spec);

}  // namespace tj
