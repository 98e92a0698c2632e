import { around, exporting, importing, type Plant } from './plant.ts'

const promise = 'declare function later(): Promise<void>\n'
const lines = (count: number, line: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => line(index)).join('\n')

const body = around(
  (statements) => `export function run(x: number): number {\n${statements}\n  return x\n}\n`,
)
const choice = around(
  (rest) =>
    `export function rank(kind: 'a' | 'b'): number {\n  switch (kind) {\n    case 'a':\n      return 1\n    ${rest}:\n      return 2\n  }\n}\n`,
)
const test = around((text) => `import { expect, it } from 'vitest'\n${text}\n`)

/** Twins for the linter about habits that decay where no tool keeps them. */
export const habitPlants: readonly Plant[] = [
  {
    claim: 'no promise is left alone',
    path: 'packages/ledger/src/plant-floating.ts',
    allowed: `${promise}export async function run(): Promise<void> {\n  await later()\n}\n`,
    refused: `${promise}export function run(): void {\n  later()\n}\n`,
    code: 'typescript(no-floating-promises)',
  },
  {
    claim: 'no promise goes where nobody waits for it',
    path: 'packages/tools/src/plant-misused.ts',
    allowed: `${promise}export const run = (): readonly unknown[] => [1].map(() => later())\n`,
    refused: `${promise}export const run = (): void => [1].forEach(async () => later())\n`,
    code: 'typescript(no-misused-promises)',
  },
  {
    claim: 'nobody waits for what is no promise',
    path: 'packages/tools/src/plant-await.ts',
    allowed: `${promise}export async function run(): Promise<void> {\n  await later()\n}\n`,
    refused: 'export async function run(): Promise<void> {\n  await 1\n}\n',
    code: 'typescript(await-thenable)',
  },
  choice({
    claim: 'a default does not hide a member that is not handled',
    path: 'packages/core/src/machine/plant-switch.ts',
    allowed: "case 'b'",
    refused: 'default',
    code: 'typescript(switch-exhaustiveness-check)',
  }),
  {
    claim: 'no any gets in',
    path: 'packages/core/src/vocabulary/plant-any.ts',
    allowed: 'export type Thing = unknown\n',
    refused: 'export type Thing = any\n',
    code: 'typescript(no-explicit-any)',
  },
  {
    claim: 'what is only a type is imported as one',
    path: 'packages/tools/src/plant-type.ts',
    allowed: "import type { Observable } from 'rxjs'\nexport type Stream = Observable<void>\n",
    refused: "import { Observable } from 'rxjs'\nexport type Stream = Observable<void>\n",
    code: 'typescript(consistent-type-imports)',
  },
  {
    claim: 'a file has at most 350 lines',
    path: 'packages/tools/src/plant-file.ts',
    allowed: lines(350, (index) => `export const x${index} = 1`),
    refused: lines(351, (index) => `export const x${index} = 1`),
    code: 'eslint(max-lines)',
  },
  {
    claim: 'a test file has at most 400 lines',
    path: 'packages/tools/test/plant-file.spec.ts',
    allowed: lines(400, (index) => `export const x${index} = 1`),
    refused: lines(401, (index) => `export const x${index} = 1`),
    code: 'eslint(max-lines)',
  },
  body({
    claim: 'a function has at most 80 lines',
    path: 'packages/tools/src/plant-function.ts',
    allowed: lines(77, () => '  x++'),
    refused: lines(78, () => '  x++'),
    code: 'eslint(max-lines-per-function)',
  }),
  body({
    claim: 'a function has at most 12 ways through it',
    path: 'packages/tools/src/plant-complexity.ts',
    allowed: lines(11, (index) => `  if (x === ${index}) x++`),
    refused: lines(12, (index) => `  if (x === ${index}) x++`),
    code: 'eslint(complexity)',
  }),
  {
    claim: 'a function has at most four parameters',
    path: 'packages/tools/src/plant-parameters.ts',
    allowed: 'export const sum = (a: number, b: number, c: number, d: number): number => a + b + c + d\n',
    refused:
      'export const sum = (a: number, b: number, c: number, d: number, e: number): number => a + b + c + d + e\n',
    code: 'eslint(max-params)',
  },
  test({
    claim: 'no test silences the others',
    path: 'packages/tools/test/plant-focus.spec.ts',
    allowed: "it('adds', () => {\n  expect(1 + 1).toBe(2)\n})",
    refused: "it.only('adds', () => {\n  expect(1 + 1).toBe(2)\n})",
    code: 'vitest(no-focused-tests)',
  }),
  test({
    claim: 'every test can fail',
    path: 'packages/tools/test/plant-expect.spec.ts',
    allowed: "it('adds', () => {\n  expect(1 + 1).toBe(2)\n})",
    refused: "it('adds', () => {\n  expect.soft\n  Math.abs(1)\n})",
    code: 'vitest(expect-expect)',
  }),
  importing({
    claim: 'no test sleeps',
    path: 'packages/tools/test/plant-sleep.spec.ts',
    allowed: 'node:events',
    refused: 'node:timers/promises',
    code: 'eslint(no-restricted-imports)',
  }),
  exporting({
    claim: 'no test sets a timer of the host',
    path: 'packages/tools/test/plant-timer.spec.ts',
    allowed: 'Math.abs',
    refused: 'setTimeout',
    code: 'eslint(no-restricted-globals)',
  }),
  exporting({
    claim: 'no test depends on wall time',
    path: 'packages/tools/test/plant-clock.spec.ts',
    allowed: 'Date.UTC(2026)',
    refused: 'Date.now()',
    code: 'eslint(no-restricted-properties)',
  }),
  {
    claim: 'one place writes to the streams of the process',
    path: 'packages/cli/src/plant-write.ts',
    allowed: 'export const outputs = 1\n',
    refused: "process.stdout.write('text')\nexport const outputs = 1\n",
    code: 'eslint(no-restricted-properties)',
  },
  {
    claim: 'no stream of the process is taken out of it to be written to',
    path: 'packages/cli/src/verbs/plant-take.ts',
    allowed: 'export const { env } = process\n',
    refused: 'export const { stderr } = process\n',
    code: 'eslint(no-restricted-properties)',
  },
  {
    claim: 'no package prints by the console',
    path: 'packages/cli/src/view/plant-console.ts',
    allowed: 'export const run = (say: (text: string) => void): void => say("text")\n',
    refused: 'export const run = (): void => console.log("text")\n',
    code: 'eslint(no-console)',
  },
  {
    claim: 'one place asks at a terminal',
    path: 'packages/cli/src/view/plant-ask.ts',
    allowed: "export { once } from 'node:events'\n",
    refused: "export { createInterface } from 'node:readline/promises'\n",
    code: 'eslint(no-restricted-imports)',
  },
]
