import { configDefaults, defineConfig } from 'vitest/config'

const ofCore = ['packages/core/test/**/*.{spec,property}.ts']
const ofTestkit = [
  'scripts/simulation/worlds.mutation.ts',
  'packages/testkit/test/{random,property-test,simulate-fleet,contract-of}.{spec,property}.ts',
  // Random programs of the testkit, played and judged by it.
  'packages/core/test/{laws,budgets,take-over,power-loss,tool-retries,turn-calls}.property.ts',
]

// The tests that `pnpm mutate` asks about each mutant of core; about a sample (`stryker.sample.config.ts`), the suites of the testkit.
export default defineConfig({
  test: {
    include: process.env['MUTANTS'] === undefined ? ofCore : ofTestkit,
    exclude: [...configDefaults.exclude, 'packages/core/test/dropped-handles.spec.ts'],
    experimental: { viteModuleRunner: false },
    testTimeout: 90_000,
    isolate: false,
  },
})
