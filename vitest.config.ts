import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { configDefaults, defineConfig } from 'vitest/config'

/** Tests that need a Postgres server, which is started before the first and ended after the last of them. */
const onPostgres = ['packages/*/test/postgres-*.{spec,property,contract}.ts']

/**
 * Packages that keep nothing in modules, and whose tests leave globals as they were: their files can share a process,
 * which takes less than half of the time.
 */
const inOneProcess = ['packages/{core,providers}/test/**/*.{spec,property,contract}.ts']

export default defineConfig({
  test: {
    // Only a hang takes this long: no test is judged by how busy its machine is.
    testTimeout: 90_000,
    hookTimeout: 90_000,
    // Many tests wait for processes of their own: two workers keep even a machine of two cores busy.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    // Processes that tests start load the same sources again and again: Node compiles them once.
    env: { NODE_COMPILE_CACHE: join(tmpdir(), 'tallystick-compile-cache') },
    projects: [
      {
        extends: true,
        test: {
          name: 'shared',
          include: inOneProcess,
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: 'tests',
          include: [
            'packages/*/test/**/*.{spec,property,contract}.ts',
            'examples/*/test/**/*.spec.ts',
            'scripts/test/**/*.spec.ts',
          ],
          exclude: [...configDefaults.exclude, ...inOneProcess, ...onPostgres],
        },
      },
      {
        extends: true,
        test: {
          name: 'postgres',
          include: onPostgres,
          globalSetup: ['packages/ledger/test/support/postgres-setup.ts'],
        },
      },
    ],
  },
})
