/* launch_loop.c -- launches one kernel again and again: what the driver alone costs
   cc -O2 -shared -fPIC launch_loop.c

   `entry` is cuLaunchKernel's address, so that nothing is linked; the rest are its arguments. Gives the first result
   that is not success. */

typedef int (*launch_kernel)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **parameters,
                             void **extra);

int launch_loop(launch_kernel entry, void *function, unsigned block, void *stream, void **parameters, int count) {
  for (int each = 0; each < count; each++) {
    int code = entry(function, 1, 1, 1, block, 1, 1, 0, stream, parameters, 0);
    if (code) return code;
  }
  return 0;
}
