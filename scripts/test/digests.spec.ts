import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { codeDigest } from '../digests/code-digest.ts'
import { digestsModule, digestsPath } from '../digests/digests-module.ts'

describe('the digests of the code that made what is stored', () => {
  it('are what the code says: after a change of the fold or of a projection, run `pnpm digests`', async () => {
    expect(await readFile(digestsPath, 'utf8')).toBe(digestsModule())
  })
})

const sources = {
  'one/package.json': '{ "dependencies": { "lib": "1.0.0" } }',
  'one/src/entry.ts': `import type { Shape } from './shape.ts'
import { double } from '@tallystick/two'
import { once } from 'lib'
export const entry = (shape: Shape): number => once(double(shape.side))
`,
  'one/src/shape.ts': 'export interface Shape { readonly side: number }\n',
  'two/src/index.ts': `export * from './double.ts'\nexport { other } from './other.ts'\n`,
  'two/src/double.ts': 'export function double(value: number): number { return value * 2 }\n',
  'two/src/other.ts': 'export const other = 1\n',
}

/** The digest of the entry, with some files another. */
function digestWith(changes: Partial<Record<keyof typeof sources, string>> = {}): string {
  const root = mkdtempSync(join(tmpdir(), 'tallystick-digests-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  for (const [name, text] of Object.entries({ ...sources, ...changes })) {
    mkdirSync(dirname(join(root, name)), { recursive: true })
    writeFileSync(join(root, name), text)
  }
  return codeDigest([join(root, 'one/src/entry.ts')], root)
}

describe('codeDigest', () => {
  it.each([
    [
      'what a function does',
      'two/src/double.ts',
      'export function double(value: number): number { return value * 3 }',
    ],
    ['a version of a package', 'one/package.json', '{ "dependencies": { "lib": "1.0.1" } }'],
    ['which module a name comes from', 'two/src/index.ts', `export { other as double } from './other.ts'`],
  ] as const)('changes with %s', (_what, name, text) => {
    expect(digestWith({ [name]: text })).not.toBe(digestWith())
  })

  it.each([
    [
      'comments and formatting',
      'two/src/double.ts',
      '// Twice.\nexport function double(value: number): number {\n  return value * 2\n}',
    ],
    [
      'types',
      'two/src/double.ts',
      'export function double(value: 1 | 2): number { return (value as number) * 2 }',
    ],
    [
      'what only types need',
      'one/src/shape.ts',
      'export interface Shape { readonly side: 1; readonly more: 2 }',
    ],
    ['modules that nothing of it needs', 'two/src/other.ts', 'export const other = 2'],
  ] as const)('stays with other %s', (_what, name, text) => {
    expect(digestWith({ [name]: text })).toBe(digestWith())
  })

  it('is the same wherever the code lies', () => {
    expect(digestWith()).toBe(digestWith())
    expect(digestWith()).toMatch(/^[0-9a-f]{64}$/)
  })
})
