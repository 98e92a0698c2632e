import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { configDefaults, defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { memoryFolder } from './scripts/testing/memory-folder.ts'
import {
  allTests,
  filesWithEffort,
  inOwnProcess,
  onPostgres,
  quickOnPostgres,
  slowest,
  thoroughOnly,
} from './scripts/testing/selection.ts'

type Options = NonNullable<TestProjectInlineConfiguration['test']>

function project(
  name: string,
  include: readonly string[],
  options: Options = {},
): TestProjectInlineConfiguration {
  const { exclude = [], ...others } = options
  return {
    extends: true,
    test: { name, include: [...include], exclude: [...configDefaults.exclude, ...exclude], ...others },
  }
}

/** Files of such a project share processes: the next one finds loaded what it imports. */
const shared: Options = { isolate: false }

const withServer: Options = { globalSetup: ['packages/ledger/test/support/postgres-setup.ts'] }

/** `pnpm test`: nearly every file, with small numbers, and the core of what stands on Postgres. */
const quick = (): TestProjectInlineConfiguration[] => [
  project('tests', allTests, { ...shared, exclude: [...inOwnProcess, ...onPostgres, ...thoroughOnly] }),
  project('alone', inOwnProcess),
  project('postgres', quickOnPostgres, { ...withServer, ...shared }),
]

/** `pnpm test:thorough`: what looks further with full numbers, and all that stands on Postgres. */
const thorough = (): TestProjectInlineConfiguration[] => [
  project('tests', [...filesWithEffort(), ...thoroughOnly], {
    ...shared,
    exclude: [...inOwnProcess, ...onPostgres],
  }),
  project(
    'alone',
    inOwnProcess.filter((path) => filesWithEffort().includes(path)),
  ),
  project('postgres', onPostgres, { ...withServer, ...shared }),
]

/** Vitest begins with the largest files, since it knows how long each took only on a machine that ran them before. */
class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ moduleId }: TestSpecification): number => {
      const place = slowest.findIndex((path) => moduleId.endsWith(path))
      return place < 0 ? slowest.length : place
    }
    return (await super.sort(files)).sort((one, other) => placeOf(one) - placeOf(other))
  }
}

/**
 * What a test writes is gone after it, and in `pnpm test` it waits for no disk where that can be. `pnpm test:thorough`
 * writes to the disk, as does a run with a TMPDIR of its own.
 */
function filesOfQuickTests(): { TMPDIR?: string } {
  const folder = process.env['TMPDIR'] === undefined ? memoryFolder() : undefined
  return folder === undefined ? {} : { TMPDIR: folder }
}

export default defineConfig(({ mode }) => ({
  test: {
    setupFiles: ['scripts/testing/as-it-was.ts'],
    // Only a hang takes this long: no test is judged by how busy its machine is. Full numbers take a multiple of it.
    testTimeout: mode === 'thorough' ? 300_000 : 90_000,
    hookTimeout: 90_000,
    expect: { poll: { timeout: 60_000 } },
    // Node loads sources and tests, as it does for users: Vite's own loader makes every use of an import a property access.
    experimental: { viteModuleRunner: false },
    // Many tests wait for processes of their own, and most of the thorough ones: workers more than cores keep the cores busy.
    maxWorkers: availableParallelism() + (mode === 'thorough' ? 2 : 1),
    env: {
      TALLYSTICK_EFFORT: mode === 'thorough' ? 'thorough' : 'quick',
      // Processes that tests start load the same sources again and again: Node compiles them once.
      NODE_COMPILE_CACHE: join(tmpdir(), 'tallystick-compile-cache'),
      ...(mode !== 'thorough' && filesOfQuickTests()),
    },
    ...(mode === 'thorough' && { sequence: { sequencer: SlowestFirst } }),
    projects: mode === 'thorough' ? thorough() : quick(),
  },
}))
