import { adapterFamilies } from '../tidy/layout.ts'

/** A part of the sources whose mutants are counted together. */
export interface Area {
  readonly name: string
  /** The folders of its files, from the root of the repository. */
  readonly folders: readonly string[]
}

const areaOf = (name: string, ...folders: readonly string[]): Area => ({
  name,
  folders: folders.map((folder) => `packages/${folder}/`),
})

/**
 * Every part that is tried; the first area with a folder of a file has it. What only tests use is no subject, and what
 * is on Postgres has the same promises as SQLite in one contract, at a price of seconds for each mutant.
 */
export const areas: readonly Area[] = [
  areaOf('machine', 'core/src/machine'),
  areaOf('runtime', 'core/src/runtime'),
  areaOf('memory-ledger', 'core/src/memory-ledger'),
  areaOf('vocabulary', 'core/src/vocabulary'),
  areaOf('sqlite', 'ledger/src/sqlite'),
  areaOf(
    'ledger',
    ...[
      'checkpoint',
      'content',
      'projection',
      'read',
      'record',
      'removal',
      'transfer',
      'verify',
      'versions',
    ].map((folder) => `ledger/src/${folder}`),
  ),
  areaOf('tools', 'tools/src'),
  ...[...adapterFamilies].map(([name, adapters]) =>
    areaOf(name, ...adapters.map((adapter) => `providers/src/${adapter}`)),
  ),
  areaOf('shared', 'providers/src/shared'),
  areaOf('replay', 'replay/src'),
  areaOf('server', 'server/src'),
  areaOf('otel', 'otel/src'),
  areaOf('cli', 'cli/src'),
]

/** Sources that run in a process of their own, which reads them from disk: no test would see a fault in them. */
const inOwnProcess: ReadonlySet<string> = new Set([
  ...['cells', 'run-statement', 'sqlite', 'statement-kind', 'statement-process', 'tables-text'].map(
    (name) => `packages/tools/src/built-in/sql-query/sqlite/${name}.ts`,
  ),
  'packages/cli/src/main.ts',
])

/** Sources that only tests on Postgres reach, which do not run for a mutant. */
const onPostgresAlone: ReadonlySet<string> = new Set(
  [
    ...['postgres-connection', 'postgres-tables', 'run-in-postgres'].map(
      (name) => `sql-query/postgres/${name}`,
    ),
    'memory/postgres-memory',
  ].map((name) => `packages/tools/src/built-in/${name}.ts`),
)

/** Sources that end processes which hold an output: a fault in them would end every process of the user who tries it. */
const endsOthers: ReadonlySet<string> = new Set(['packages/tools/src/built-in/shell/left-group.ts'])

/** The name of the area that a file is in; `undefined` for a file that is not tried. */
export function areaNameOf(path: string): string | undefined {
  if ([inOwnProcess, onPostgresAlone, endsOthers].some((paths) => paths.has(path))) return undefined
  return areas.find(({ folders }) => folders.some((folder) => path.startsWith(folder)))?.name
}

/** Packages whose tests hold sources of another one as well: core says how a decision is turned back, replay does it. */
const furtherTests: Readonly<Record<string, readonly string[]>> = { core: ['replay'] }

/** Returns the packages whose tests run for a mutant of a package: its own first. */
export function testersOf(name: string): readonly string[] {
  return [name, ...(furtherTests[name] ?? [])]
}

/** Returns the packages whose sources the tests of a package hold. */
export function testedBy(name: string): readonly string[] {
  return [
    name,
    ...Object.keys(furtherTests).filter((tested) => testersOf(tested).includes(name) && tested !== name),
  ]
}
