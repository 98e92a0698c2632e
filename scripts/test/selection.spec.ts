import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, matchesGlob } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  allTests,
  filesWithEffort,
  inOwnProcess,
  longest,
  onPostgres,
  quickOnPostgres,
  thoroughOnly,
} from '../testing/selection.ts'

const root = join(import.meta.dirname, '../..')

/** Every file of the repository that is named like a test, also those that no glob of the selection knows. */
const written = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
})
  .toString()
  .split('\0')
  .filter((path) => /\.(spec|property|contract|test)\.ts$/.test(path))

const matches = (path: string, globs: readonly string[]): boolean =>
  globs.some((glob) => matchesGlob(path, glob))

describe('the selection of tests', () => {
  it('leaves no test file out of both runs', () => {
    expect(written.length).toBeGreaterThan(300)
    const quick = written.filter((path) => matches(path, allTests) && !matches(path, onPostgres))
    const thorough = written.filter((path) => matches(path, onPostgres))
    expect([...quick, ...thorough].sort()).toEqual(written.toSorted())
  })

  it('names files that there are, where it leaves them to the thorough run', () => {
    expect(thoroughOnly.filter((path) => !written.includes(path))).toEqual([])
    expect(thoroughOnly.filter((path) => matches(path, onPostgres))).toEqual([])
  })

  it('begins with files that there are', () => {
    expect(longest.filter((path) => !written.includes(path))).toEqual([])
  })

  it('takes those on Postgres that a quick run plays from files that there are', () => {
    expect(quickOnPostgres.filter((path) => !written.includes(path))).toEqual([])
    expect(quickOnPostgres.filter((path) => !matches(path, onPostgres))).toEqual([])
  })

  it('gives a process of its own to files that there are, and to each that mocks a module', () => {
    expect(inOwnProcess.filter((path) => !written.includes(path))).toEqual([])
    expect(inOwnProcess.filter((path) => matches(path, onPostgres) || thoroughOnly.includes(path))).toEqual(
      [],
    )
    const mocking = written.filter((path) =>
      /^\s*vi\.(?:mock|doMock)\(/m.test(readFileSync(join(root, path), 'utf8')),
    )
    expect(mocking.filter((path) => !inOwnProcess.includes(path))).toEqual([])
  })

  it('looks further in every file whose numbers depend on the effort', () => {
    const text = (path: string): string => readFileSync(join(root, path), 'utf8')
    const asking = written.filter((path) => /\b(?:tries|effort)(?:<\w+>)?\(/.test(text(path)))
    expect(filesWithEffort()).toEqual(asking.toSorted())
    expect(asking.length).toBeGreaterThan(20)
  })

  it('gives every property the seed of the run', () => {
    const text = (path: string): string => readFileSync(join(root, path), 'utf8')
    const unseeded = written.filter(
      (path) =>
        /\bfc\.(?:assert|check)\(/.test(text(path)) && !/\/testing\/(?:seed|effort)\.ts'/.test(text(path)),
    )
    expect(unseeded).toEqual([])
  })

  it('lets no test read the environment for its numbers', () => {
    const own = written.filter((path) =>
      /process\.env\[?\.?'?TALLYSTICK_(?:RUNS|EFFORT)/.test(readFileSync(join(root, path), 'utf8')),
    )
    expect(own).toEqual([])
  })
})
