// How a file becomes text: what is read of it, which files have no text, and which part of one read_file shows.
import { renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { describeFault } from '../../../src/built-in/files/root.ts'
import { hasWindowsLines, splitLines, decodeFile } from '../../../src/built-in/files/text.ts'
import { ToolError } from '../../../src/define/outcome.ts'
import { caller, disturbedTools, sandbox, toolsOver } from './sandbox.ts'

const goesOn = new AbortController().signal
/** More than is read at once. */
const long = 'a'.repeat(300_000)

/** Reads a file that holds `content`; `says` is the size that the system says it has. */
async function textOf(
  content: string,
  {
    maxBytes = 1_000_000,
    says,
    signal = goesOn,
  }: { maxBytes?: number; says?: number; signal?: AbortSignal } = {},
) {
  const box = sandbox()
  onTestFinished(() => box.remove())
  const path = join(box.root, 'file')
  writeFileSync(path, content)
  const file = await open(path)
  onTestFinished(async () => await file.close())
  const stat = async () => Object.assign(await file.stat(), says !== undefined && { size: says })
  const opened = { stat, read: file.read.bind(file) } as unknown as FileHandle
  const { stats: _, ...read } = { stats: undefined, ...(await decodeFile(opened, maxBytes, signal)) }
  return read
}

describe('a file', () => {
  it('of as many bytes as may be read is read, and of one more is too large', async () => {
    expect(await textOf('a', { maxBytes: 1 })).toEqual({ kind: 'text', text: 'a', size: 1 })
    expect(await textOf('abcd', { maxBytes: 4 })).toEqual({ kind: 'text', text: 'abcd', size: 4 })
    expect(await textOf('abcde', { maxBytes: 4 })).toEqual({ kind: 'too_large', size: 5 })
  })

  it('is read to its end in several pieces', async () => {
    expect(await textOf(`${long}é`)).toEqual({ kind: 'text', text: `${long}é`, size: 300_002 })
  })

  it('that has more or fewer bytes than the system says is read to its end, as far as may be', async () => {
    for (const says of [0, 1, 99])
      expect(await textOf('abcd', { maxBytes: 100, says })).toEqual({ kind: 'text', text: 'abcd', size: 4 })
    expect(await textOf('abcd', { maxBytes: 4, says: 0 })).toMatchObject({ kind: 'text' })
    expect(await textOf('abcde', { maxBytes: 4, says: 0 })).toEqual({ kind: 'too_large', size: 5 })
  })

  it('with a NUL is binary, of the size that is known then', async () => {
    expect(await textOf(`\0${long}`)).toEqual({ kind: 'binary', size: 300_001 })
    expect(await textOf(`${long}\0`, { says: 0 })).toEqual({ kind: 'binary', size: 300_001 })
  })

  it('is not read once the call has ended', async () => {
    await expect(textOf('abc', { signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough')
  })
})

describe('the lines of a text', () => {
  it('are without their ends, and the last one begins no further one', () => {
    expect(splitLines('')).toEqual([])
    expect(splitLines('\n')).toEqual([''])
    expect(splitLines('one\r\ntwo\n\nthree')).toEqual(['one', 'two', '', 'three'])
  })

  it('are those of Windows where each of them ends with CR LF', () => {
    const given = ['one\r\ntwo\r\n', 'one\r\ntwo', 'one', '', 'a\nb\r\n', 'a\r\nb\n', 'a\r\n\nb\r\n', '\n']
    expect(given.map(hasWindowsLines)).toEqual([true, true, false, false, false, false, false, false])
  })
})

describe('what read_file shows', () => {
  const read = async (text: string, input: object = {}, maxBytes = 1_000) => {
    const box = sandbox()
    onTestFinished(() => box.remove())
    box.put({ 'a.txt': text })
    return (await caller(toolsOver(box, 'by handle', { maxBytes }))('read_file', { path: 'a.txt', ...input }))
      .text
  }

  it('fills a result to the last byte, and says where to continue at the next one', async () => {
    expect(await read('a\nb\n', {}, 8)).toBe('"a.txt": 2 lines (4 bytes).\n1\ta\n2\tb')
    expect(await read('a\nb\n', {}, 7)).toBe(
      '"a.txt": lines 1 to 1 of 2 (4 bytes). Cut at 7 bytes: continue with offset 2.\n1\ta',
    )
    expect(await read('a\nb', {}, 7)).toBe(
      '"a.txt": lines 1 to 1 of 2 (3 bytes). Cut at 7 bytes: continue with offset 2.\n1\ta',
    )
  })

  it('is called whole only where it is all of the file', async () => {
    expect(await read('a\nb\n', { limit: 1 })).toBe(
      '"a.txt": lines 1 to 1 of 2 (4 bytes). Continue with offset 2.\n1\ta',
    )
    expect(await read('a\nb\n', { offset: 2 })).toBe('"a.txt": lines 2 to 2 of 2 (4 bytes).\n2\tb')
    expect(await read('abc\n', { column: 2 })).toBe(
      '"a.txt": lines 1 to 1 of 1, line 1 from column 2 (4 bytes).\n1\tbc',
    )
    expect(await read('x'.repeat(30), {}, 10)).toBe(
      `"a.txt": lines 1 to 1 of 1 (30 bytes). Line 1 has 30 characters and is cut at 10 bytes: continue with offset 1 and column 11.\n1\t${'x'.repeat(10)}`,
    )
  })

  it('begins at a character that the line has', async () => {
    expect(await read('\nb\n')).toBe('"a.txt": 2 lines (3 bytes).\n1\t\n2\tb')
    expect(await read('abc\n', { column: 3 })).toContain('\n1\tc')
    expect(await read('a\n', { column: 2 })).toBe('Line 1 of "a.txt" has 1 character: it has no column 2.')
  })
})

describe('a path that does not exist', () => {
  it('is answered with the nearest paths, and with none that is ignored by its whole path', async () => {
    const box = sandbox()
    onTestFinished(() => box.remove())
    box.put({ 'src/index.ts': '', 'src/indexes.ts': '' })
    const asked = async (ignore: readonly string[]) =>
      (await caller(toolsOver(box, 'by handle', { ignore }))('read_file', { path: 'src/indx.ts' })).text
    expect(await asked([])).toContain('Did you mean "src/index.ts"')
    expect(await asked(['/src/index.ts', '/src/indexes.ts'])).toBe('"src/indx.ts" does not exist.')
    box.put({ 'many/file4': '', 'many/file3': '', 'many/file2': '', 'many/file1': '' })
    const { text } = await caller(toolsOver(box))('read_file', { path: 'many/file0' })
    expect(text).toBe(
      '"many/file0" does not exist. Did you mean "many/file1" or "many/file2" or "many/file3"?',
    )
  })
})

describe('a file that another process changes while it is looked up', () => {
  const readWhen = async (change: (root: string, outside: string) => void) => {
    const box = sandbox()
    onTestFinished(() => box.remove())
    box.put({ 'dir/a.txt': 'inside' })
    const before = (name: string): void => {
      if (name === 'a.txt') change(box.root, box.outside)
    }
    return await caller(disturbedTools(box, { before }))('read_file', { path: 'dir/a.txt' })
  }

  it.each<[string, (root: string, outside: string) => void, string]>([
    [
      'leads outside, as its folder became a link',
      (root, outside) => {
        renameSync(join(root, 'dir'), join(root, 'was'))
        symlinkSync(outside, join(root, 'dir'))
      },
      '"dir/a.txt" leads outside the root folder: a folder on its way was changed during the call.',
    ],
    [
      'is not a file any more, as it became a link',
      (root) => {
        rmSync(join(root, 'dir/a.txt'))
        symlinkSync('..', join(root, 'dir/a.txt'))
      },
      '"dir/a.txt" is not a regular file: it was changed during the call. Look again.',
    ],
    [
      'is gone',
      (root) => rmSync(join(root, 'dir/a.txt')),
      '"dir/a.txt" does not exist any more: it was changed during the call. Look again.',
    ],
  ])('%s', async (_what, change, text) => {
    expect(await readWhen(change)).toEqual({ outcome: 'failed', text })
  })
})

describe('a fault of the system', () => {
  const fault = (code: string) =>
    describeFault(Object.assign(new Error('/of/this/machine'), { code }), 'a.txt')

  it.each([
    ['EACCES', 'cannot be used: the permission is missing'],
    ['EPERM', 'cannot be used: the permission is missing'],
    ['EROFS', 'cannot be changed: its file system is read-only'],
    ['ENOSPC', 'cannot be written: the disk is full'],
    ['EDQUOT', 'cannot be written: the quota of the disk is used up'],
    ['ENAMETOOLONG', 'has a name that is too long'],
    ['EINVAL', 'cannot be used: the system refuses this name or this change'],
    ['EXDEV', 'cannot be moved there: the other folder is on another file system. Write it anew instead'],
    ['EMFILE', 'cannot be opened now: too many files are open. Try again'],
    ['ENFILE', 'cannot be opened now: too many files are open. Try again'],
    ['EIO', 'cannot be read: the disk reports a fault'],
    ['EISDIR', 'is a folder'],
    ['ENOTDIR', 'is not a folder'],
    ['ENOENT', 'does not exist any more: it was changed during the call. Look again'],
    ['EEXIST', 'was made by another process during the call. Look again'],
    ['ELOOP', 'was replaced by a link during the call. Look again'],
    ['EBUSY', 'is in use'],
    ['ENOTEMPTY', 'exists already'],
    ['EUNKNOWN', 'cannot be used (EUNKNOWN)'],
  ])('%s has words, and none of them is a path of the machine', (code, words) => {
    expect(fault(code)).toEqual(new ToolError(`"a.txt" ${words}.`))
  })

  it('is not made of anything else that was thrown', () => {
    const others = [new Error('x'), Object.assign(new Error('x'), { code: 5 }), 'ENOENT', { code: 'ENOENT' }]
    expect(others.map((error) => describeFault(error, 'a.txt'))).toEqual(others)
    const own = new ToolError('own')
    expect(describeFault(own, 'a.txt')).toBe(own)
  })
})
