#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_data(nb::module_& m) { (void)m; }
