"""From checked kernels to launches: text, compiler, disk store, driver. Each module is imported where it is used."""
