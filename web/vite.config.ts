// Build of the page: one entry point, two chart libraries that load when their panels open, and
// files compressed at build time, so that the service only selects an encoding.
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

import { svelte } from '@sveltejs/vite-plugin-svelte';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

/** Address of the service during development: `PITLANE=http://127.0.0.1:9090 npm run dev`. */
const service = process.env['PITLANE'] ?? 'http://127.0.0.1:9090';

export default defineConfig({
  plugins: [svelte(), compressed()],
  build: {
    target: 'es2022',
    outDir: 'dist/page',
    // The content security policy forbids data: scripts and inline styles, so nothing is inlined.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: {
    proxy: Object.fromEntries(
      ['/rest', '/health', '/version', '/metrics', '/openapi.json', '/docs', '/stomp'].map((path) => [
        path,
        { target: service, changeOrigin: true, ws: path === '/stomp' },
      ]),
    ),
  },
  test: { include: ['src/**/*.test.ts'], environment: 'node' },
  // The tests of stores need the browser build of Svelte's reactivity.
  resolve: process.env['VITEST'] ? { conditions: ['browser'] } : {},
});

/** Writes the gzip and brotli forms of each file beside it if they are smaller. */
function compressed(): Plugin {
  return {
    name: 'compressed',
    apply: 'build',
    closeBundle() {
      for (const path of files('dist/page')) {
        if (!/\.(html|js|css|svg|json)$/.test(path)) continue;
        const bytes = readFileSync(path);
        const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
        const gzip = gzipSync(bytes, { level: 9 });
        if (gzip.length < bytes.length) writeFileSync(`${path}.gz`, gzip);
        if (brotli.length < bytes.length) writeFileSync(`${path}.br`, brotli);
      }
    },
  };
}

function files(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? files(path) : [path];
  });
}
