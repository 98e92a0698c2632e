import type { Stats } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { UnchangedFolder } from '../src/sqlite/log.ts'

type Times = Pick<Stats, 'mtimeMs' | 'ctimeMs' | 'ino' | 'dev'>

/** A folder whose times, and the time of now, a test sets; it counts the looks at its files. */
function folder(times: Partial<Times> = {}) {
  const found = { mtimeMs: 1_500, ctimeMs: 1_500, ino: 7, dev: 8, ...times }
  const bed = { found: found as Times | undefined, now: 1_000_000, looks: 0, fails: false }
  const unchanged = new UnchangedFolder(
    () => bed.found as Stats | undefined,
    () => bed.now,
  )
  const look = (): string => {
    bed.looks++
    if (bed.fails) throw new Error('A file is gone.')
    return 'looked'
  }
  return { bed, ask: () => unchanged.unlessUnchanged(look) }
}

describe('a folder', () => {
  it('tells that nothing has changed since a look at its files', () => {
    const { bed, ask } = folder()
    expect([ask(), ask(), ask(), bed.looks]).toEqual(['looked', undefined, undefined, 1])
  })

  it.each<readonly [string, Partial<Times> | undefined]>([
    ['a file was made', { mtimeMs: 1_501 }],
    ['its clock was set back meanwhile', { mtimeMs: 1_499 }],
    ['it was moved and came back', { ctimeMs: 1_501 }],
    ['another one is in its place', { ino: 9 }],
    ['another disk is in its place', { dev: 9 }],
    ['it is gone', undefined],
  ])('has its files looked at again where %s', (_name, changed) => {
    const { bed, ask } = folder()
    ask()
    bed.found = changed && ({ ...bed.found, ...changed } as Times)
    expect([ask(), bed.looks]).toEqual(['looked', 2])
    expect([ask(), bed.looks]).toEqual(changed ? [undefined, 2] : ['looked', 3])
  })

  it('that has changed just now cannot tell, since another change may get the same time', () => {
    for (const [times, tick] of [
      [{ mtimeMs: 999_999.5 }, 100],
      [{ ctimeMs: 999_999.5 }, 100],
      [{ mtimeMs: 1_000_000 }, 3_000],
    ] as const) {
      const { bed, ask } = folder(times)
      const last = Math.max(bed.found?.mtimeMs ?? 0, bed.found?.ctimeMs ?? 0)
      bed.now = last
      expect([ask(), ask()]).toEqual(['looked', 'looked'])
      bed.now = last + tick
      expect([ask(), ask()]).toEqual(['looked', 'looked'])
      bed.now = last + tick + 1
      expect([ask(), ask()]).toEqual(['looked', undefined])
    }
  })

  it('whose times are ahead of the clock cannot tell', () => {
    const { bed, ask } = folder()
    bed.now = 1_000
    expect([ask(), ask(), bed.looks]).toEqual(['looked', 'looked', 2])
  })

  it('is not trusted after a look that failed', () => {
    const { bed, ask } = folder()
    ask()
    bed.found = { ...bed.found, mtimeMs: 1_501 } as Times
    bed.fails = true
    expect(ask).toThrow('A file is gone.')
    expect(ask).toThrow('A file is gone.')
    bed.fails = false
    expect([ask(), ask()]).toEqual(['looked', undefined])
  })
})
