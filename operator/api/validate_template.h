// The rules for the pod template: the fields that the operator reads or adds to. What else stands
// there is left to the server that makes the pods.
#pragma once
#include "operator/api/field_checker.h"

namespace tj {

void check_template(field::FieldChecker& checker, const field::Field& pod_template);

}  // namespace tj
