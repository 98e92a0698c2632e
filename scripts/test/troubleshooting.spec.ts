import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { exitCodes } from '@tallystick/cli'
import { conflictKinds, errorCodes, problemCodes } from '../pages/error-codes.ts'

const repository = join(import.meta.dirname, '../..')
const page = readFileSync(join(repository, 'docs/troubleshooting.md'), 'utf8')
const headings = [...page.matchAll(/^### (.+)$/gm)].map(([, heading = '']) => heading)
const sources = globSync('packages/*/src/**/*.ts', { cwd: repository }).map((path) =>
  readFileSync(join(repository, path), 'utf8'),
)

describe('docs/troubleshooting.md', () => {
  it('has a section for every code of an error and every exit code, and for no other', () => {
    const codes = errorCodes(sources)
    expect(codes).toEqual(expect.arrayContaining(['configuration', 'ledger_conflict', 'tool', 'refused']))
    const exits = Object.values(exitCodes).map((code) => `Exit code ${code}`)
    expect(headings.toSorted()).toEqual([...codes, ...exits].toSorted())
  })

  it('has a row for every kind of conflict', () => {
    for (const kind of conflictKinds(sources))
      expect(page).toMatch(new RegExp(`^\\| \`${kind}\` +\\| \\S`, 'm'))
  })
})

describe('its problems over HTTP', () => {
  const [, section = ''] = /\n## Problems over HTTP\n(.+?)\n## /s.exec(page) ?? []
  const rows = [...section.matchAll(/^\| `([a-z_]+)` +\| /gm)].map(([, code = '']) => code)

  it('have a row for each code, in the order of the alphabet', () => {
    const codes = problemCodes(sources)
    expect(codes).toEqual(expect.arrayContaining(['approval_required', 'malformed', 'stopping']))
    expect(rows).toEqual(expect.arrayContaining([...codes]))
    expect(rows).toEqual(rows.toSorted())
  })
})
