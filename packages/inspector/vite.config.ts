import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'
import { viteSingleFile } from 'vite-plugin-singlefile'

/** A slow machine is no fault of the page, and the programs that have it built print for others to read. */
const rolldownOptions = { checks: { bundlerTimings: false } }

/** Makes the page: one file with everything in it, which opens from a disk, too. */
export default defineConfig({
  root: fileURLToPath(new URL('src/page', import.meta.url)),
  // Other folders of a machine say nothing about the page.
  envDir: false,
  publicDir: false,
  logLevel: 'warn',
  resolve: {
    alias: [
      { find: /^react(-dom)?$/, replacement: 'preact/compat' },
      { find: /^react\/jsx-runtime$/, replacement: 'preact/jsx-runtime' },
    ],
  },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  worker: { rolldownOptions },
  build: {
    ...{ target: 'es2024', emptyOutDir: true, chunkSizeWarningLimit: 2_000, modulePreload: false },
    rolldownOptions,
  },
})
