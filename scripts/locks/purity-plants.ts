import { exporting, type Plant } from './plant.ts'

const core = 'packages/core/src'
const date = 'tallystick(no-ambient-date)'
const property = 'eslint(no-restricted-properties)'
const global = 'eslint(no-restricted-globals)'

const expressions: readonly Plant[] = [
  {
    claim: 'core does not ask what day it is',
    path: `${core}/machine/plant-date.ts`,
    allowed: 'new Date(0)',
    refused: 'new Date()',
    code: date,
  },
  {
    claim: 'core does not ask what day it is, by calling Date as a function',
    path: `${core}/machine/plant-date-text.ts`,
    allowed: 'new Date(0)',
    refused: 'Date()',
    code: date,
  },
  {
    claim: 'core reads no clock',
    path: `${core}/runtime/plant-clock.ts`,
    allowed: 'Date.UTC(2026)',
    refused: 'Date.now()',
    code: property,
  },
  {
    claim: 'core draws no lots',
    path: `${core}/runtime/plant-random.ts`,
    allowed: 'Math.floor(1.5)',
    refused: 'Math.random()',
    code: property,
  },
  {
    claim: 'core does not depend on the locale',
    path: `${core}/machine/plant-locale.ts`,
    allowed: "'a'.concat('b')",
    refused: "'a'.localeCompare('b')",
    code: property,
  },
  {
    claim: 'core sets no timers',
    path: `${core}/runtime/plant-timer.ts`,
    allowed: 'Math.abs',
    refused: 'setTimeout',
    code: global,
  },
  {
    claim: 'core does not reach for its host',
    path: `${core}/runtime/plant-host.ts`,
    allowed: 'Math.abs',
    refused: 'globalThis',
    code: global,
  },
]

/** Twins for the linter about what the compiler cannot take away from core, since it belongs to the language. */
export const purityPlants: readonly Plant[] = [
  ...expressions.map(exporting),
  {
    claim: "core uses no stream operator that runs on the host's clock",
    path: `${core}/runtime/plant-operator.ts`,
    allowed: "import { of } from 'rxjs'\nexport const stream: unknown = of(1)\n",
    refused: "import { timer } from 'rxjs'\nexport const stream: unknown = timer(1)\n",
    code: 'eslint(no-restricted-imports)',
  },
  {
    claim: 'one file of core binds the host',
    path: `${core}/runtime/run/host.ts`,
    allowed: 'export const time: unknown = [Date.now(), new Date(), Math.random(), globalThis]\n',
    refused: 'export const time: any = [Date.now(), new Date(), Math.random(), globalThis]\n',
    code: 'typescript(no-explicit-any)',
  },
]
