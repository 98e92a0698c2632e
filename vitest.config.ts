import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: [
      'packages/*/test/**/*.{spec,property,contract}.ts',
      'examples/*/test/**/*.spec.ts',
      'scripts/test/**/*.spec.ts',
    ],
  },
})
