// Which test files `pnpm test` and `pnpm test:thorough` run. Every test file is in one of the two at least.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')

/** Every test file, by how its name ends. */
export const allTests: readonly string[] = [
  'packages/*/test/**/*.{spec,property,contract}.ts',
  'examples/*/test/**/*.spec.ts',
  'clients/*/test/**/*.spec.ts',
  'scripts/test/**/*.spec.ts',
]

/** Tests that need a Postgres server, which is started before the first and ended after the last of them. */
export const onPostgres: readonly string[] = [
  'packages/*/test/postgres-*.{spec,property,contract}.ts',
  'packages/engines/test/pg-boss.spec.ts',
]

/** Those of them that `pnpm test` runs: the promises of a ledger. */
export const quickOnPostgres: readonly string[] = ['packages/ledger/test/postgres-ledger.contract.ts']

/** Tests that start many processes, write large ledgers, or wait for long: too slow for a run that is to take three minutes on two cores. */
export const thoroughOnly: readonly string[] = [
  'examples/cookbook/test/cookbook.spec.ts',
  'examples/demo/test/chat-page.spec.ts',
  'examples/demo/test/chat-tabs.spec.ts',
  'examples/demo/test/crash.spec.ts',
  'examples/demo/test/demo.spec.ts',
  'examples/demo/test/demo-endings.spec.ts',
  'examples/broken/test/broken.spec.ts',
  'examples/durable-object/test/durable-object.spec.ts',
  'examples/demo/test/engine-demo.spec.ts',
  'examples/file-ledger/test/file-ledger.spec.ts',
  'examples/from-openai-agents/test/from-openai-agents.spec.ts',
  'examples/programs/test/programs.spec.ts',
  'clients/php/test/php.spec.ts',
  'examples/python/test/python.spec.ts',
  'packages/cli/test/beside-a-driver.spec.ts',
  'packages/cli/test/completion.spec.ts',
  'packages/cli/test/dev.spec.ts',
  'packages/cli/test/examples.spec.ts',
  'packages/cli/test/inspect.spec.ts',
  'packages/cli/test/inspector/*.spec.ts',
  'packages/core/test/endless.spec.ts',
  'packages/core/test/power-loss.property.ts',
  'packages/engines/test/bullmq.spec.ts',
  'packages/engines/test/contract.spec.ts',
  'packages/engines/test/restate.spec.ts',
  'packages/engines/test/runs.spec.ts',
  'packages/ledger/test/approvals.spec.ts',
  'packages/ledger/test/killed-redaction.spec.ts',
  'packages/ledger/test/missing-packages.spec.ts',
  'packages/ledger/test/processes.spec.ts',
  'packages/ledger/test/projections.spec.ts',
  'packages/ledger/test/sqlite-power-loss.spec.ts',
  'packages/ledger/test/wal-checkpointer.spec.ts',
  'packages/providers/test/missing-packages.spec.ts',
  'packages/server/test/list-places.spec.ts',
  'packages/server/test/load.spec.ts',
  'packages/server/test/runtimes.spec.ts',
  'packages/testkit/test/property-test.spec.ts',
  'packages/testkit/test/runners.spec.ts',
  'packages/tools/test/built-in/missing-packages.spec.ts',
  'packages/tools/test/built-in/sql-process.spec.ts',
  'packages/tools/test/mcp/faults.spec.ts',
  'packages/tools/test/mcp/real-faults.spec.ts',
  'scripts/test/docs-pages.spec.ts',
  'scripts/test/readmes.spec.ts',
]

/** The slowest of a thorough run, which come first: the last one would have the machine to itself. */
export const slowest: readonly string[] = [
  'packages/engines/test/postgres-runs.spec.ts',
  'scripts/test/docs-pages.spec.ts',
  'packages/cli/test/inspector/live.spec.ts',
  'packages/engines/test/runs.spec.ts',
  'packages/core/test/power-loss.property.ts',
  'examples/demo/test/chat-page.spec.ts',
  'packages/ledger/test/postgres-suites.spec.ts',
  'packages/cli/test/inspector/intruders.spec.ts',
]

/**
 * Tests that need a process of their own, each for its reason. All others share a process with other files, which takes
 * two thirds of the time: each leaves globals and prototypes as they were, and `as-it-was.ts` looks after the rest.
 */
export const inOwnProcess: readonly string[] = [
  // Collects garbage again and again, which takes the longer, the more its process holds.
  'packages/core/test/dropped-handles.spec.ts',
  // Plays workflows by Temporal's worker, which hooks into each promise of its process and never stops: they take forty times as long.
  'packages/engines/test/temporal.spec.ts',
  // Counts all statements and hashes of its process: what an earlier file left under way would count, too.
  'packages/ledger/test/costs.spec.ts',
  // Counts every block that runs, as V8 does for coverage: V8 compiles anew what it counts, for the rest of the process.
  'scripts/test/linear-scans.spec.ts',
]

/** Returns the test files that look further in a thorough run: those that import `effort.ts`. */
export function filesWithEffort(): readonly string[] {
  return globSync([...allTests], { cwd: root, exclude: ['**/node_modules/**'] })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => readFileSync(join(root, path), 'utf8').includes("/testing/effort.ts'"))
    .sort()
}
