import { configDefaults, defineConfig } from 'vitest/config'

// The tests that `pnpm mutate` asks about each mutant of core.
export default defineConfig({
  test: {
    include: ['packages/core/test/**/*.{spec,property}.ts'],
    exclude: [...configDefaults.exclude, 'packages/core/test/dropped-handles.spec.ts'],
    experimental: { viteModuleRunner: false },
    testTimeout: 90_000,
    isolate: false,
  },
})
