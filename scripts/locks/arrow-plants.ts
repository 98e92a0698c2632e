import { importing, type Plant } from './plant.ts'

const core = 'packages/core/src'
const code = 'eslint(no-restricted-imports)'

const arrows = [
  {
    claim: 'the vocabulary has no streams',
    path: `${core}/vocabulary/plant-rxjs.ts`,
    allowed: './values/ids.ts',
    refused: 'rxjs',
  },
  {
    claim: 'the machine has no streams',
    path: `${core}/machine/plant-rxjs.ts`,
    allowed: '../vocabulary/values/ids.ts',
    refused: 'rxjs',
  },
  {
    claim: 'core has no Node modules',
    path: `${core}/runtime/plant-node.ts`,
    allowed: '../machine/state/state.ts',
    refused: 'node:fs',
  },
  {
    claim: 'core stands on no other package',
    path: `${core}/runtime/plant-up.ts`,
    allowed: '../vocabulary/errors.ts',
    refused: '@tallystick/ledger',
  },
  {
    claim: 'the ledger stands on core only',
    path: 'packages/ledger/src/plant-sibling.ts',
    allowed: '@tallystick/core',
    refused: '@tallystick/tools',
  },
  {
    claim: 'providers stand on core only',
    path: 'packages/providers/src/plant-sibling.ts',
    allowed: '@tallystick/core',
    refused: '@tallystick/ledger',
  },
  {
    claim: 'tools stand on core only',
    path: 'packages/tools/src/plant-sibling.ts',
    allowed: '@tallystick/core',
    refused: '@tallystick/providers',
  },
  {
    claim: 'what is for tests is not in products',
    path: 'packages/tools/src/plant-testing.ts',
    allowed: '@tallystick/core',
    refused: '@tallystick/core/testing',
  },
  {
    claim: 'a package is entered by its name',
    path: 'packages/ledger/src/plant-path.ts',
    allowed: '@tallystick/core',
    refused: '../../core/src/vocabulary/errors.ts',
  },
]

const circle = [
  {
    claim: 'no imports go round in a circle',
    path: `${core}/machine/plant-circle.ts`,
    allowed: './state/state.ts',
    refused: './plant-circle-end.ts',
  },
  {
    claim: 'no imports go round in a circle, seen from its other end',
    path: `${core}/machine/plant-circle-end.ts`,
    allowed: './state/state.ts',
    refused: './plant-circle.ts',
  },
]

/** Twins for the linter about who may import whom. */
export const arrowPlants: readonly Plant[] = [
  ...arrows.map((plant) => importing({ ...plant, code })),
  ...circle.map((plant) => importing({ ...plant, code: 'import(no-cycle)' })),
  {
    claim: 'ports run no streams, they only name their type',
    path: `${core}/ports/plant-rxjs.ts`,
    allowed: "import type { Observable } from 'rxjs'\nexport type Stream = Observable<void>\n",
    refused: "import { of } from 'rxjs'\nexport const stream: unknown = of(1)\n",
    code,
  },
]
