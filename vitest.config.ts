import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    // Only a hang takes this long: no test is judged by how busy its machine is.
    testTimeout: 90_000,
    hookTimeout: 90_000,
    include: [
      'packages/*/test/**/*.{spec,property,contract}.ts',
      'examples/*/test/**/*.spec.ts',
      'scripts/test/**/*.spec.ts',
    ],
  },
})
