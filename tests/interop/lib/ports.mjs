// Owns: finding a free loopback port for a process that cannot choose one by itself.
// Does not own: keeping it free; the process binds it right after.

import net from 'node:net';

export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = net.createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
