/** One thing that has to hold before a change is done. */
export interface Step {
  readonly name: string
  /** What failing it means, in a few words. */
  readonly claim: string
  readonly command: readonly [string, ...string[]]
  /** Whether the command is vitest, whose tests are counted one by one; any other step counts as one. */
  readonly countsTests?: boolean
  /** The steps whose output it reads. */
  readonly after?: readonly string[]
}

const maxMinutes = 20

/** The time after which a step counts as failed, in milliseconds: a hung check is a broken one. */
export const stepTimeoutMs: number = maxMinutes * 60_000

/** How many steps run at a time. Three keep two cores busy: most wait for disks, servers and processes that they start. */
export const lanes = 3

/** All steps: the quick ones first, so that most mistakes show within seconds, then the longest ones first. */
export const steps: readonly Step[] = [
  { name: 'format', claim: 'every file is formatted (pnpm format mends it)', command: ['oxfmt', '--check'] },
  { name: 'types', claim: 'sources, tests, type tests and scripts compile', command: ['tsc', '-b'] },
  { name: 'lint', claim: 'no rule of the linter is broken, types included', command: ['oxlint'] },
  {
    name: 'api',
    claim: 'what packages export is what their api.txt says (pnpm api writes it)',
    command: ['node', 'scripts/api.ts', '--check'],
    after: ['types'],
  },
  { name: 'tests', claim: 'every test passes', command: ['vitest', 'run'], countsTests: true },
  {
    name: 'thorough',
    claim: 'random and killed programs keep their promises with full numbers',
    command: ['vitest', 'run', '--mode', 'thorough', '--project', 'tests', '--project', 'alone'],
    countsTests: true,
    after: ['types'],
  },
  {
    name: 'crashes',
    claim: 'processes and servers may die at any place',
    command: [
      'node',
      'scripts/crashes.ts',
      '--points',
      '140',
      '--stops',
      '0',
      '--deaths',
      '20',
      '--seed',
      '20261120',
    ],
  },
  {
    name: 'postgres',
    claim: 'every test on Postgres passes',
    command: ['vitest', 'run', '--mode', 'thorough', '--project', 'postgres'],
    countsTests: true,
  },
  {
    name: 'conformance',
    claim: 'the public suite of MCP passes client and server',
    command: ['node', 'scripts/conformance.ts'],
  },
  {
    name: 'packages',
    claim: 'each package is well formed and loads as its users get it',
    command: ['node', 'scripts/check-packages.ts'],
    after: ['types'],
  },
  { name: 'tidy', claim: 'arrows, links, words and patterns', command: ['node', 'scripts/tidy.ts'] },
  {
    name: 'bench',
    claim: "every benchmark of Tallystick's own comes out right, with tiny numbers",
    command: ['node', 'bench/main.ts', '--smoke', '--own'],
  },
  { name: 'unused', claim: 'no file, export or dependency is left over', command: ['knip', '--no-progress'] },
]
