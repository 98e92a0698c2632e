import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { apiReport } from '../api/api-report.ts'

/** A built package of one entry, with these declaration files. */
function packageOf(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'api-report-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'dist'))
  const exports = { './kit': { types: './dist/index.d.ts' }, './package.json': './package.json' }
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ name: 'some-package', publishConfig: { exports } }),
  )
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, 'dist', name), text)
  return folder
}

const index = "export { one as first, type Two } from './parts.js'\nexport * from './more.js'\n"
const parts = '/** Counts. */\nexport declare function one(\n  of: Two,\n): number\nexport type Two = 2\n'

it('says of each exported name how it is declared, without comments and formatting', () => {
  const folder = packageOf({
    'index.d.ts': index,
    'parts.d.ts': parts,
    'more.d.ts': 'export declare const more = 1\n',
  })
  expect(apiReport(folder).split('\n').slice(2)).toEqual([
    '## some-package/kit (3 names)',
    '',
    'Two: type Two = 2',
    'first: declare function one( of: Two, ): number',
    'more: declare const more = 1',
    '',
  ])
})

it('is another one where a declaration changes, and the same where its comment does', () => {
  const more = 'export {}\n'
  const report = (text: string): string =>
    apiReport(packageOf({ 'index.d.ts': index, 'parts.d.ts': text, 'more.d.ts': more }))
  expect(report(parts.replace('Counts', 'Adds'))).toBe(report(parts))
  expect(report(parts.replace('): number', '): string'))).not.toBe(report(parts))
})

it('finds at most 45 names in the root of core: types that few programs name are in its kit', () => {
  const report = readFileSync(join(import.meta.dirname, '../../packages/core/api.txt'), 'utf8')
  const [, names] = /^## @tallystick\/core \((\d+) names\)$/m.exec(report) ?? []
  expect(Number(names)).toBeLessThanOrEqual(45)
})
