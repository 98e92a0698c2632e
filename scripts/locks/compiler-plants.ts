import { around, exporting, type Plant } from './plant.ts'

const machine = 'packages/core/src/machine'

/** What every host has and core must not see. Tried one by one, since each may leak in by another library. */
const hostNames = [
  'setTimeout',
  'setInterval',
  'setImmediate',
  'queueMicrotask',
  'fetch',
  'process',
  'console',
  'crypto',
  'performance',
  'structuredClone',
  'URL',
  'TextEncoder',
  'AbortController',
  'Buffer',
]

const hostPlants = hostNames.map((name): Plant =>
  exporting({
    claim: `core cannot name ${name}`,
    path: `${machine}/plant-host-${name.toLowerCase()}.ts`,
    allowed: 'Math.abs',
    refused: name,
    code: 'TS2304 TS2580 TS2584 TS2591',
  }),
)

const modules: readonly Plant[] = [
  {
    claim: 'core cannot import Node',
    path: `${machine}/plant-node.ts`,
    allowed: 'rxjs',
    refused: 'node:fs',
    code: 'TS2307 TS2591',
  },
  {
    claim: 'core cannot import what its package.json does not list',
    path: `${machine}/plant-unlisted.ts`,
    allowed: 'rxjs',
    refused: 'kysely',
    code: 'TS2307',
  },
  {
    claim: 'core cannot import what stands on it',
    path: `${machine}/plant-up.ts`,
    allowed: 'rxjs',
    refused: '@tallystick/ledger',
    code: 'TS2307',
  },
  {
    claim: 'providers cannot import the ledger',
    path: 'packages/providers/src/plant-sibling.ts',
    allowed: '@tallystick/core',
    refused: '@tallystick/ledger',
    code: 'TS2307',
  },
  {
    claim: 'the ledger cannot import tools',
    path: 'packages/ledger/src/plant-sibling.ts',
    allowed: '@tallystick/core',
    refused: '@tallystick/tools',
    code: 'TS2307',
  },
  {
    claim: 'tools cannot import providers',
    path: 'packages/tools/src/plant-sibling.ts',
    allowed: '@tallystick/core',
    refused: '@tallystick/providers',
    code: 'TS2307',
  },
  {
    claim: 'core cannot reach into another package by path',
    path: `${machine}/plant-path.ts`,
    allowed: 'rxjs',
    refused: '../../../ledger/src/index.ts',
    code: 'TS6059 TS6307',
  },
]

/** Twins for the compiler. */
export const compilerPlants: readonly Plant[] = [
  ...hostPlants,
  ...modules.map(around((module) => `export * from '${module}'\n`)),
  {
    claim: 'type tests are checked: an expected error that does not happen is one',
    path: 'packages/core/test/plant.test-d.ts',
    allowed: '// @ts-expect-error a number is not a string\nexport const canary: string = 1\n',
    refused: "// @ts-expect-error a string is a string\nexport const canary: string = 'fine'\n",
    code: 'TS2578',
  },
  {
    claim: 'tests are checked, against the real types',
    path: 'packages/ledger/test/plant.spec.ts',
    allowed: "import { x } from '@tallystick/core'\nexport const found: number = x\n",
    refused: "import { x } from '@tallystick/core'\nexport const found: string = x\n",
    code: 'TS2322',
  },
]
