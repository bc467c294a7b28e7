#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_blocks(nb::module_& m) { (void)m; }
